"""Version of mmgen."""

__version__ = "0.1.0"

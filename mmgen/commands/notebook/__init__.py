"""The stages as functions, for notebooks and scripts: ``mmgen.train(...)`` makes the file that ``mmgen train`` makes.

Each takes paths, or what another one returned, and settings by the names that they have on the command line; it returns
something to go on with that knows its ``path``. In a notebook progress is shown; elsewhere nothing is printed.
"""

from mmgen.commands.notebook._data import make_data

__all__ = ["make_data"]

"""Where the log of a run can go besides its own file: one file for each program that shows logs.

The libraries are extras of the same names, and are loaded only where they are asked for.
"""

import importlib

from mmgen.training.loggers._base import Logger, RunFacts

__all__ = ["LOGGERS", "Logger", "RunFacts", "logger"]

LOGGERS = ("tensorboard", "wandb", "mlflow")


def logger(name: str) -> type[Logger]:
    """Return the class of a logger by name, one of :data:`LOGGERS`.

    Raises:
        UsageError: What it needs is not installed.
    """
    found: type[Logger] = importlib.import_module(f"{__name__}.{name}").RunLogger
    found.check_installed()
    return found

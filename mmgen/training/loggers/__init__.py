"""Loggers that show the log of a run elsewhere, one module each: a page beside it, or another program.

The libraries of programs are extras of the same names, imported on use.
"""

import importlib

from mmgen.training.loggers._base import Logger, RunFacts

__all__ = ["LOGGERS", "Logger", "RunFacts", "logger_class"]

LOGGERS = ("page", "tensorboard", "wandb", "mlflow")


def logger_class(name: str) -> type[Logger]:
    """Return the class of the logger called ``name``, one of :data:`LOGGERS`.

    Raises:
        UsageError: Its library is not installed.
    """
    found: type[Logger] = importlib.import_module(f"{__name__}.{name}").RunLogger
    found.check_installed()
    return found

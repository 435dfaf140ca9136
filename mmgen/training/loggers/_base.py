"""The base class of loggers."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mmgen.artifacts.files import write_text_atomic
from mmgen.core.elsewhere import outside_current_folder
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.parsing import MalformedError, read_text

__all__ = ["Logger", "RunFacts", "run_id"]


@dataclass(frozen=True)
class RunFacts:
    """Name, folder and settings of a run, from which a logger starts.

    Attributes:
        name: Name of the artifact without its ending: "telbo-seed1".
        folder: Folder of the run for files of loggers, beside the log.
        settings: All settings of the run, nested, including the seed.
        after_step: Number of steps already logged; above 0 if the run continues.
        history: Steps already logged, each with its numbers by name.
        quantity: Name for people of what is maximised, which is "bound" among the numbers; in nats per example.
    """

    name: str
    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    after_step: int = 0
    history: Sequence[tuple[int, Mapping[str, float]]] = ()
    quantity: str = "bound"


class Logger(ABC):
    """Base of loggers, which send the numbers of one run to another program.

    Args:
        run: The run; with ``after_step`` above 0 the logger continues its own run.

    Raises:
        OSError: A file cannot be written.
        UsageError: The library cannot start a run: no account, no server.
    """

    name: ClassVar[str]
    """Name for ``--log-to``, and of the extra to install."""
    library: ClassVar[str]
    """Name of the library's module; "" if it needs none."""

    @abstractmethod
    def __init__(self, run: RunFacts) -> None: ...

    @classmethod
    def check_installed(cls) -> None:
        """Refuse a logger whose library is not installed."""
        if not cls.library:
            return
        try:
            with outside_current_folder():
                importlib.import_module(cls.library)
        except ImportError:
            raise UsageError(
                f"training.log_to (--log-to) got '{cls.name}', which is not installed: {how_to_install(cls.name)}; or "
                "leave it out"
            ) from None

    @abstractmethod
    def write(self, step: int, numbers: Mapping[str, float]) -> None:
        """Record the numbers of one step."""

    def show(self, draw: Callable[[], Mapping[str, np.ndarray]]) -> None:  # noqa: B027 - most loggers show by themselves
        """Show what was written; called after numbers of training or validation.

        Args:
            draw: Draws rows of pictures [n, C, H, W] from 0 to 1 by title, which takes as long as decoding them.
        """

    @classmethod
    def describe_place(cls, folder: Path) -> str:
        """Return a sentence for people on where to look at the run, whose folder is given; "" if there is none."""
        return ""

    @abstractmethod
    def close(self, finished: bool) -> None:
        """End the log; ``finished`` is False for a run that was interrupted or failed, and may continue."""


def run_id(run: RunFacts, logger: str, new_id: str = "") -> str:
    """Return the id of a continued run at its logger's program, as stored before; store and return ``new_id`` else."""
    path = run.folder / f"{logger}-run"
    try:
        if run.after_step and path.exists() and (stored_id := read_text(path).strip()):
            return stored_id
    except MalformedError as error:
        raise ArtifactError(f"{path} is no id of a run: {error}; remove it") from None
    if new_id:
        write_text_atomic(path, new_id)
    return new_id

"""What every logger is: a place that gets the numbers of a run, and can be told to go on with it."""

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mmgen.artifacts.files import write_text_atomic
from mmgen.core.elsewhere import outside_current_folder
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.parsing import MalformedError, read_text

__all__ = ["Logger", "RunFacts", "run_id"]


@dataclass(frozen=True)
class RunFacts:
    """Name, folder and settings of a run, as loggers get them.

    Attributes:
        name: What is made, without its ending: "telbo-seed1".
        folder: A folder of the run's own for what loggers keep, beside the log.
        settings: Everything that determines the run, nested, the seed among it.
        after_step: Steps that an earlier part of the run has logged; 0 where it begins.
    """

    name: str
    folder: Path
    settings: Mapping[str, Any] = field(default_factory=dict)
    after_step: int = 0


class Logger(ABC):
    """Base of loggers, which send the numbers of one run to another program.

    Args:
        run: The run; where it goes on (``after_step``), so does the one there.

    Raises:
        OSError: The file system refuses.
        UsageError: The library refuses: no account, no server.
    """

    name: ClassVar[str]
    """Name of the extra, and of what ``--log-to`` asks for."""
    library: ClassVar[str]
    """The module that is needed."""

    @abstractmethod
    def __init__(self, run: RunFacts) -> None: ...

    @classmethod
    def check_installed(cls) -> None:
        """Raise a UsageError if the logger's library is not installed."""
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

    @abstractmethod
    def close(self, finished: bool) -> None:
        """End the log; ``finished`` is False for a run that was interrupted or failed, and may continue."""


def run_id(run: RunFacts, logger: str, new_id: str = "") -> str:
    """Return the id of a run at a logger from its folder, if the run continues; else store ``new_id`` and return it."""
    path = run.folder / f"{logger}-run"
    try:
        if run.after_step and path.exists() and (stored_id := read_text(path).strip()):
            return stored_id
    except MalformedError as error:
        raise ArtifactError(f"{path} is no id of a run: {error}; remove it") from None
    if new_id:
        write_text_atomic(path, new_id)
    return new_id

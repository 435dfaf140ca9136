"""The log of a run: JSON lines beside the checkpoint, and loggers on request."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mmgen.artifacts.content_id import one_line_json
from mmgen.artifacts.files import make_internal_folder, open_internal_file, write_error, write_text_atomic
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import LOG_ENDING, MAX_LOG_BYTES, MalformedError, parse_json, printable, read_text
from mmgen.training.loggers import Logger, RunFacts, logger

__all__ = ["RunLog", "log_path"]


def log_path(out: Path) -> Path:
    """Return the path of a run's log: ``model.log.jsonl`` for ``model.safetensors``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}{LOG_ENDING}")


class RunLog:
    """The log of a run: one JSON object a line, each with a ``step``.

    The run's own file has to be written. A logger that fails later than at the start (no network, an expired account, a
    full disk) is left out from there on with a warning, and the training goes on.

    Args:
        path: The log file.
        after_step: Lines beyond this step are dropped first: a resumed run writes them again. 0 begins anew.
        log_to: Names of loggers that get the numbers too (:mod:`mmgen.training.loggers`).
        settings: Everything that determines the run, for them.

    Raises:
        ArtifactError: The file system refuses (full, read-only, no such folder).
        UsageError: A logger is not installed, or refuses.
    """

    def __init__(
        self, path: Path, after_step: int, log_to: Sequence[str] = (), settings: Mapping[str, Any] | None = None
    ) -> None:
        self.path, self.finished = path, False
        wanted = [logger(name) for name in log_to]  # what is not installed is said before anything is written
        write_text_atomic(path, "".join(_lines(path, after_step)) if after_step else "")
        folder = path.with_suffix("")
        run = RunFacts(path.name.removesuffix(LOG_ENDING), folder, settings or {}, after_step)
        try:
            if wanted:
                make_internal_folder(folder)
            if not after_step and not folder.is_symlink():
                for old in folder.glob("events.out.tfevents.*"):
                    old.unlink()
            self._file = open(path, "a", encoding="utf-8", opener=open_internal_file)  # noqa: SIM115 - closed by close()
            self._loggers: list[Logger] = []
            try:
                for one in wanted:
                    self._loggers.append(one(run))
            except BaseException:
                self.close()  # those that have begun
                raise
        except OSError as error:
            raise write_error(Path(error.filename or path), error) from error

    def write(self, record: dict[str, Any]) -> None:
        """Append one line and write it to disk at once, so that a killed run loses at most this line.

        Raises:
            ArtifactError: The file system refuses.
        """
        try:
            self._file.write(one_line_json(record) + "\n")
            self._file.flush()
        except OSError as error:
            raise write_error(self.path, error) from error
        numbers = dict(_scalars(record))
        for one in list(self._loggers):
            self._call_logger(one, partial(one.write, record["step"], numbers))

    def close(self) -> None:
        """Close the log and delete it if it has no line; a failed write has been reported already."""
        with suppress(OSError):
            self._file.close()
            if not self.path.stat().st_size:  # the run failed before its first line
                self.path.unlink()
        for one in list(self._loggers):
            self._call_logger(one, partial(one.close, self.finished))

    def _call_logger(self, logger: Logger, call: Callable[[], None]) -> None:
        """Call a logger; after any error it is not called again."""
        try:
            call()
        except Exception as error:  # of libraries that talk to servers, each with errors of its own
            self._loggers.remove(logger)
            with suppress(Exception):
                logger.close(False)
            why = printable(next(iter(str(error).splitlines()), "") or type(error).__name__, 200)
            warnings.warn(
                f"{logger.name} fails ({why}) and gets no more of this run; {self.path} has all of it", stacklevel=2
            )


def _lines(path: Path, last: int) -> list[str]:
    """Return the complete lines of an earlier log up to step ``last``."""
    lines = []
    try:
        text = read_text(path, MAX_LOG_BYTES, errors="replace")
    except OSError:  # an earlier log that is gone is not missed
        return []
    except MalformedError as error:
        raise ArtifactError(
            f"{path} is no log that this run could continue ({error}); remove it or use another --output"
        ) from None
    for line in text.splitlines():
        try:
            if parse_json(line)["step"] <= last:
                lines.append(line + "\n")
        except (MalformedError, KeyError, TypeError):
            continue  # a line that a killed run did not finish
    return lines


def _scalars(record: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    scalars: list[tuple[str, float]] = []
    for key, value in record.items():
        if isinstance(value, dict):
            scalars += _scalars(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and key != "step":
            scalars.append((f"{prefix}{key}", float(value)))
    return scalars

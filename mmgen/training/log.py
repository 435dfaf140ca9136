"""The log of a run: JSON lines beside the checkpoint, and loggers on request."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from mmgen.artifacts.content_id import one_line_json
from mmgen.artifacts.files import make_internal_folder, make_write_error, open_internal_file, write_text_atomic
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import LOG_ENDING, MAX_LOG_BYTES, MalformedError, parse_json, printable, read_text
from mmgen.training.loggers import Logger, RunFacts, logger_class

__all__ = ["RunLog", "log_path"]


def log_path(out: Path) -> Path:
    """Return the path of a run's log: ``model.log.jsonl`` for ``model.safetensors``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}{LOG_ENDING}")


class RunLog:
    """Log of a run: a file with a JSON object on each line, and loggers of other programs if the user asks for them.

    If a logger fails during the run (no network, an expired account, a full disk), it is dropped with a warning and
    training goes on. If the log file itself cannot be written, training stops.

    Args:
        path: The log file.
        after_step: Lines beyond this step are removed first, since a resumed run writes them again; 0 begins anew.
        log_to: Names of further loggers (:mod:`mmgen.training.loggers`).
        settings: All settings of the run, for loggers.

    Raises:
        ArtifactError: The log file cannot be written (full disk, read-only, no such folder).
        UsageError: A logger is not installed, or cannot start.
    """

    def __init__(
        self,
        path: Path,
        after_step: int,
        log_to: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.path, self.finished = path, False
        logger_types = [
            logger_class(name) for name in log_to
        ]  # what is not installed is said before anything is written
        lines = _read_lines(path, after_step) if after_step else []
        write_text_atomic(path, "".join(lines))
        folder = path.with_suffix("")
        run = RunFacts(path.name.removesuffix(LOG_ENDING), folder, settings or {}, after_step)
        try:
            if logger_types:
                make_internal_folder(folder)
            if not after_step and not folder.is_symlink():
                for old in folder.glob("events.out.tfevents.*"):
                    old.unlink()
            self._file = open(path, "a", encoding="utf-8", opener=open_internal_file)  # noqa: SIM115 - closed by close()
            self._loggers: list[Logger] = []
            try:
                for logger_type in logger_types:
                    self._loggers.append(logger_type(run))
            except BaseException:
                self.close()  # those that have begun
                raise
        except OSError as error:
            raise make_write_error(Path(error.filename or path), error) from error

    def write(self, record: dict[str, Any]) -> None:
        """Append one line, on disk at once, so that a killed run loses at most this line.

        Raises:
            ArtifactError: The file cannot be written.
        """
        try:
            self._file.write(one_line_json(record) + "\n")
            self._file.flush()
        except OSError as error:
            raise make_write_error(self.path, error) from error
        numbers = dict(_flatten_numbers(record))
        for one in list(self._loggers):
            self._call_logger(one, partial(one.write, record["step"], numbers))

    def close(self) -> None:
        """Close the log; delete it if it is empty."""
        with suppress(OSError):
            self._file.close()
            if not self.path.stat().st_size:  # the run failed before its first line
                self.path.unlink()
        for current in list(self._loggers):
            self._call_logger(current, partial(current.close, self.finished))

    def _call_logger(self, logger: Logger, call: Callable[[], None]) -> None:
        """Call a logger; drop it after any error."""
        try:
            call()
        except Exception as error:  # of libraries that talk to servers, each with errors of its own
            self._loggers.remove(logger)
            with suppress(Exception):
                logger.close(False)
            reason = printable(next(iter(str(error).splitlines()), "") or type(error).__name__, 200)
            warnings.warn(
                f"{logger.name} fails ({reason}) and gets no more of this run; {self.path} has all of it", stacklevel=2
            )


def _read_lines(path: Path, last_step: int) -> list[str]:
    """Return the complete lines of an earlier log up to step ``last_step``."""
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
            if parse_json(line)["step"] <= last_step:
                lines.append(line + "\n")
        except (MalformedError, KeyError, TypeError):
            continue  # a line that a killed run did not finish
    return lines


def _flatten_numbers(record: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """Return all numbers of a nested record as pairs of a name, such as "terms/kl", and the number."""
    scalars: list[tuple[str, float]] = []
    for key, value in record.items():
        if isinstance(value, dict):
            scalars += _flatten_numbers(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and key != "step":
            scalars.append((f"{prefix}{key}", float(value)))
    return scalars

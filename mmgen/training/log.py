"""The log of a run: JSON lines beside the checkpoint, TensorBoard on request."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from mmgen.artifacts.files import cannot_write, write_text_atomic
from mmgen.artifacts.header import line_json
from mmgen.errors import ArtifactError, UsageError
from mmgen.parsing import LOG_ENDING, MAX_LOG_BYTES, Malformed, parse_json, read_bounded

__all__ = ["RunLog", "log_path"]


def log_path(out: Path) -> Path:
    """Where the log of the run that makes ``out`` is kept: ``model.safetensors`` has ``model.log.jsonl``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}{LOG_ENDING}")


class RunLog:
    """Appends one JSON object a line; each has a ``step``.

    Args:
        path: The log file.
        after_step: Lines beyond this step are dropped first: a resumed run writes them again. 0 begins anew.
        tensorboard: Also write TensorBoard events into a folder beside the log.

    Raises:
        ArtifactError: The file system refuses (full, read-only, no such folder).
        UsageError: TensorBoard is wanted and not installed.
    """

    def __init__(self, path: Path, after_step: int, tensorboard: bool) -> None:
        self.path = path
        write_text_atomic(path, "".join(_lines(path, after_step)) if after_step else "")
        events = path.with_suffix("")
        try:
            if not after_step:
                for old in events.glob("events.out.tfevents.*"):
                    old.unlink()
            self._board: Any = _board(events, after_step) if tensorboard else None
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise cannot_write(Path(error.filename or path), error) from error

    def write(self, record: dict[str, Any]) -> None:
        """Append one line and flush it, so that a killed run loses at most the line being written.

        Raises:
            ArtifactError: The file system refuses.
        """
        try:
            self._file.write(line_json(record) + "\n")
            self._file.flush()
        except OSError as error:
            raise cannot_write(self.path, error) from error
        if self._board is not None:
            for name, value in _scalars(record):
                self._board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        """Close the log; a failed write has been reported already. A log without a line is removed."""
        with suppress(OSError):
            self._file.close()
            if not self.path.stat().st_size:  # the run failed before its first line
                self.path.unlink()
        if self._board is not None:
            self._board.close()


def _lines(path: Path, last: int) -> list[str]:
    """The whole lines of an earlier log up to step ``last``."""
    kept = []
    try:
        text = read_bounded(path, MAX_LOG_BYTES, errors="replace")
    except OSError:  # an earlier log that is gone is not missed
        return []
    except Malformed as error:
        raise ArtifactError(
            f"{path} is no log that this run could continue ({error}); remove it or use another --output"
        ) from None
    for line in text.splitlines():
        try:
            if parse_json(line)["step"] <= last:
                kept.append(line + "\n")
        except (Malformed, KeyError, TypeError):
            continue  # a line that a killed run did not finish
    return kept


def _board(folder: Path, after_step: int) -> Any:
    """A writer of TensorBoard events; what ``folder`` has beyond ``after_step`` is no longer shown."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UsageError("training.tensorboard needs TensorBoard: pip install 'mmgen-toolkit[tensorboard]'") from None
    return SummaryWriter(str(folder), purge_step=after_step + 1 if after_step else None)


def _scalars(record: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in record.items():
        if isinstance(value, dict):
            found += _scalars(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and key != "step":
            found.append((f"{prefix}{key}", float(value)))
    return found

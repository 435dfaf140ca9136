"""The log of a run: JSON lines beside the checkpoint, TensorBoard on request."""

import json
from pathlib import Path
from typing import Any

from mmgen.errors import UsageError

__all__ = ["RunLog", "log_path"]


def log_path(out: Path) -> Path:
    """Where the log of the run that makes ``out`` is kept: ``model.safetensors`` has ``model.log.jsonl``."""
    return out.with_name(f"{out.name.removesuffix('.safetensors')}.log.jsonl")


class RunLog:
    """Appends one JSON object a line; each has a ``step``.

    Args:
        path: The log file.
        after_step: Lines beyond this step are dropped first: a resumed run writes them again.
        tensorboard: Also write TensorBoard events into a folder beside the log.
    """

    def __init__(self, path: Path, after_step: int, tensorboard: bool) -> None:
        kept = []
        if after_step and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    if json.loads(line)["step"] <= after_step:
                        kept.append(line + "\n")
                except (json.JSONDecodeError, KeyError, TypeError):
                    continue  # a line that a killed run did not finish
        path.write_text("".join(kept), encoding="utf-8")
        self._file = path.open("a", encoding="utf-8")
        self._board: Any = None
        if tensorboard:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise UsageError("training.tensorboard needs TensorBoard: pip install 'mmgen[tensorboard]'") from None
            self._board = SummaryWriter(str(path.with_suffix("")))

    def write(self, record: dict[str, Any]) -> None:
        """Append one line and flush it, so that a killed run loses at most the line being written."""
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in _scalars(record):
                self._board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def _scalars(record: dict[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in record.items():
        if isinstance(value, dict):
            found += _scalars(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and key != "step":
            found.append((f"{prefix}{key}", float(value)))
    return found

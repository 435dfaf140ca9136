"""Memory of verified files: each is read once per change, not once per command.

What is remembered is the file (its path, device and number), its size and when it was last changed, together with the
content id. Times of change are those that the system keeps: they cannot be set back, as times of modification can.
"""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["was_verified", "record_verified", "file_stamp"]

_METHOD = "content id 2"  # what is remembered of another way of reading does not count
_SETTLED_NS = 100_000_000
"""Clocks of file systems tick up to some 10 ms apart: a file younger than this may yet change and look the same."""
_MOST = 4096

_known: set[str] = set()


def file_stamp(path: Path, content_id: str) -> str | None:
    """Return a text that identifies a file's state on disk; None if a later change might not alter the text.

    Take it before reading and again afterwards: the file did not change in between if both are the same.
    """
    try:
        real = os.path.realpath(path)
        status = os.stat(real)
    except (OSError, ValueError):
        return None
    if time.time_ns() - status.st_ctime_ns < _SETTLED_NS:
        return None
    parts = (
        _METHOD, content_id, real, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns,
    )  # fmt: skip
    return hashlib.sha256("\n".join(map(str, parts)).encode("utf-8", "surrogateescape")).hexdigest()


def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    named = os.environ.get("MMGEN_CACHE")
    return (Path(named) if named else user_cache_path("mmgen", appauthor=False)) / "verified"


def was_verified(stamp: str | None) -> bool:
    """Return True if a file in the state ``stamp`` was verified, by this process or an earlier one."""
    if stamp is None:
        return False
    if stamp not in _known:
        with suppress(OSError, RuntimeError):
            if (_cache_folder() / stamp).is_file():
                _known.add(stamp)
    return stamp in _known


def record_verified(stamp: str | None) -> None:
    """Record that a file in the state ``stamp`` was verified; a cache that cannot be written is ignored."""
    if stamp is None:
        return
    _known.add(stamp)
    with suppress(OSError, RuntimeError):
        folder = _cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        _prune_records(folder)
        (folder / stamp).touch()


def _prune_records(folder: Path) -> None:
    """Delete the older half of the records of verified files if there are too many."""
    entries = list(os.scandir(folder))
    if len(entries) >= _MOST:
        for entry in sorted(entries, key=lambda entry: entry.stat().st_mtime)[: _MOST // 2]:
            with suppress(OSError):
                os.unlink(entry.path)

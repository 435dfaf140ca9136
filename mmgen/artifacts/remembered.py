"""Memory of verified files: each is read once per change, not once per command.

What is remembered is the file (its path, device and number), its size and when it was last changed, together with the
content id. Times of change are those that the system keeps: they cannot be set back, as times of modification can.
"""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["is_remembered", "remember", "stamp"]

_METHOD = "content id 2"  # what is remembered of another way of reading does not count
_SETTLED_NS = 100_000_000
"""Clocks of file systems tick up to some 10 ms apart: a file younger than this may yet change and look the same."""
_MOST = 4096

_known: set[str] = set()


def stamp(path: Path, content_id: str) -> str | None:
    """Return an identifier of a file's present state; None if a later change might go unnoticed.

    Ask before reading, and again afterwards: what was read is what the stamp says if both are the same.
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


def _folder() -> Path:
    from platformdirs import user_cache_path

    named = os.environ.get("MMGEN_CACHE")
    return (Path(named) if named else user_cache_path("mmgen", appauthor=False)) / "verified"


def is_remembered(name: str | None) -> bool:
    """Return whether a state of a file was verified, by this process or an earlier one."""
    if name is None:
        return False
    if name not in _known:
        with suppress(OSError, RuntimeError):
            if (_folder() / name).is_file():
                _known.add(name)
    return name in _known


def remember(name: str | None) -> None:
    """Record that a state of a file was verified; failures of the cache are ignored."""
    if name is None:
        return
    _known.add(name)
    with suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        _make_room(folder)
        (folder / name).touch()


def _make_room(folder: Path) -> None:
    """Delete the older half of too many records; each costs one more reading of a file."""
    entries = list(os.scandir(folder))
    if len(entries) >= _MOST:
        for entry in sorted(entries, key=lambda entry: entry.stat().st_mtime)[: _MOST // 2]:
            with suppress(OSError):
                os.unlink(entry.path)

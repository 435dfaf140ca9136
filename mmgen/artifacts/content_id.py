"""Content ids: hashes of what files hold, and the memory of files that were verified against theirs."""

import hashlib
import json
import math
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

from mmgen.core.errors import UsageError
from mmgen.core.surroundings import cache_folder


@dataclass(frozen=True)
class Parent:
    """Record, in an artifact's header, of one file from which the artifact was made.

    Attributes:
        role: What the parent was to the child ("dataset", "model", "latents").
        kind: The parent's kind, one of :data:`mmgen.artifacts.header.KINDS`.
        content_id: The parent's content id, by which a candidate is verified.
        path: Where the parent was, relative to the child's folder where possible, with forward slashes.
        command: The command that makes the parent again.
    """

    role: str
    kind: str
    content_id: str
    path: str
    command: str


class ContentHash:
    """Hash of an artifact's settings, facts, parents and arrays; its hex digest is the artifact's content id.

    It covers kind, settings, seed, the roles and content ids of the parents, the facts without times, and the name,
    type, shape, little-endian bytes in row order and texts (units, vocabularies) of every array.

    Args:
        kind: One of :data:`mmgen.artifacts.header.KINDS`.
        settings: Effective settings.
        seed: Seed.
        parents: Files that the artifact was made from.
        facts: Measured values; times are left out, see :func:`select_hashed_facts`.
    """

    def __init__(
        self,
        kind: str,
        settings: Mapping[str, Any],
        seed: int,
        parents: Iterable[Parent] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        lineage = sorted([parent.role, parent.content_id] for parent in parents)
        head: dict[str, Any] = {"kind": kind, "settings": settings, "seed": seed, "parents": lineage}
        covered = select_hashed_facts(kind, facts or {})
        self._head = canonical_json(head | ({"facts": covered} if covered else {}))
        self._arrays: dict[str, str] = {}

    def add(
        self, name: str, dtype: str, shape: Iterable[int], digest: str, texts: Mapping[str, str] | None = None
    ) -> None:
        """Add one array by the sha256 in hex of its bytes, and the texts beside it."""
        assert name not in self._arrays, f"array '{name}' is hashed twice"
        self._arrays[name] = canonical_json([name, dtype, list(shape), digest, texts or {}])

    def add_array(self, name: str, array: np.ndarray) -> None:
        """Add a whole array in memory."""
        stored = little_endian(array)
        digest = hashlib.sha256(bytes_of_array(stored)).hexdigest()
        self.add(name, dtype_name(stored.dtype), stored.shape, digest)

    def hexdigest(self) -> str:
        """Return the content id, which covers everything added so far."""
        lines = [self._head, *(self._arrays[name] for name in sorted(self._arrays))]
        return hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()


def select_hashed_facts(kind: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that enter the content id: all except times, which differ in every run.

    A training state covers its times too, because the time used decides how the run goes on.

    Example:
        >>> select_hashed_facts("model", {"step": 10, "seconds": 1.5, "total_seconds": 2.0})
        {'step': 10}
    """
    times = () if kind == "training-state" else [n for n in facts if n == "seconds" or n.endswith("_seconds")]
    return {name: value for name, value in facts.items() if name not in times}


def little_endian(array: np.ndarray) -> np.ndarray:
    """Return ``array`` in little-endian byte order, the order of all files and hashes."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def bytes_of_array(array: np.ndarray) -> memoryview:
    """Return the bytes of ``array`` in row order, without a copy if they are stored so."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def dtype_name(dtype: np.dtype) -> str:
    """Return the name of an array's type without byte order ("uint8", "float32")."""
    return dtype.newbyteorder("=").name


def _to_json_value(value: Any) -> Any:
    """Convert to JSON values: numpy scalars to numbers, paths to text, NaN and infinities to null."""
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_json_value(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, np.ndarray | np.generic):
        return _to_json_value(value.tolist())
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def canonical_json(value: Any) -> str:
    """Return ``value`` as the one JSON text that stands for equal values: ASCII, sorted keys, no blanks."""
    return json.dumps(_to_json_value(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def one_line_json(value: Any) -> str:
    """Return ``value`` as one line of JSON in the order of its keys; NaN and infinities become null."""
    return json.dumps(_to_json_value(value), allow_nan=False)


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


def was_verified(stamp: str | None) -> bool:
    """Return True if a file in the state ``stamp`` was verified, by this process or an earlier one."""
    if stamp is None:
        return False
    if stamp not in _known:
        with suppress(OSError, UsageError):
            if (cache_folder("verified") / stamp).is_file():
                _known.add(stamp)
    return stamp in _known


def record_verified(stamp: str | None) -> None:
    """Record that a file in the state ``stamp`` was verified; a cache that cannot be written is ignored."""
    if stamp is None:
        return
    _known.add(stamp)
    with suppress(OSError, UsageError):
        folder = cache_folder("verified")
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

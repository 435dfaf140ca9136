"""Content ids: sha256 of what an artifact holds, whatever its chunks, compression, path or time."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from pydantic.dataclasses import dataclass

__all__ = ["ContentHash", "Parent", "canonical_json", "one_line_json"]


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

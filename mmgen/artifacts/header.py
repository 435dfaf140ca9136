"""The header that every artifact carries: what it is, from which settings and parents, and its content id.

Headers are JSON text, in a root attribute of an HDF5 file or in the metadata of a safetensors file. They hold names
and numbers only: nothing in them is ever imported, evaluated or unpickled.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from mmgen import __version__
from mmgen.errors import ArtifactError
from mmgen.registry import unknown_name

__all__ = ["FORMAT_VERSION", "KINDS", "ContentHash", "Header", "Parent", "from_json", "make_header", "to_json"]

FORMAT_VERSION = 1
"""Newest version of the file formats in docs/artifacts.md that this program reads, and the one that it writes."""

KINDS: dict[str, str] = {
    "dataset": "mmgen make-data",
    "latents": "mmgen fit-aggregate",
    "samples": "mmgen sample",
    "model": "mmgen train",
    "aggregate": "mmgen fit-aggregate",
    "classifier": "mmgen train-classifier",
    "training-state": "mmgen train",
}
"""Every kind of artifact and the command that makes one. The first three are HDF5 files, the others safetensors."""

HDF5_KINDS = ("dataset", "latents", "samples")

MAX_HEADER_BYTES = 16 * 2**20
"""No honest header comes near this; a larger one is refused unread."""


@dataclass(frozen=True)
class Parent:
    """A file that an artifact was made from.

    Attributes:
        role: What the parent was to the child ("dataset", "model", "latents").
        kind: The parent's kind, one of :data:`KINDS`.
        content_id: The parent's content id, by which a candidate is verified.
        path: Where the parent was, relative to the child's folder where possible, with forward slashes.
        command: The command that makes the parent again.
    """

    role: str
    kind: str
    content_id: str
    path: str
    command: str


@dataclass(frozen=True)
class Header:
    """What an artifact says about itself.

    Attributes:
        kind: One of :data:`KINDS`.
        format_version: Version of the file format (docs/artifacts.md).
        program_version: Version of mmgen that wrote the file.
        content_id: sha256 in hex over kind, settings, seed, parents and every array; see :class:`ContentHash`.
        seed: The seed that everything random in it came from.
        settings: The effective settings, plain JSON values.
        parents: The files that it was made from.
        facts: What was measured while making it (accuracy, steps done, seconds); not part of the content id.
        command: The command that makes it again.
    """

    kind: str
    format_version: int
    program_version: str
    content_id: str
    seed: int
    settings: dict[str, Any]
    parents: tuple[Parent, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    command: str = ""


class ContentHash:
    """The content id: a hash of what an artifact holds, not of how the file stores it.

    It covers kind, settings, seed, the roles and content ids of the parents, and of every array its name, type, shape,
    little-endian bytes in row order and texts (units, vocabularies). It does not depend on chunks, compression,
    workers, path, time or facts.

    Args:
        kind: One of :data:`KINDS`.
        settings: Effective settings.
        seed: Seed.
        parents: Files that the artifact is made from.
    """

    def __init__(self, kind: str, settings: Mapping[str, Any], seed: int, parents: Iterable[Parent] = ()) -> None:
        lineage = sorted([parent.role, parent.content_id] for parent in parents)
        self._head = canonical_json({"kind": kind, "settings": settings, "seed": seed, "parents": lineage})
        self._arrays: dict[str, str] = {}

    def add(
        self, name: str, dtype: str, shape: Iterable[int], digest: str, texts: Mapping[str, str] | None = None
    ) -> None:
        """Cover one array: ``digest`` is the sha256 in hex of its bytes, ``texts`` what is written beside it."""
        assert name not in self._arrays, f"array '{name}' is hashed twice"
        self._arrays[name] = canonical_json([name, dtype, list(shape), digest, texts or {}])

    def add_array(self, name: str, array: np.ndarray) -> None:
        """Cover a whole array that is in memory."""
        stored = little_endian(array)
        digest = hashlib.sha256(raw_bytes(stored)).hexdigest()
        self.add(name, dtype_name(stored.dtype), stored.shape, digest)

    def hexdigest(self) -> str:
        lines = [self._head, *(self._arrays[name] for name in sorted(self._arrays))]
        return hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()


def little_endian(array: np.ndarray) -> np.ndarray:
    """``array`` in little-endian byte order, the one order of all files and hashes."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def raw_bytes(array: np.ndarray) -> memoryview:
    """The bytes of ``array`` in row order, without a copy where they lie so already."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def dtype_name(dtype: np.dtype) -> str:
    """Name of an array's type without byte order ("uint8", "float32")."""
    return dtype.newbyteorder("=").name


def _plain(value: Any) -> Any:
    """``value`` as JSON can say it: numpy scalars become numbers, paths text; what is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def canonical_json(value: Any) -> str:
    """The one spelling of ``value`` in JSON: ASCII, sorted keys, no blanks."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def to_json(header: Header) -> str:
    """The header as ASCII JSON text."""
    return canonical_json(asdict(header))


def make_header(
    kind: str,
    content: ContentHash,
    *,
    settings: Mapping[str, Any],
    seed: int,
    parents: Iterable[Parent] = (),
    facts: Mapping[str, Any] | None = None,
    command: str = "",
) -> Header:
    """The header of an artifact written now, with its values as they will be read back."""
    assert kind in KINDS, f"'{kind}' is no kind of artifact"
    return Header(
        kind=kind,
        format_version=FORMAT_VERSION,
        program_version=__version__,
        content_id=content.hexdigest(),
        seed=int(seed),
        settings=json.loads(canonical_json(settings)),
        parents=tuple(parents),
        facts=json.loads(canonical_json(facts or {})),
        command=command,
    )


def printable(text: str, limit: int = 300) -> str:
    """Text out of a file, safe to put into a message: no control characters, bounded length."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:limit])
    return shown if len(text) <= limit else shown + "..."


def parse_json(text: str | bytes, what: str) -> Any:
    """Strict JSON out of a file; ``what`` starts the message ("data.h5: the header").

    Raises:
        ArtifactError: It is no JSON, too large, too deep, or holds NaN or Infinity.
    """

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not a JSON number")

    if len(text) > MAX_HEADER_BYTES:
        raise ArtifactError(f"{what} has {len(text)} bytes, expected at most {MAX_HEADER_BYTES}; get the file again")
    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError, MemoryError) as error:
        reason = printable(str(error), 120)
        raise ArtifactError(
            f"{what} is not valid JSON ({reason}), the file is damaged; make or copy it again"
        ) from None


_TEXT = {"kind", "program_version", "content_id", "command"}
_SHAPES: dict[str, type] = {"seed": int, "settings": dict, "parents": list, "facts": dict} | dict.fromkeys(_TEXT, str)
_PARENT_KEYS = ("role", "kind", "content_id", "path", "command")
_CONTENT_ID = re.compile(r"[0-9a-f]{64}\Z")


def from_json(text: str | bytes, path: Path) -> Header:
    """The header out of the text in file ``path``.

    Raises:
        ArtifactError: It is malformed, of a newer format version or of an unknown kind.
    """
    values = parse_json(text, f"{path}: the mmgen header")
    if not isinstance(values, dict):
        raise ArtifactError(
            f"{path}: the mmgen header is a {type(values).__name__}, expected a JSON object; make it again"
        )
    # The version comes first: whatever a newer format changes, it keeps these two keys, and we can say what to install.
    version, program = values.get("format_version"), values.get("program_version")
    if type(version) is not int or version < 1:
        raise ArtifactError(
            f"{path}: the header's format_version is {printable(repr(version), 40)}, expected a whole number from 1; "
            "make the file again"
        )
    if version > FORMAT_VERSION:
        newer = printable(program, 40) if isinstance(program, str) else "newer than this one"
        raise ArtifactError(
            f"{path} has format version {version}, written by mmgen {newer}, but mmgen {__version__} reads versions "
            f"up to {FORMAT_VERSION}; install mmgen {newer} or later (pip install --upgrade 'mmgen>={newer}')"
        )
    for key, expected in _SHAPES.items():
        if type(values.get(key)) is not expected:
            got = "missing" if key not in values else f"a {type(values[key]).__name__}"
            raise ArtifactError(f"{path}: the header's '{key}' is {got}, expected {expected.__name__}; make it again")
    if values["kind"] not in KINDS:
        raise ArtifactError(f"{path}: {unknown_name('kind of artifact', printable(values['kind'], 40), list(KINDS))}")
    if not _CONTENT_ID.match(values["content_id"]):
        raise ArtifactError(f"{path}: the header's content_id is not 64 hexadecimal digits; make the file again")
    for parent in values["parents"]:
        if not isinstance(parent, dict) or any(not isinstance(parent.get(key), str) for key in _PARENT_KEYS):
            raise ArtifactError(
                f"{path}: a parent in the header lacks one of the texts {', '.join(_PARENT_KEYS)}; make the file again"
            )
    return Header(
        format_version=version,
        parents=tuple(Parent(**{key: parent[key] for key in _PARENT_KEYS}) for parent in values["parents"]),
        **{key: values[key] for key in _SHAPES if key != "parents"},
    )

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

from mmgen.artifacts.members import OutsideMember, members_of, parse_members
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import MAX_TEXT_BYTES as MAX_HEADER_BYTES, Malformed, parse_json as parse_strictly, printable
from mmgen.core.version import __version__
from mmgen.settings.registry import unknown_name

__all__ = [
    "FORMAT_VERSION",
    "KINDS",
    "MAX_HEADER_BYTES",
    "ContentHash",
    "Header",
    "Parent",
    "content_of",
    "from_json",
    "line_json",
    "make_header",
    "parse_json",
    "printable",
    "to_json",
]

FORMAT_VERSION = 2
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

FIRST_WITH_FACTS = 2
"""Format version from which the facts are under the content id, and the whole header under a checksum."""

_MAX_PARENTS = 64
"""No honest file has more: a program looks for each of them."""


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
        content_id: sha256 in hex over kind, settings, seed, parents, facts and every array; see :class:`ContentHash`.
        seed: The seed that everything random in it came from.
        settings: The effective settings, plain JSON values.
        parents: The files that it was made from.
        facts: What was measured while making it (accuracy, steps done, seconds).
        command: The command that makes it again.
        members: What it was made with that is not part of mmgen; not under the content id.
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
    members: tuple[OutsideMember, ...] = ()


class ContentHash:
    """The content id: a hash of what an artifact holds, not of how the file stores it.

    It covers kind, settings, seed, the roles and content ids of the parents, the facts but for times, and of every
    array its name, type, shape, little-endian bytes in row order and texts (units, vocabularies). It does not depend on
    chunks, compression, workers, path or time.

    Args:
        kind: One of :data:`KINDS`.
        settings: Effective settings.
        seed: Seed.
        parents: Files that the artifact is made from.
        facts: What was measured; times are left out, see :func:`covered_facts`.
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
        covered = covered_facts(kind, facts or {})
        self._head = canonical_json(head | ({"facts": covered} if covered else {}))
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


def covered_facts(kind: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that a content id covers: all but times, which are never the same twice.

    A training state is its own run's and nobody else's; the time that it has used decides how the run goes on, so there
    times are covered too.

    Example:
        >>> covered_facts("model", {"step": 10, "seconds": 1.5, "total_seconds": 2.0})
        {'step': 10}
    """
    times = () if kind == "training-state" else [n for n in facts if n == "seconds" or n.endswith("_seconds")]
    return {name: value for name, value in facts.items() if name not in times}


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


def line_json(value: Any) -> str:
    """``value`` as one line of JSON that any parser reads, its keys in their order; what is not finite is null."""
    return json.dumps(_plain(value), allow_nan=False)


def to_json(header: Header) -> str:
    """The header as ASCII JSON text, with the checksum of all of it."""
    values = asdict(header) | {"members": [member.to_json() for member in header.members]}
    if not header.members:  # as in files of versions that knew no members from outside
        del values["members"]
    return canonical_json(values | {"checksum": _checksum(values)})


def _checksum(values: Mapping[str, Any]) -> str:
    """sha256 in hex of everything that a header says but for its checksum, also of what a later version adds."""
    text = canonical_json({key: value for key, value in values.items() if key != "checksum"})
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def content_of(header: Header, settings: Mapping[str, Any] | None = None) -> ContentHash:
    """The hash that must come to the content id of the file with this header, once it has covered the arrays.

    Args:
        header: Header of the file.
        settings: What stands for the settings where that is not the header's alone.
    """
    facts = header.facts if header.format_version >= FIRST_WITH_FACTS else None
    settings = header.settings if settings is None else settings
    return ContentHash(header.kind, settings, header.seed, header.parents, facts)


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
        members=members_of(settings),
    )


def parse_json(text: str | bytes, what: str) -> Any:
    """Strict JSON out of a file; ``what`` starts the message ("data.h5: the header").

    Raises:
        ArtifactError: See :func:`mmgen.core.parsing.parse_json`.
    """
    try:
        return parse_strictly(text)
    except Malformed as error:
        raise ArtifactError(f"{what} is not valid JSON ({error}), the file is damaged; make or copy it again") from None


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
            f"up to {FORMAT_VERSION}; install mmgen {newer} or later from where you got this one (in a clone: git pull)"
        )
    for key, expected in _SHAPES.items():
        if type(values.get(key)) is not expected:
            got = "missing" if key not in values else f"a {type(values[key]).__name__}"
            raise ArtifactError(f"{path}: the header's '{key}' is {got}, expected {expected.__name__}; make it again")
    if values["kind"] not in KINDS:
        raise ArtifactError(f"{path}: {unknown_name('kind of artifact', printable(values['kind'], 40), list(KINDS))}")
    if not _CONTENT_ID.match(values["content_id"]):
        raise ArtifactError(f"{path}: the header's content_id is not 64 hexadecimal digits; make the file again")
    _check_parents(values["parents"], path)
    if version >= FIRST_WITH_FACTS and values.get("checksum") != _checksum(values):
        raise ArtifactError(
            f"{path} is damaged: its header does not match its checksum, so something in it was changed; make it again "
            "or copy it again"
        )
    return Header(
        format_version=version,
        parents=tuple(Parent(**{key: parent[key] for key in _PARENT_KEYS}) for parent in values["parents"]),
        members=parse_members(values.get("members", []), path),
        **{key: values[key] for key in _SHAPES if key != "parents"},
    )


def _check_parents(parents: list[Any], path: Path) -> None:
    if len(parents) > _MAX_PARENTS:
        raise ArtifactError(
            f"{path}: the header names {len(parents):,} parents, expected at most {_MAX_PARENTS}; make the file again"
        )
    for parent in parents:
        if not isinstance(parent, dict) or any(not isinstance(parent.get(key), str) for key in _PARENT_KEYS):
            raise ArtifactError(
                f"{path}: a parent in the header lacks one of the texts {', '.join(_PARENT_KEYS)}; make the file again"
            )

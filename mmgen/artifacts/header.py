"""The header of every artifact: kind, settings, seed, parents, facts and content id, as a schema.

Headers are JSON text, in a root attribute of an HDF5 file or in the metadata of a safetensors file. They hold names
and numbers only: nothing in them is imported, evaluated or unpickled.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from mmgen.artifacts.content_id import ContentHash, Parent, canonical_json
from mmgen.artifacts.members import MOST_MEMBERS, OutsideMember, members_of, pattern_validator
from mmgen.core.errors import ArtifactError, FormatVersionError, format_unknown_name
from mmgen.core.parsing import MalformedError, parse_json as parse_strictly, printable
from mmgen.core.version import __version__
from mmgen.settings.config import format_value_fault

__all__ = ["FORMAT_VERSION", "HDF5_KINDS", "KINDS", "Header", "Parent"]

FORMAT_VERSION = 3
"""Version of the file formats in docs/artifacts.md, the only one that this program reads and writes."""

KINDS: dict[str, str] = {
    "dataset": "mmgen make-data",
    "latents": "mmgen fit-aggregate",
    "samples": "mmgen sample",
    "model": "mmgen train",
    "aggregate": "mmgen fit-aggregate",
    "sharpener": "mmgen fit-sharpener",
    "classifier": "mmgen train-classifier",
    "training-state": "mmgen train",
}
"""Every kind of artifact and the command that makes one. The first three are HDF5 files, the others safetensors."""

HDF5_KINDS = ("dataset", "latents", "samples")

_MAX_PARENTS = 64
"""No honest file has more: a program looks for each of them."""
_MAX_COMMAND = 2000
"""Characters of a command that a message repeats."""


def _check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(format_unknown_name("kind of artifact", printable(kind, 40), list(KINDS)))
    return kind


@dataclass(frozen=True)
class Header:
    """The record in every artifact of its kind, settings, seed, parents and content id.

    Attributes:
        kind: One of :data:`KINDS`.
        format_version: Version of the file format (docs/artifacts.md).
        program_version: Version of mmgen that wrote the file.
        content_id: sha256 in hex over kind, settings, seed, parents, facts and every array; see :class:`ContentHash`.
        seed: The seed of everything random in it.
        settings: The effective settings, plain JSON values.
        parents: The files that it was made from.
        facts: Measured values (accuracy, steps done, seconds).
        command: The command that makes it again.
        members: Members from outside mmgen that it was made with; not under the content id.
    """

    kind: Annotated[str, AfterValidator(_check_kind)]
    format_version: StrictInt
    program_version: str
    content_id: Annotated[str, pattern_validator(r"[0-9a-f]{64}", "64 hexadecimal digits")]
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63)]
    settings: dict[str, Any]
    parents: Annotated[tuple[Parent, ...], Field(max_length=_MAX_PARENTS)]
    facts: dict[str, Any]
    command: str
    members: Annotated[tuple[OutsideMember, ...], Field(max_length=MOST_MEMBERS)] = ()

    def content_hash(self, settings: Mapping[str, Any] | None = None) -> ContentHash:
        """Return the hash of settings, facts and parents, to which the file's arrays are added to get the content id.

        Args:
            settings: Replaces the settings where the content id covers more than those.
        """
        settings = self.settings if settings is None else settings
        return ContentHash(self.kind, settings, self.seed, self.parents, self.facts)


_SCHEMA = TypeAdapter(Header)


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
    """Return the header of an artifact that is about to be written."""
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


def header_to_json(header: Header) -> str:
    """Return the header as ASCII JSON text, with a checksum of all its keys."""
    values = asdict(header) | {"members": [member.to_json() for member in header.members]}
    if not header.members:
        del values["members"]
    return canonical_json(values | {"checksum": _checksum(values)})


def _checksum(values: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hex, of all keys of a header (unknown ones too) except the checksum itself."""
    text = canonical_json({key: value for key, value in values.items() if key != "checksum"})
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def parse_json(text: str | bytes, where: str) -> Any:
    """Parse JSON text of a file; ``where`` ("data.h5: the header") begins the message of an error.

    Raises:
        ArtifactError: See :func:`mmgen.core.parsing.parse_json`.
    """
    try:
        return parse_strictly(text)
    except MalformedError as error:
        raise ArtifactError(
            f"{where} is not valid JSON ({error}), the file is damaged; make or copy it again"
        ) from None


def header_from_json(text: str | bytes, path: Path) -> Header:
    """Parse the header of the file ``path`` from its JSON text, and verify its checksum.

    Raises:
        ArtifactError: It is malformed, of another format version or of an unknown kind.
    """
    values = parse_json(text, f"{path}: the mmgen header")
    if not isinstance(values, dict):
        raise ArtifactError(
            f"{path}: the mmgen header is a {type(values).__name__}, expected a JSON object; make it again"
        )
    _check_version(values, path)
    try:
        header = _SCHEMA.validate_python(values)
    except ValidationError as error:
        raise ArtifactError(f"{path}: {_describe_error(error)}; make the file again") from None
    if values.get("checksum") != _checksum(values):
        raise ArtifactError(
            f"{path} is damaged: its header does not match its checksum, so something in it was changed; make it again "
            "or copy it again"
        )
    return header


def _check_version(values: Mapping[str, Any], path: Path) -> None:
    """Refuse another version of the file format, with the command that helps."""
    version, program, command = (values.get(key) for key in ("format_version", "program_version", "command"))
    if type(version) is not int or version < 1:
        raise ArtifactError(
            f"{path}: the header's format_version is {printable(repr(version), 40)}, expected a whole number from 1; "
            "make the file again"
        )
    if version > FORMAT_VERSION:
        newer = printable(program, 40) if isinstance(program, str) else "newer than this one"
        raise FormatVersionError(
            f"{path} has format version {version}, written by mmgen {newer}, but mmgen {__version__} reads version "
            f"{FORMAT_VERSION}; install mmgen {newer} or later from where you got this one (in a clone: git pull)"
        )
    if version < FORMAT_VERSION:
        kind = values.get("kind")
        maker = KINDS.get(kind, "mmgen") if isinstance(kind, str) else "mmgen"
        again = (
            f"make it again with: {printable(command, _MAX_COMMAND)}" if isinstance(command, str) and command else ""
        )
        raise FormatVersionError(
            f"{path} has format version {version}, written by an earlier mmgen, but mmgen {__version__} reads version "
            f"{FORMAT_VERSION}; remove it and {again or f'make it again with {maker}'}"
        )


def _describe_error(error: ValidationError) -> str:
    """Return the first fault of a malformed header as text: its value and the expected one."""
    fault = error.errors(include_url=False)[0]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).removeprefix(".")
    name = f"the header's '{place}'"
    if fault["type"] == "missing":
        return f"{name} is missing"
    if fault["type"] == "value_error":
        return f"{name}: {fault['ctx']['error']}"
    if fault["type"] == "too_long":
        return f"{name} has {fault['ctx']['actual_length']:,} entries, expected at most {fault['ctx']['max_length']:,}"
    expected = _EXPECTED.get(fault["type"])
    return printable(
        format_value_fault(name, fault | ({"msg": f"Input should be {expected}"} if expected else {})), 400
    )


_EXPECTED = {
    "string_type": "text", "int_type": "a whole number", "dataclass_type": "a table", "dict_type": "a table",
}  # fmt: skip
"""Our words for what some of pydantic's errors expect."""

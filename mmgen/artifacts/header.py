"""Headers of artifacts: what every file says of itself, its parents and the members from outside that it needs."""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from mmgen.artifacts.content_id import ContentHash, Parent, canonical_json
from mmgen.core.errors import ArtifactError, FormatVersionError, UsageError, format_unknown_name
from mmgen.core.parsing import MalformedError, parse_json as parse_strictly, printable
from mmgen.core.version import __version__
from mmgen.settings.config import format_value_fault
from mmgen.settings.plugins import Origin, installed_version
from mmgen.settings.registry import BUILT_IN, external_members, list_registries

MOST_MEMBERS = 64
_LONGEST = 255


def pattern_validator(pattern: str, expected: str) -> AfterValidator:
    """Return a pydantic validator for short printable texts that match the regular expression ``pattern``."""

    def check_text(text: str) -> str:
        if len(text) > _LONGEST or not text.isprintable() or re.fullmatch(pattern, text) is None:
            raise ValueError(f"got {printable(repr(text), 80)}, expected {expected}")
        return text

    return AfterValidator(check_text)


@dataclass(frozen=True)
class OutsideMember:
    """A model, metric or other member from a plugin or a user's file, with which an artifact was made.

    Attributes:
        room: Its kind: "objective", "recipe".
        name: Its name there.
        distribution: The distribution that it came from; "" for a file.
        version: Version of the distribution; "" for a file.
        file: Name of the user's file that it came from, without its folder; "" for a distribution.
        sha256: Hash of that file, in hex; "" for a distribution.
    """

    room: Annotated[str, pattern_validator("[a-z][a-z ]{0,39}", "the name of a room")]
    name: Annotated[str, pattern_validator("[a-z0-9]+(-[a-z0-9]+)*", "the name of a member")]
    distribution: Annotated[
        str, pattern_validator("([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?", "a distribution's name")
    ] = ""
    version: Annotated[str, pattern_validator("[A-Za-z0-9.!+_-]*", "a version")] = ""
    file: Annotated[str, pattern_validator(r"[^/\\]*", "the name of a file without its folder")] = ""
    sha256: Annotated[str, pattern_validator("([0-9a-f]{64})?", "64 hexadecimal digits")] = ""

    @model_validator(mode="after")
    def _check_origin(self) -> "OutsideMember":
        if bool(self.distribution) == bool(self.file):
            raise ValueError("expected a distribution or a file, and not both")
        return self

    @property
    def origin(self) -> Origin:
        """Return the package or file that the member came from."""
        return Origin(self.distribution, self.version, self.file, self.sha256)

    def __str__(self) -> str:
        return f"{self.room} {self.name} of {self.origin}"

    def to_json(self) -> dict[str, str]:
        """Return the fields for a header: name and version of a package, or name and hash of a file."""
        return {key: value for key, value in asdict(self).items() if value}


def members_of(settings: Mapping[str, Any]) -> tuple[OutsideMember, ...]:
    """Return the members from plugins or users' files that ``settings`` name and this process has loaded."""
    return tuple(_make_member(*used) for used in external_members(settings))


def _make_member(room: str, name: str, origin: Origin) -> OutsideMember:
    try:
        return OutsideMember(room, name, origin.distribution, origin.version, origin.file, origin.sha256)
    except ValidationError:
        raise UsageError(
            f"the {room} '{name}' comes from {printable(str(origin), 200)}, a name that cannot be stored in a file; "
            "rename it with letters and digits"
        ) from None


def names_code(words: Iterable[str]) -> bool:
    """Return True if a recorded command would run a file of Python: whoever made a file wrote its command."""
    return any(word.partition("=")[0] == "--code" for word in words)


def quoted_command(command: str) -> str:
    """Return a recorded command of mmgen, each word quoted where a shell needs it; "" for any other text, and for one
    that runs a file of Python.
    """
    # Whoever wrote the file wrote this text: nothing in it may end the command or begin another.
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that is not closed
        return ""
    is_plain = words[:1] == ["mmgen"] and all(word.isprintable() for word in words)
    return shlex.join(words) if is_plain and not names_code(words) else ""


def advised_command(command: str, kind: str, option: str = "") -> str:
    """Return a recorded command as advice, with ``option`` added unless it is there; without one that can be advised,
    the command that makes files of this ``kind``.
    """
    told = printable(quoted_command(command) or KINDS.get(kind, "mmgen"), 2000)
    told = told if option in told else f"{told} {option}"
    runs_code = names_code(command.split())
    return f"{told} (its own command runs a file of Python, --code: look at it first)" if runs_code else told


def is_available(member: OutsideMember) -> bool:
    """Return True if a member's package is installed, or its file was named by the user with --code."""
    return not _explain_absence(member)


def _explain_absence(member: OutsideMember) -> str:
    """Return the reason why a member cannot be used here, with a remedy; "" if it can."""
    room = next((room for room in list_registries() if room.noun == member.room), None)
    here = [found for found in room.members() if found.name == member.name] if room is not None else []
    origins = {found.origin for found in here}
    if any(origin.file or origin.distribution == member.distribution for origin in origins):
        return ""
    if member.file:
        if origins - {BUILT_IN}:
            return ""  # a package has taken over what was tried in a file
        file = printable(member.file, 100)
        return f"the file {file}, which was not named: give it with --code {file}"
    if here:
        there = " and ".join(sorted(map(str, origins)))
        why = f"but here {member.name} is {there}'s"
    elif version := installed_version(member.distribution):
        why = f"but {version} is installed, which does not bring it"
    else:
        why = "which is not installed"
    return f"{member.origin}, {why}: install it from where its author keeps it, if you trust them"


def describe_changed_members(path: Path, members: Iterable[OutsideMember]) -> list[str]:
    """Return a notice for each member whose package version or file differs from that recorded at ``path``."""
    notices = []
    for member in members:
        room = next((room for room in list_registries() if room.noun == member.room), None)
        here = [found.origin for found in room.members() if found.name == member.name] if room is not None else []
        then = (member.distribution, member.version, member.sha256)
        if here and then not in {(origin.distribution, origin.version, origin.sha256) for origin in here}:
            renamed = member.file not in {origin.file for origin in here} or not member.file
            now = f"of {' and '.join(sorted(map(str, here)))}" if renamed else "of another text of that file"
            notices.append(
                f"{path} was made with {member.room} '{member.name}' of {member.origin}, but here it is {now}"
            )
    return notices


def check_members(path: Path, members: Iterable[OutsideMember]) -> None:
    """Raise an error if a plugin that made the artifact at ``path`` cannot be used here.

    Raises:
        ArtifactError: A member is missing; names what it came from, and how to get it.
    """
    for member in members:
        lacking = _explain_absence(member)
        if lacking:
            raise ArtifactError(f"{path} was made with the {member.room} '{member.name}' of {lacking}")


FORMAT_VERSION = 3
"""Version of the file formats in docs/artifacts.md, the only one that this program reads and writes."""

_READERS = {1: "187d3dc4702a", 2: "9ccb7db6540c"}
"""The last commit that reads each earlier version; or, from version 3 on, the command that converts it."""

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
            f"{FORMAT_VERSION}; keep it and read it with an earlier mmgen (in a clone: git checkout "
            f"{_READERS[version]}), or {again or f'make it again with {maker}'}"
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

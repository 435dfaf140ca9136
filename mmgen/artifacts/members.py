"""Plugins that an artifact was made with, and checks that they are installed when the file is opened.

A header holds the name of each such member and of the distribution, or of the user's file, that it came from. Nothing
is imported because a file names it: a name is looked up among the installed members, as a typed name is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.parsing import printable
from mmgen.settings.plugins import Origin, installed_version
from mmgen.settings.registry import BUILT_IN, external_members, list_registries

__all__ = [
    "MOST_MEMBERS",
    "OutsideMember",
    "describe_changed_members",
    "check_members",
    "is_available",
    "pattern_validator",
    "members_of",
]

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

"""Which members of an artifact come from outside mmgen, and whether they are there when the file is opened.

A header holds the name of each such member and of the distribution, or of the user's file, that it came from. Nothing
is imported because a file says so: a name is looked up among the members that are installed, as one that is typed is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import printable
from mmgen.settings.plugins import Origin, installed_version
from mmgen.settings.registry import BUILT_IN, rooms, used_in

__all__ = ["OutsideMember", "changed_members", "check_members", "is_there", "members_of", "parse_members"]

_MOST = 64
_TEXTS = {
    "room": re.compile(r"[a-z][a-z ]{0,39}\Z"),
    "name": re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z"),
    "distribution": re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?\Z"),
    "version": re.compile(r"[A-Za-z0-9.!+_-]*\Z"),
    "file": re.compile(r"[^/\\]*\Z"),
    "sha256": re.compile(r"([0-9a-f]{64})?\Z"),
}
_LONGEST = 255


@dataclass(frozen=True)
class OutsideMember:
    """A member from outside that an artifact was made with.

    Attributes:
        room: What it is: "objective", "recipe".
        name: Its name there.
        distribution: The distribution that it came from; "" for a file.
        version: Version of the distribution; "" for a file.
        file: Name of the user's file that it came from, without its folder; "" for a distribution.
        sha256: Hash of that file, in hex; "" for a distribution.
    """

    room: str
    name: str
    distribution: str = ""
    version: str = ""
    file: str = ""
    sha256: str = ""

    @property
    def origin(self) -> Origin:
        """Where it came from."""
        return Origin(self.distribution, self.version, self.file, self.sha256)

    def __str__(self) -> str:
        return f"{self.room} {self.name} of {self.origin}"

    def to_json(self) -> dict[str, str]:
        """What a header says about it: of a distribution its name and version, of a file its name and hash."""
        return {key: value for key, value in asdict(self).items() if value}


def members_of(settings: Mapping[str, Any]) -> tuple[OutsideMember, ...]:
    """The members from outside that settings name and this process has loaded."""
    found = (
        OutsideMember(room, name, origin.distribution, origin.version, origin.file, origin.sha256)
        for room, name, origin in used_in(settings)
    )
    return tuple(found)


def parse_members(values: Any, path: Path) -> tuple[OutsideMember, ...]:
    """The members out of a header, which may say anything.

    Raises:
        ArtifactError: They are malformed.
    """
    if not isinstance(values, list) or len(values) > _MOST or not all(map(_is_good, values)):
        raise ArtifactError(
            f"{path}: the header's 'members' are malformed, expected at most {_MOST} tables with the texts room, name "
            "and distribution or file; make the file again"
        )
    return tuple(OutsideMember(**{key: value[key] for key in _TEXTS if key in value}) for value in values)


def _is_good(value: Any) -> bool:
    if not isinstance(value, dict) or bool(value.get("distribution")) == bool(value.get("file")):
        return False
    return all(
        isinstance(text := value.get(key, ""), str)
        and len(text) <= _LONGEST
        and text.isprintable()
        and (pattern.match(text) is not None)
        for key, pattern in _TEXTS.items()
    )


def is_there(member: OutsideMember) -> bool:
    """Whether a member of that name can be used here, from where it came from or from a file that the user named."""
    return not _lacking(member)


def _lacking(member: OutsideMember) -> str:
    """What is wrong with a member here, and what helps; "" where it is there."""
    room = next((room for room in rooms() if room.noun == member.room), None)
    here = [found for found in room.found() if found.name == member.name] if room is not None else []
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


def changed_members(path: Path, members: Iterable[OutsideMember]) -> list[str]:
    """Notices of members that are here as something else than what the artifact at ``path`` was made with."""
    said = []
    for member in members:
        room = next((room for room in rooms() if room.noun == member.room), None)
        here = [found.origin for found in room.found() if found.name == member.name] if room is not None else []
        then = (member.distribution, member.version, member.sha256)
        if here and then not in {(origin.distribution, origin.version, origin.sha256) for origin in here}:
            renamed = member.file not in {origin.file for origin in here} or not member.file
            now = f"of {' and '.join(sorted(map(str, here)))}" if renamed else "of another text of that file"
            said.append(f"{path} was made with {member.room} '{member.name}' of {member.origin}, but here it is {now}")
    return said


def check_members(path: Path, members: Iterable[OutsideMember]) -> None:
    """Make sure that everything from outside that the artifact at ``path`` was made with is there.

    Raises:
        ArtifactError: A member is missing; names what it came from, and how to get it.
    """
    for member in members:
        lacking = _lacking(member)
        if lacking:
            raise ArtifactError(f"{path} was made with the {member.room} '{member.name}' of {lacking}")

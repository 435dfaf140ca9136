"""Registry of the members of a package: its files, and plug-ins.

The members of a room are its files without a leading underscore; ``get`` imports just the one file and returns the
single public object of its ``__all__``. Names use hyphens where files use underscores (``mnist_a.py`` is ``mnist-a``).
Nothing is kept by hand, so a new member is one new file.

After them come the members from outside (:mod:`mmgen.settings.plugins`): of installed distributions, in the room's
group of entry points, and of files that the user named. A name that two of them offer is refused, so that no package
changes in silence
what another one's name means.
"""

import difflib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from mmgen.core.errors import MmgenError, UsageError, clip
from mmgen.settings import plugins
from mmgen.settings.plugins import Member, Origin

__all__ = [
    "Member",
    "Registry",
    "add_code",
    "listed",
    "unknown_groups",
    "nearest",
    "registry_of",
    "rooms",
    "unknown_name",
    "external_members",
    "with_names",
]

T_co = TypeVar("T_co", covariant=True)

BUILT_IN = Origin("mmgen")
"""Where the members come from that are files of this package."""

_HOME = Path(__file__).parents[1]
_MAKES_REGISTRY = re.compile(r"^_registry\b", re.MULTILINE)
_SHOWN = 8  # names that a message lists, where there are more
_LONGEST_NAME = 100
"""Characters of a name that a message repeats, and that are compared with others."""


def nearest(got: str, expected: Sequence[str]) -> str | None:
    """Return the expected name that is most like ``got``; None if none is like it.

    Example:
        >>> nearest("lst", ["list", "plot"]), nearest("version", ["train", "eval"])
        ('list', None)
    """
    # 0.6 lets two slips through in a word of five letters, and takes no word for another that shares half its letters.
    return next(iter(difflib.get_close_matches(got[:_LONGEST_NAME], expected, n=1, cutoff=0.6)), None)


def unknown_name(what: str, got: str, expected: Sequence[str], *, meant: str | None = None, more: str = "") -> str:
    """Format the error for an unknown name: it suggests the nearest, and lists all names or the eight nearest.

    Args:
        what: What is named ("objective").
        got: The name.
        expected: The names that there are.
        meant: The one that was meant, where that is known better than by its letters; "" for none.
        more: The command that lists all of them, for where there are many.

    Example:
        >>> unknown_name("objective", "tebo", ["elbo", "telbo"])
        "unknown objective 'tebo': did you mean 'telbo'? Available: elbo, telbo"
        >>> unknown_name("letter", "j5z7", [*"abcdefghij"])
        "unknown letter 'j5z7': Available: j, a, b, c, d, e, f, g and 2 more"
    """
    near = nearest(got, expected) if meant is None else meant
    hint = f"did you mean '{near}'? " if near else ""
    names = f"Available: {listed(got, expected, more)}" if expected else "there is none"
    return f"unknown {what} '{clip(got, _LONGEST_NAME)}': {hint}{names}"


def listed(got: str, expected: Sequence[str], more: str = "") -> str:
    """Join names for a sentence: all, or the eight most like ``got`` and the command that lists all."""
    shown = [f"'{name}'" if "," in name else name for name in _likest(got, expected)]
    left = len(expected) - len(shown)
    return ", ".join(shown) + (f" and {left:,} more{f', which {more} lists' if more else ''}" if left else "")


def _likest(got: str, expected: Sequence[str]) -> Sequence[str]:
    """Return all names in order; of more than eight, the eight most like ``got``, those that contain it first."""
    if len(expected) <= _SHOWN:
        return expected
    matcher = difflib.SequenceMatcher(b=got[:_LONGEST_NAME])

    def unlikeness(name: str) -> tuple[bool, float]:
        matcher.set_seq1(name[:_LONGEST_NAME])
        return got not in name, -matcher.ratio()

    return sorted(expected, key=unlikeness)[:_SHOWN]


class Registry(Generic[T_co]):
    """The members of one package, and those from outside in its group.

    ``T_co`` is what a member is: ``type[Objective]`` where members are classes.

    Args:
        package: Dotted name of the package (``__name__`` of its ``__init__``).
        noun: What a member is called in messages ("objective").
        group: The entry points of members from outside; the package's name by default.
        base: What every member derives from, a name in the package's ``_base``; the noun as a class by default.
        synonyms: Members by the names that they have in other places, such as papers.
        place: Where the room stands in lists, by the order of the pipeline; rooms of equal places by their nouns.
    """

    def __init__(
        self,
        package: str,
        noun: str,
        group: str = "",
        base: str = "",
        synonyms: Mapping[str, str] = MappingProxyType({}),
        place: int = 99,
    ) -> None:
        self.package = package
        self.noun = noun
        self.group = group or package
        self.base = base or noun.capitalize()
        self.place = place
        self._synonyms = synonyms
        self._used: dict[str, Origin] = {}
        _registries[package] = self

    def _folder(self) -> Path:
        spec = importlib.util.find_spec(self.package)
        assert spec is not None and spec.origin is not None
        return Path(spec.origin).parent

    def _built_in(self) -> Iterator[Member]:
        for path in sorted(self._folder().glob("[!_]*.py"), key=lambda path: path.stem):
            name = path.stem.replace("_", "-")
            yield Member(name, BUILT_IN, partial(self._import, path.stem), partial(_about, path))

    def _import(self, stem: str) -> Any:
        module = importlib.import_module(f"{self.package}.{stem}")
        public: list[str] = module.__all__
        assert len(public) == 1, f"{module.__name__} must offer exactly one public object, offers {public}"
        return getattr(module, public[0])

    def members(self) -> list[Member]:
        """List every member of the package, sorted, then those from outside, without importing them.

        Two members of one name are both listed, each with a ``fault`` that names the other.

        Raises:
            UsageError: A file that ``MMGEN_CODE`` names cannot be run.
        """
        every = [*self._built_in(), *self._outside()]
        names = [member.name for member in every]
        return [self._checked(member, every) if names.count(member.name) > 1 else member for member in every]

    def _outside(self) -> list[Member]:
        return [*plugins.installed(self.group), *(one for one in plugins.code_objects() if self._fits_code(one))]

    def _checked(self, member: Member, every: Sequence[Member]) -> Member:
        origins = [_format_origin(other.origin) for other in every if other.name == member.name]
        fault = f"the name is offered by {' and by '.join(origins)}; uninstall or rename one of them"
        return replace(member, fault=fault)

    def _fits_code(self, one: Member) -> bool:
        """Return True if an object of a user's file derives from this room's base class, which is imported then."""
        base = getattr(sys.modules.get(f"{self.package}._base"), self.base, None)
        return base is not None and _is_member(one.load(), base)

    def names(self) -> list[str]:
        """List the names of all members, the package's sorted, then those from outside, without importing them."""
        return list(dict.fromkeys(member.name for member in self.members()))

    def _find(self, name: str) -> Member:
        for member in self.members():
            if member.name == name:
                if member.fault:
                    raise UsageError(f"{self.noun} '{clip(name, _LONGEST_NAME)}' cannot be used: {member.fault}")
                return member
        raise UsageError(self.unknown(name))

    def unknown(self, name: str) -> str:
        """Format the error for a name that no member has; settings may hold other values than text."""
        name = str(name)
        listing = f"mmgen list {self.noun.replace(' ', '-')}"
        meant = self._synonyms.get(name.lower().replace("_", "-"))
        said = unknown_name(self.noun, name, self.names(), meant=meant, more=listing)
        return said if "did you mean" in said else f"{said}; one of your own needs its file, --code FILE.py"

    def get(self, name: str) -> T_co:
        """Return the member called ``name``; only this one is imported.

        Raises:
            UsageError: There is no such member, or two, or one from outside that cannot be imported.
        """
        member = self._find(name)
        loaded = self._loaded(member)
        if member.origin != BUILT_IN:
            self._used[name] = member.origin
        return loaded

    def _loaded(self, member: Member) -> T_co:
        if member.origin == BUILT_IN:
            loaded: T_co = member.load()
            return loaded
        what = f"{self.noun} '{member.name}' of {_format_origin(member.origin)}"
        try:
            loaded = member.load()
            if inspect.ismodule(loaded):  # an entry point that names a file of one public object, as our own are
                loaded = getattr(loaded, *loaded.__all__)
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{what} cannot be imported ({plugins.brief(error)}); fix, update or uninstall it"
            ) from error
        base = getattr(importlib.import_module(f"{self.package}._base"), self.base)
        if not _is_member(loaded, base):
            raise UsageError(
                f"{what} is {clip(repr(loaded), _LONGEST_NAME)}, expected a subclass of {self.base} in "
                f"{self.package}._base; fix, update or uninstall it"
            )
        undone = ", ".join(sorted(getattr(loaded, "__abstractmethods__", ())))
        if undone:
            raise UsageError(f"{what} does not define {undone}, which every {self.noun} has; fix or update it")
        return loaded

    def importable(self) -> dict[str, T_co]:
        """Import all members, by name; those from outside that cannot be imported are left out."""
        members = {}
        for member in self.members():
            try:
                members[member.name] = self._loaded(self._find(member.name))
            except MmgenError:
                if member.origin == BUILT_IN and not member.fault:
                    raise
        return members

    def origin(self, name: str) -> Origin:
        """Return the distribution or file that the member called ``name`` comes from.

        Raises:
            UsageError: There is no such member, or there are two.
        """
        return self._find(name).origin

    def describe(self, name: str) -> str:
        """Return the first sentence of the member's docstring, read without importing it.

        Raises:
            UsageError: There is no such member, or there are two.
        """
        return self._find(name).about()

    def used(self) -> Mapping[str, Origin]:
        """Return the origins of the members from outside that this process has imported, by name."""
        return self._used


_registries: dict[str, Registry[Any]] = {}


def _about(path: Path) -> str:
    """Return the first sentence of a module's docstring."""
    return plugins.first_sentence(path.read_text(encoding="utf-8"))


def _is_member(thing: Any, base: type) -> bool:
    """Return True for a subclass of ``base`` and for an instance of it (as figures are)."""
    return (isinstance(thing, type) and issubclass(thing, base) and thing is not base) or isinstance(thing, base)


def _format_origin(origin: Origin) -> str:
    """Format an origin for a sentence; built-in members come from "mmgen VERSION"."""
    from mmgen.core.version import __version__

    return f"mmgen {__version__}" if origin == BUILT_IN else str(origin)


def registry_of(room: str) -> Registry[Any]:
    """Return the registry of a room, by the noun of its members ("recipe") or by the package's dotted name.

    Raises:
        KeyError: There is no such noun.
        ModuleNotFoundError: There is no such package.
    """
    if room.startswith("mmgen.") and room not in _registries:
        importlib.import_module(f"{room}._members")  # this room alone: help must answer at once
    if room in _registries:
        return _registries[room]
    return next((each for each in rooms() if room in (each.noun, each.package)), None) or _registries[room]


def with_names(text: str) -> str:
    """Replace a room in braces, such as ``{mmgen.objectives}``, by the names of its members; imports none of them."""

    def names(room: re.Match[str]) -> str:
        try:
            return ", ".join(registry_of(room[1]).names())
        except MmgenError:  # of a broken file in MMGEN_CODE, which the command itself reports
            return "what mmgen list names"

    return re.sub(r"\{(mmgen\.[a-z_.]+)\}", names, text)


def rooms() -> list[Registry[Any]]:
    """Return the registries of all rooms, in the order of the pipeline.

    A room registers itself: it is a folder of the package whose file ``_members.py`` makes a registry.
    """
    for pattern in ("*/_members.py", "*/*/_members.py"):
        for file in sorted(_HOME.glob(pattern)):
            name = ".".join(["mmgen", *file.parent.relative_to(_HOME).parts])
            if name not in _registries and _MAKES_REGISTRY.search(file.read_text(encoding="utf-8")):
                importlib.import_module(f"{name}._members")
    return sorted(_registries.values(), key=lambda room: (room.place, room.noun))


def add_code(path: Path) -> list[str]:
    """Run a Python file and take its public classes as members, in this process and those that it starts.

    Returns:
        What was found: "objective text-side".

    Raises:
        UsageError: The file cannot be run, or holds no member.
    """
    added = plugins.add_file(path)
    found = [f"{room.noun} {one.name}" for room in rooms() for one in added if room._fits_code(one)]
    if not found:
        bases = ", ".join(dict.fromkeys(room.base for room in rooms()))
        raise UsageError(f"the code {path} defines no member, expected a public class that derives from one of {bases}")
    return found


def unknown_groups() -> list[str]:
    """Return a warning for every entry-point group that no room has, so that its members are never found."""
    known = [room.group for room in rooms()]
    return [
        f"{origin} offers members in the group '{clip(group, _LONGEST_NAME)}', which no room has; "
        f"expected one of {', '.join(known)}"
        for group, origin in plugins.group_names().items()
        if group not in known
    ]


def external_members(settings: Mapping[str, Any]) -> list[tuple[str, str, Origin]]:
    """List the members from outside that settings name: (noun of the room, name, origin).

    A member counts if this process has imported it and its name is a value in the settings. In ``data``, whose
    attributes may have any name, only the kinds of modalities are looked at.
    """
    words = set(_words({key: value for key, value in settings.items() if key != "data"}))
    data = settings.get("data")
    described = data.get("modalities") if isinstance(data, Mapping) else None
    if isinstance(described, Mapping):
        words |= {str(one["kind"]) for one in described.values() if isinstance(one, Mapping) and "kind" in one}
    return [
        (room.noun, name, origin)
        for room in _registries.values()
        for name, origin in sorted(room.used().items())
        if name in words
    ]


def _words(value: Any) -> Iterator[str]:
    """Yield every string among nested values, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _words(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _words(part)

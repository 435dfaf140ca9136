"""Registries of the exchangeable classes (members) of a package: one for each of its files, and plug-ins.

The members of a room are its files without a leading underscore, and those that worlds beside the core add to it
(:mod:`mmgen.core.worlds`); ``get`` imports only one file and returns the single public object of its ``__all__``. Names
have hyphens where files have underscores (``mnist_a.py`` is ``mnist-a``). There is no list to maintain: a new member is
one new file.

Further members come from outside (:mod:`mmgen.settings.plugins`): from installed distributions, in the room's group of
entry points, and from files that the user names. If two members have the same name, both are refused, so that no
package silently replaces a member of another.
"""

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import lazy_loader

from mmgen.core.errors import MmgenError, UsageError, clip, format_unknown_name
from mmgen.core.worlds import added_files
from mmgen.settings import plugins
from mmgen.settings.plugins import Member, Origin

T_co = TypeVar("T_co", covariant=True)

BUILT_IN = Origin("mmgen")
"""Origin of the members that are files of this package."""

_HOME = Path(__file__).parents[1]
_MAKES_REGISTRY = "= attach_members("
_LONGEST_NAME = 100
"""Characters of a name that a message repeats."""


class Registry(Generic[T_co]):
    """Registry of the members of a package, such as all objectives: one in each of its files, and plug-ins.

    ``T_co`` is the type of a member: ``type[Objective]`` if members are classes.

    Args:
        package: Dotted name of the package (``__name__`` of its ``__init__``).
        noun: Noun of a member in messages ("objective").
        group: Group of entry points of members from outside; by default the package's name.
        base: Name in the package's ``_base`` of the base class of all members; by default the capitalised noun.
        imported_before: Module that is imported before any member.
        place: Position of the room in lists, which follow the pipeline; equal positions are sorted by noun.
    """

    def __init__(
        self,
        package: str,
        noun: str,
        group: str = "",
        base: str = "",
        place: int = 99,
        imported_before: str = "",
    ) -> None:
        self.package = package
        self.noun = noun
        self.group = group or package
        self.base = base or noun.capitalize()
        self.place = place
        self._imported_before = imported_before
        self._used: dict[str, Origin] = {}
        _registries[package] = self

    def _folder(self) -> Path:
        spec = importlib.util.find_spec(self.package)
        assert spec is not None and spec.origin is not None
        return Path(spec.origin).parent

    def _built_in(self) -> Iterator[Member]:
        own = {f"{self.package}.{path.stem}": path for path in self._folder().glob("[!_]*.py")}
        for module, path in sorted({**own, **added_files(self.package)}.items(), key=lambda each: each[1].stem):
            name = path.stem.replace("_", "-")
            yield Member(name, BUILT_IN, partial(self._import, module), partial(_describe_module, path))

    def _import(self, name: str) -> Any:
        if self._imported_before:
            importlib.import_module(self._imported_before)
        module = importlib.import_module(name)
        public: list[str] = module.__all__
        assert len(public) == 1, f"{module.__name__} must offer exactly one public object, offers {public}"
        return getattr(module, public[0])

    def members(self) -> list[Member]:
        """List the members of the package, sorted, then the plug-ins, without importing any.

        Two members of the same name are both listed, each with a ``fault`` that names the other.

        Raises:
            UsageError: A file in ``MMGEN_CODE`` cannot be run.
        """
        every = [*self._built_in(), *self._external_members()]
        names = [member.name for member in every]
        return [self._mark_duplicate(member, every) if names.count(member.name) > 1 else member for member in every]

    def _external_members(self) -> list[Member]:
        return [
            *plugins.list_installed_members(self.group),
            *(one for one in plugins.list_code_members() if self.accepts(one)),
        ]

    def _mark_duplicate(self, member: Member, members: Sequence[Member]) -> Member:
        origins = [_format_origin(other.origin) for other in members if other.name == member.name]
        fault = f"the name is offered by {' and by '.join(origins)}; uninstall or rename one of them"
        return replace(member, fault=fault)

    def accepts(self, member: Member) -> bool:
        """Return whether an object from a user's file is a member: derived from the base class of this registry."""
        base = getattr(sys.modules.get(f"{self.package}._base"), self.base, None)
        return base is not None and _is_member(member.load(), base)

    def names(self) -> list[str]:
        """List the names of the members of the package, sorted, then of the plug-ins, without importing any."""
        return list(dict.fromkeys(member.name for member in self.members()))

    def _find_member(self, name: str) -> Member:
        for member in self.members():
            if member.name == name:
                if member.fault:
                    raise UsageError(f"{self.noun} '{clip(name, _LONGEST_NAME)}' cannot be used: {member.fault}")
                return member
        raise UsageError(self.format_unknown(name))

    def format_unknown(self, name: str) -> str:
        """Format the message that no member is called ``name``, which may be any value of a setting."""
        name = str(name)
        listing = f"mmgen list {self.noun.replace(' ', '-')}"
        message = format_unknown_name(self.noun, name, self.names(), list_command=listing)
        return message if "did you mean" in message else f"{message}; a member of your own needs --code FILE.py"

    def get(self, name: str) -> T_co:
        """Import and return the member called ``name``.

        Raises:
            UsageError: There is no such member, there are two, or it comes from outside and cannot be imported.
        """
        member = self._find_member(name)
        loaded = self._load_member(member)
        if member.origin != BUILT_IN:
            self._used[name] = member.origin
        return loaded

    def _load_member(self, member: Member) -> T_co:
        if member.origin == BUILT_IN:
            loaded: T_co = member.load()
            return loaded
        label = f"{self.noun} '{member.name}' of {_format_origin(member.origin)}"
        try:
            loaded = member.load()
            if inspect.ismodule(loaded):  # an entry point may name a module with one public object
                loaded = getattr(loaded, *loaded.__all__)
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{label} cannot be imported ({plugins.format_exception(error)}); fix, update or uninstall it"
            ) from error
        base = getattr(importlib.import_module(f"{self.package}._base"), self.base)
        if not _is_member(loaded, base):
            raise UsageError(
                f"{label} is {clip(repr(loaded), _LONGEST_NAME)}, expected a subclass of {self.base} in "
                f"{self.package}._base; fix, update or uninstall it"
            )
        undone = ", ".join(sorted(getattr(loaded, "__abstractmethods__", ())))
        if undone:
            raise UsageError(f"{label} does not define {undone}, which every {self.noun} needs; fix or update it")
        return loaded

    def import_all(self) -> dict[str, T_co]:
        """Import all members and return them by name; plug-ins that cannot be imported are left out."""
        members = {}
        for member in self.members():
            try:
                members[member.name] = self._load_member(self._find_member(member.name))
            except MmgenError:
                if member.origin == BUILT_IN and not member.fault:
                    raise
        return members

    def origin(self, name: str) -> Origin:
        """Return the distribution or file that provides the member called ``name``.

        Raises:
            UsageError: There is no such member, or there are two.
        """
        return self._find_member(name).origin

    def describe(self, name: str) -> str:
        """Return the first sentence of the docstring of the member called ``name``, without importing it.

        Raises:
            UsageError: There is no such member, or there are two.
        """
        return self._find_member(name).about()

    def used_origins(self) -> Mapping[str, Origin]:
        """Return the origins of the plug-ins that this process has imported, by name."""
        return self._used


_registries: dict[str, Registry[Any]] = {}


def attach_members(
    package: str, file: str, noun: str, **options: Any
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make a package a room: its members by name, and what its stub names, imported when it is used.

    The package then has ``names``, ``get``, ``describe`` and ``import_all``, those of its registry.

    Args:
        package: ``__name__`` of the package.
        file: ``__file__`` of the package, beside which a stub ``__init__.pyi`` lies.
        noun: Noun of a member.
        options: Further arguments of :class:`Registry`.

    Returns:
        ``__getattr__``, ``__dir__`` and ``__all__`` of the package.
    """
    find_attribute, _, listed = lazy_loader.attach_stub(package, file)
    registry: Registry[Any] = Registry(package, noun, **options)
    functions = {each.__name__: each for each in (registry.describe, registry.get, registry.import_all, registry.names)}
    public = sorted([*listed, *functions])
    return lambda name: functions[name] if name in functions else find_attribute(name), lambda: [*public], public


def _describe_module(path: Path) -> str:
    """Return the first sentence of the docstring of the module in a file, without importing it."""
    return plugins.first_sentence(path.read_text(encoding="utf-8"))


def _is_member(candidate: Any, base: type) -> bool:
    """Return whether an object is a subclass of ``base``, or an instance of it (as figures are)."""
    return (isinstance(candidate, type) and issubclass(candidate, base) and candidate is not base) or isinstance(
        candidate, base
    )


def _format_origin(origin: Origin) -> str:
    """Format the origin of a member for a sentence: "mmgen VERSION" if it is built in."""
    from mmgen.core.version import __version__

    return f"mmgen {__version__}" if origin == BUILT_IN else str(origin)


def registry_of(room: str) -> Registry[Any]:
    """Return a package's registry, by the noun of its members ("recipe") or by the package's dotted name.

    Raises:
        KeyError: There is no such noun.
        ModuleNotFoundError: There is no such package.
    """
    if room.startswith("mmgen.") and room not in _registries:
        importlib.import_module(room)  # only this room, since help must be fast
    if room in _registries:
        return _registries[room]
    return next((each for each in list_registries() if room in (each.noun, each.package)), None) or _registries[room]


def insert_member_names(text: str) -> str:
    """Replace packages in braces, such as ``{mmgen.objectives}``, by the names of their members, without imports."""

    def names(room: re.Match[str]) -> str:
        try:
            return ", ".join(registry_of(room[1]).names())
        except MmgenError:  # of a broken file in MMGEN_CODE, which the command itself reports
            return "the names in mmgen list"

    return re.sub(r"\{(mmgen\.[a-z_.]+)\}", names, text)


def list_registries() -> list[Registry[Any]]:
    """List the registries of all packages with members, from datasets to figures.

    A room registers itself: it is a folder of the package whose file ``__init__.py`` calls :func:`attach_members`.
    """
    for pattern in ("*/__init__.py", "*/*/__init__.py"):
        for file in sorted(_HOME.glob(pattern)):
            name = ".".join(["mmgen", *file.parent.relative_to(_HOME).parts])
            if name not in _registries and _MAKES_REGISTRY in file.read_text(encoding="utf-8"):
                importlib.import_module(name)
    return sorted(_registries.values(), key=lambda room: (room.place, room.noun))


def add_code(path: Path) -> list[str]:
    """Run a Python file and register its public classes as plug-ins, in this process and in its worker processes.

    Returns:
        Noun and name of each member: "objective text-side".

    Raises:
        UsageError: The file cannot be run, or defines no member.
    """
    added = plugins.add_code_file(path)
    found = [f"{room.noun} {one.name}" for room in list_registries() for one in added if room.accepts(one)]
    if not found:
        bases = ", ".join(dict.fromkeys(room.base for room in list_registries()))
        raise UsageError(f"the code {path} defines no member, expected a public class that derives from one of {bases}")
    return found


def list_unknown_group_warnings() -> list[str]:
    """Return a warning for each group of entry points that no registry reads, so that its plug-ins are ignored."""
    known = [room.group for room in list_registries()]
    return [
        f"{origin} offers members in the group '{clip(group, _LONGEST_NAME)}', which mmgen does not read; "
        f"expected one of {', '.join(known)}"
        for group, origin in plugins.origins_by_group().items()
        if group not in known
    ]


def external_members(settings: Mapping[str, Any]) -> list[tuple[str, str, Origin]]:
    """List the plug-ins that occur in settings, each as (noun, name, origin), such as ("objective", "my-elbo", origin).

    A member occurs if this process has imported it and its name is a value in the settings. In ``data``, where names of
    attributes are arbitrary, only the kinds of modalities count.
    """
    words = set(_iterate_strings({key: value for key, value in settings.items() if key != "data"}))
    data = settings.get("data")
    described = data.get("modalities") if isinstance(data, Mapping) else None
    if isinstance(described, Mapping):
        words |= {str(one["kind"]) for one in described.values() if isinstance(one, Mapping) and "kind" in one}
    return [
        (room.noun, name, origin)
        for room in _registries.values()
        for name, origin in sorted(room.used_origins().items())
        if name in words
    ]


def _iterate_strings(value: Any) -> Iterator[str]:
    """Yield all strings among nested values, except keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _iterate_strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _iterate_strings(part)

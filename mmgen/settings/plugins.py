"""Members from outside: entry points of installed distributions, and files named by the user.

A distribution offers a member in its own ``pyproject.toml``, in the group of the room::

    [project.entry-points."mmgen.objectives"]
    text-side = "my_package.text_side:TextSide"

Reading entry points imports nothing of the distribution; a member's module is imported when the member is asked for. A
file is run when it is named (:func:`add_file`, ``mmgen --code``, ``MMGEN_CODE``), since only its classes say what they
are.
"""

import ast
import hashlib
import importlib.machinery
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from mmgen.core.errors import UsageError, clip, reason_of
from mmgen.core.parsing import Malformed, opening, read_bounded

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "CODE_VARIABLE",
    "Member",
    "Origin",
    "add_file",
    "brief",
    "code_objects",
    "first_sentence",
    "group_names",
    "installed",
    "installed_version",
    "kebab",
    "run_named_files",
]

CODE_VARIABLE = "MMGEN_CODE"
"""Environment variable with files of members, separated as in PATH; processes that we start find it too."""

_PREFIX = "mmgen."
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Origin:
    """Distribution or file that provides a member.

    Attributes:
        distribution: Name of the installed distribution; "" for a file.
        version: Version of the distribution; "" for a file.
        file: Name of the file, without its folder; "" for a distribution.
        sha256: Hash of the file's text, in hex; "" for a distribution.
    """

    distribution: str = ""
    version: str = ""
    file: str = ""
    sha256: str = ""

    def __str__(self) -> str:
        return f"code {self.file}" if self.file else f"{self.distribution} {self.version}".rstrip()


@dataclass(frozen=True)
class Member:
    """A member that was listed, but is not imported yet.

    Attributes:
        name: What users call it.
        origin: Where it comes from.
        load: Imports it.
        about: The first line about it, read without importing it.
        fault: Why it cannot be used; "" where nothing is known against it.
    """

    name: str
    origin: Origin
    load: Callable[[], Any]
    about: Callable[[], str]
    fault: str = ""


def installed(group: str) -> list[Member]:
    """List the members that installed distributions offer in a group of entry points ("mmgen.objectives")."""
    return [_outside(entry, origin) for entry, origin in _entries(tuple(sys.path)) if entry.group == group]


def group_names() -> dict[str, Origin]:
    """Return every entry-point group "mmgen...." in which an installed distribution has members, and its origin."""
    return {entry.group: origin for entry, origin in _entries(tuple(sys.path))}


def installed_version(distribution: str) -> str:
    """Return the version of an installed distribution; "" if none has that name."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


@cache
def _entries(path: tuple[str, ...]) -> list[tuple["EntryPoint", Origin]]:
    """List the entry points of all groups "mmgen....", sorted; cached, since this reads many small files."""
    from importlib.metadata import distributions

    found: dict[str, list[tuple[EntryPoint, Origin]]] = {}
    for distribution in distributions(path=list(path)):
        # Most distributions have none of ours: neither their entry points nor their names are parsed.
        if _PREFIX not in (distribution.read_text("entry_points.txt") or ""):
            continue
        ours = [entry for entry in distribution.entry_points if entry.group.startswith(_PREFIX)]
        name = distribution.metadata["Name"] or "a distribution without a name"
        origin = Origin(name, distribution.version or "")
        if ours:  # of a distribution that is found twice, the first one is what Python imports
            found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), [(entry, origin) for entry in ours])
    every = [one for entries in found.values() for one in entries]
    return sorted(every, key=lambda one: (one[0].group, one[0].name, one[1].distribution, one[0].value))


def _outside(entry: "EntryPoint", origin: Origin) -> Member:
    fault = "" if _NAME.match(entry.name) else _bad_name(entry.name)
    return Member(entry.name, origin, entry.load, partial(_about, entry), fault)


def _bad_name(name: str) -> str:
    return f"it is called {clip(name, 100)!r}, expected small letters and digits with hyphens between"


def _about(entry: "EntryPoint") -> str:
    """Read an entry point's first sentence from its source: of its docstring, else its module's; "" without source."""
    source = _source(entry.module)
    return "" if source is None else first_sentence(source, entry.attr)


def first_sentence(source: str, name: str = "") -> str:
    """Return the first sentence of the docstring of the class or function ``name``, else of the module's."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    parts = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name]
    docstring = next(filter(None, map(ast.get_docstring, parts)), None) or ast.get_docstring(tree) or ""
    return opening(docstring)


def _source(module: str) -> str | None:
    """Read the source of an installed module without importing it or the packages above it; None if not found."""
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first)
        name = first
        for part in rest:
            if spec is None or spec.submodule_search_locations is None:
                return None
            name = f"{name}.{part}"
            spec = importlib.machinery.PathFinder.find_spec(name, list(spec.submodule_search_locations))
        if spec is None or spec.origin is None:
            return None
        return Path(spec.origin).read_text(encoding="utf-8")
    except (OSError, ValueError, ImportError):
        return None


@dataclass(frozen=True)
class _File:
    """A file of members that was run."""

    path: Path
    origin: Origin
    module: ModuleType
    text: str


_files: dict[Path, _File] = {}
_reading = False


def add_file(path: Path) -> list[Member]:
    """Run a Python file and make its public classes members of their rooms, in this process.

    Processes that are started from here find it through the environment variable ``MMGEN_CODE``.

    Returns:
        Its public objects, as members of whatever room they fit.

    Raises:
        UsageError: It cannot be read or run.
    """
    path = Path(path).resolve()
    if path not in _files:
        _files[path] = _run(path)
        kept = [name for name in os.environ.get(CODE_VARIABLE, "").split(os.pathsep) if name]
        if str(path) not in kept:
            os.environ[CODE_VARIABLE] = os.pathsep.join([*kept, str(path)])
    return _objects(_files[path])


def code_objects() -> list[Member]:
    """List the public objects of all files that were added or that ``MMGEN_CODE`` names.

    Raises:
        UsageError: One of those cannot be read or run.
    """
    run_named_files()
    return [found for file in _files.values() for found in _objects(file)]


def run_named_files() -> None:
    """Run the files that ``MMGEN_CODE`` names, each once; a worker process begins with it.

    Raises:
        UsageError: One of them cannot be read or run.
    """
    global _reading
    if _reading:  # a file that looks up members while it is run
        return
    _reading = True
    try:
        for name in os.environ.get(CODE_VARIABLE, "").split(os.pathsep):
            if name:
                add_file(Path(name))
    finally:
        _reading = False


def _run(path: Path) -> _File:
    try:
        text = read_bounded(path)
    except OSError as error:
        raise UsageError(f"cannot read the code {path}: {reason_of(error)}; check the path") from None
    except Malformed as error:
        raise UsageError(f"the code {path} cannot be read: {error}, expected a Python file; check the path") from None
    digest = hashlib.sha256(text.encode()).hexdigest()
    # The name differs between files of the same name, and is the same in every process: a worker can find the classes.
    name = f"mmgen_code_{re.sub(r'[^0-9a-zA-Z]', '_', path.stem)}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses and pydantic look their module up
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UsageError(f"the code {path} cannot be run: {_reason(error, path)}; fix it") from error
    return _File(path, Origin(file=path.name, sha256=digest), module, text)


def _reason(error: BaseException, path: Path) -> str:
    """Format an exception in a user's file with the line in which it was raised."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines = [error.lineno]
    where = f" in line {lines[-1]}" if lines and lines[-1] else ""
    return f"{brief(error)}{where}"


def brief(error: BaseException) -> str:
    """Format an exception as its type and the first line of its message."""
    first = (str(error).strip() or "nothing said").split("\n")[0]
    return f"{type(error).__name__}: {clip(first, _LONGEST_REASON)}"


def _objects(file: _File) -> list[Member]:
    """List the public objects of a file: those in its ``__all__``, else all classes without a leading underscore."""
    names = getattr(file.module, "__all__", None)
    if names is None:
        names = [name for name in vars(file.module) if not name.startswith("_") and _is_own(file.module, name)]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        shown = clip(repr(names), 60)
        raise UsageError(f"the code {file.path} has __all__ = {shown}, expected a list of names; fix it")
    found = []
    for name in names:
        if not hasattr(file.module, name):
            raise UsageError(f"the code {file.path} names {name!r} in its __all__ and does not define it; fix it")
        member = kebab(name)
        fault = "" if _NAME.match(member) else _bad_name(member)
        load, about = partial(getattr, file.module, name), partial(first_sentence, file.text, name)
        found.append(Member(member, file.origin, load, about, fault))
    return found


def _is_own(module: ModuleType, name: str) -> bool:
    """Return True if a module defines the object rather than imports it."""
    return getattr(getattr(module, name), "__module__", None) == module.__name__


def kebab(name: str) -> str:
    """Convert the name of a class to the name of a member, in kebab case.

    Example:
        >>> kebab("TextSide"), kebab("IWAE"), kebab("Mnist2Bit"), kebab("my_figure")
        ('text-side', 'iwae', 'mnist2-bit', 'my-figure')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()

"""Plug-ins: classes from entry points of installed distributions, or from Python files that the user names.

A distribution offers a member in its own ``pyproject.toml``, in the group of the room::

    [project.entry-points."mmgen.objectives"]
    text-side = "my_package.text_side:TextSide"

Reading entry points imports nothing of the distribution; a member's module is imported when the member is used. A file
is run when it is named (:func:`add_code_file`, ``mmgen --code``, ``MMGEN_CODE``), since only running it gives its
classes.
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
from mmgen.core.parsing import MalformedError, first_sentences, read_text

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


CODE_VARIABLE = "MMGEN_CODE"
"""Environment variable with files of members, separated as in PATH; worker processes inherit it."""

_PREFIX = "mmgen."
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\Z")
_LONGEST_REASON = 300


@dataclass(frozen=True)
class Origin:
    """Origin of a plug-in: an installed distribution with its version, or a Python file with its hash.

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
    """Exchangeable class or function of a package, such as an objective, that is imported only when it is used.

    Attributes:
        name: Name in options and settings.
        origin: Distribution or file that provides it.
        load: Function that imports and returns it.
        about: Function that reads the first sentence of its docstring without importing it.
        fault: Reason why it cannot be used; "" if none is known.
    """

    name: str
    origin: Origin
    load: Callable[[], Any]
    about: Callable[[], str]
    fault: str = ""


def list_installed_members(group: str) -> list[Member]:
    """List the plug-ins that installed distributions offer in a group of entry points, such as "mmgen.objectives"."""
    return [
        _member_of_entry_point(entry, origin)
        for entry, origin in _list_entry_points(tuple(sys.path))
        if entry.group == group
    ]


def origins_by_group() -> dict[str, Origin]:
    """Return, for each group of entry points "mmgen.*", one installed distribution that offers plug-ins in it."""
    return {entry.group: origin for entry, origin in _list_entry_points(tuple(sys.path))}


def installed_version(distribution: str) -> str:
    """Return the version of the installed distribution of this name; "" if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


@cache
def _list_entry_points(search_path: tuple[str, ...]) -> list[tuple["EntryPoint", Origin]]:
    """List the entry points of all groups "mmgen.*" with their distributions, sorted; cached, since slow."""
    from importlib.metadata import distributions

    entries_by_name: dict[str, list[tuple[EntryPoint, Origin]]] = {}
    for distribution in distributions(path=list(search_path)):
        # Most distributions have no members; parsing their entry points would be slow.
        if _PREFIX not in (distribution.read_text("entry_points.txt") or ""):
            continue
        ours = [entry for entry in distribution.entry_points if entry.group.startswith(_PREFIX)]
        name = distribution.metadata["Name"] or "a distribution without a name"
        origin = Origin(name, distribution.version or "")
        if ours:  # if a distribution is installed twice, Python imports the first
            entries_by_name.setdefault(re.sub(r"[-_.]+", "-", name).lower(), [(entry, origin) for entry in ours])
    every = [one for entries in entries_by_name.values() for one in entries]
    return sorted(every, key=lambda one: (one[0].group, one[0].name, one[1].distribution, one[0].value))


def _member_of_entry_point(entry: "EntryPoint", origin: Origin) -> Member:
    fault = "" if _NAME.match(entry.name) else _explain_bad_name(entry.name)
    return Member(entry.name, origin, entry.load, partial(_describe_entry_point, entry), fault)


def _explain_bad_name(name: str) -> str:
    return f"its name is {clip(name, 100)!r}, expected lower-case letters and digits, separated by hyphens"


def _describe_entry_point(entry: "EntryPoint") -> str:
    """Read the first sentence of the docstring of an entry point, else of its module, from source; "" without one."""
    source = _read_source(entry.module)
    return "" if source is None else first_sentence(source, entry.attr)


def first_sentence(source: str, name: str = "") -> str:
    """Return the first sentence of the docstring of ``name`` in Python source text, else of the whole module."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    parts = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name]
    docstring = next(filter(None, map(ast.get_docstring, parts)), None) or ast.get_docstring(tree) or ""
    return first_sentences(docstring)


def _read_source(module: str) -> str | None:
    """Read the source text of an installed module without importing anything; return None if it is not found."""
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
class _CodeFile:
    """Python file of plug-ins that this process has run, with its module and hash."""

    path: Path
    origin: Origin
    module: ModuleType
    text: str


_files: dict[Path, _CodeFile] = {}
_reading = False


def add_code_file(path: Path) -> list[Member]:
    """Run a Python file and return its public objects as plug-ins.

    The environment variable ``MMGEN_CODE`` passes the file to worker processes.

    Raises:
        UsageError: The file cannot be read or run.
    """
    path = Path(path).resolve()
    if path not in _files:
        _files[path] = _run_file(path)
        names = [name for name in os.environ.get(CODE_VARIABLE, "").split(os.pathsep) if name]
        if str(path) not in names:
            os.environ[CODE_VARIABLE] = os.pathsep.join([*names, str(path)])
    return _members_of_file(_files[path])


def list_code_members() -> list[Member]:
    """List the plug-ins of all Python files that this process has run, and of those in ``MMGEN_CODE``.

    Raises:
        UsageError: A file cannot be read or run.
    """
    run_code_files()
    return [member for file in _files.values() for member in _members_of_file(file)]


def run_code_files() -> None:
    """Run each Python file in the environment variable ``MMGEN_CODE`` once; worker processes begin with this.

    Raises:
        UsageError: A file cannot be read or run.
    """
    global _reading
    if _reading:  # a running file looks up members
        return
    _reading = True
    try:
        for name in os.environ.get(CODE_VARIABLE, "").split(os.pathsep):
            if name:
                add_code_file(Path(name))
    finally:
        _reading = False


def _run_file(path: Path) -> _CodeFile:
    try:
        text = read_text(path)
    except OSError as error:
        raise UsageError(f"cannot read the code {path}: {reason_of(error)}; check the path") from None
    except MalformedError as error:
        raise UsageError(f"the code {path} cannot be read: {error}; name a Python file") from None
    digest = hashlib.sha256(text.encode()).hexdigest()
    # The name differs between files of the same name, and is the same in every process: a worker can find the classes.
    name = f"mmgen_code_{re.sub(r'[^0-9a-zA-Z]', '_', path.stem)}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module  # dataclasses and pydantic look their module up
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a file may leave by any of them
        del sys.modules[name]
        raise UsageError(
            f"the code {path} cannot be run: {format_exception_with_line(error, path)}; fix the file"
        ) from error
    return _CodeFile(path, Origin(file=path.name, sha256=digest), module, text)


def format_exception_with_line(error: BaseException, path: Path) -> str:
    """Format an exception that the Python file at ``path`` raised, with the number of its line if it has one."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines = [error.lineno]
    where = f" in line {lines[-1]}" if lines and lines[-1] else ""
    return f"{format_exception(error)}{where}"


def format_exception(error: BaseException) -> str:
    """Format an exception as its type and the first line of its message."""
    first = (str(error).strip() or "no message").split("\n")[0]
    return f"{type(error).__name__}: {clip(first, _LONGEST_REASON)}"


def _members_of_file(file: _CodeFile) -> list[Member]:
    """List the public objects of a file as plug-ins: those in ``__all__``, else classes without leading underscores."""
    names = getattr(file.module, "__all__", None)
    if names is None:
        names = [name for name in vars(file.module) if not name.startswith("_") and _is_defined_in(file.module, name)]
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        text = clip(repr(names), 60)
        raise UsageError(f"the code {file.path} has __all__ = {text}, expected a list of names; fix the file")
    members = []
    for name in names:
        if not hasattr(file.module, name):
            raise UsageError(f"the code {file.path} has {name!r} in __all__ but does not define it; fix the file")
        member_name = to_kebab_case(name)
        fault = "" if _NAME.match(member_name) else _explain_bad_name(member_name)
        load, about = partial(getattr, file.module, name), partial(first_sentence, file.text, name)
        members.append(Member(member_name, file.origin, load, about, fault))
    return members


def _is_defined_in(module: ModuleType, name: str) -> bool:
    """Return whether the object ``name`` of a module is defined there and not imported."""
    return getattr(getattr(module, name), "__module__", None) == module.__name__


def to_kebab_case(name: str) -> str:
    """Convert the name of a class to kebab case, as in options: "ProductOfExperts" to "product-of-experts".

    Example:
        >>> to_kebab_case("TextSide"), to_kebab_case("IWAE"), to_kebab_case("Mnist2Bit"), to_kebab_case("my_figure")
        ('text-side', 'iwae', 'mnist2-bit', 'my-figure')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).replace("_", "-").lower()

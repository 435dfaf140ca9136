"""Parents and relatives of a file, and where they are now."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

from mmgen.artifacts.containers import add_article, read_header
from mmgen.artifacts.files import check_replaceable, check_writable
from mmgen.artifacts.header import KINDS, Parent
from mmgen.core.errors import ArtifactError, FormatVersionError, MissingParentError, UsageError
from mmgen.core.parsing import printable

__all__ = [
    "check_nothing_lost",
    "check_output",
    "find_parent",
    "find_parent_file",
    "find_relatives",
    "find_record",
    "parent_record",
]


def check_output(path: Path, kind: str | None, *inputs: Path) -> None:
    """Raise an error, before work starts, if an artifact of ``kind`` may not be written to ``path``.

    Only an artifact of the same kind is replaced, or an empty file, and none that the work reads.

    Args:
        path: File to write.
        kind: What it will be; None for a page, a picture or a table, which replaces all but artifacts.
        inputs: Files that the work reads.

    Raises:
        UsageError: ``path`` is one of ``inputs``, or holds something else, which would be lost.
        ArtifactError: It cannot be written there: it is a folder, a device or a pipe, in no folder, or its name is
            too long; a page, a picture or a table is in a folder that takes no files.
    """
    check_replaceable(path)
    if kind is None:  # which is always written; an artifact that is finished may lie in a folder that takes no more
        check_writable(path)
    what = f"{add_article(kind)} to {path}" if kind else str(path)
    if os.path.realpath(path) in map(os.path.realpath, inputs):
        raise UsageError(f"cannot write {what}: the command reads that file, which would be lost; choose another name")
    if not os.path.exists(path) or not os.path.getsize(path):
        return
    current: str | None = None
    holds = "something that is no artifact of mmgen"
    try:
        current = read_header(path).kind
        holds = add_article(current)
    except FormatVersionError:
        current = holds = "an artifact of another format version"
    except ArtifactError:
        pass
    if current != kind:
        raise UsageError(
            f"cannot write {what}: it holds {holds}, which would be lost; choose another name, or "
            "remove that file first"
        )


def check_nothing_lost(path: Path, overwrite: bool, alternative: str = "") -> None:
    """Raise an error if ``path`` holds finished work and ``overwrite`` is False; call :func:`check_output` first.

    Args:
        path: File to write.
        overwrite: Whether the user allows to replace it.
        alternative: For the message: another option that keeps it, if there is one.

    Raises:
        UsageError: There is a file that is not empty.
    """
    if not overwrite and os.path.exists(path) and os.path.getsize(path):
        ways = f"{alternative}another --output" if alternative else "use another --output"
        raise UsageError(f"{path} is there already, and would be lost; {ways}, or --overwrite to replace it")


def parent_record(path: Path, role: str, child: Path) -> Parent:
    """Return the record of the file ``path`` as a parent, for the header of ``child`` (which need not exist yet).

    Raises:
        ArtifactError: ``path`` is no artifact.
    """
    header = read_header(path)
    absolute = os.path.realpath(path)
    try:
        recorded = os.path.relpath(absolute, os.path.realpath(Path(child).parent))
    except ValueError:  # another drive
        recorded = absolute
    return Parent(role, header.kind, header.content_id, PurePath(recorded).as_posix(), header.command)


def find_record(path: Path, role: str) -> Parent:
    """Return the record of the parent in ``role``, such as "dataset", from the header of the artifact at ``path``.

    Raises:
        ArtifactError: It has no such parent.
    """
    header = read_header(path)
    for parent in header.parents:
        if parent.role == role:
            return parent
    roles = ", ".join(printable(parent.role, 40) for parent in header.parents) or "none"
    raise ArtifactError(
        f"{path} is {add_article(header.kind)} without a parent '{role}' (it has: {roles}); "
        f"make it again with {KINDS[header.kind]}"
    )


def _has_content_id(path: Path, content_id: str) -> bool:
    try:
        return read_header(path).content_id == content_id
    except (ArtifactError, ValueError):
        return False


def _artifact_paths(folder: Path) -> Iterator[Path]:
    """Yield the visible files of a folder that may be artifacts, sorted by name."""
    try:
        entries = sorted(
            entry.name for entry in os.scandir(folder) if not entry.name.startswith(".") and entry.is_file()
        )
    except OSError:
        return
    yield from (Path(folder) / name for name in entries)


def find_parent(path: Path, role: str) -> Path:
    """Return the path of the parent in ``role``, such as "dataset", of the artifact at ``path``.

    Looks at the recorded path, then for the same file name beside the child, then at every artifact in the child's
    folder and in the current one.

    Raises:
        MissingParentError: None of them is the parent; the message names the command that makes it again.
        ArtifactError: ``path`` is no artifact or has no such parent.
    """
    return find_parent_file(Path(path), find_record(path, role))


def find_parent_file(path: Path, parent: Parent) -> Path:
    """Return the path of ``parent``, a record in the header of the artifact at ``path``; see :func:`find_parent`.

    Raises:
        MissingParentError: It is nowhere; the message names the command that makes it again.
    """
    recorded = path.parent / parent.path
    likely = [recorded, path.parent / PurePath(parent.path).name]
    for candidate in likely:
        if _has_content_id(candidate, parent.content_id):
            return Path(os.path.normpath(candidate))
    for folder in dict.fromkeys([path.parent.resolve(), Path.cwd()]):
        for candidate in _artifact_paths(folder):
            if _has_content_id(candidate, parent.content_id):
                return candidate
    where = Path(os.path.normpath(recorded))
    try:
        there = where.is_file()
    except (OSError, ValueError):
        there = False
    state = "now holds something else" if there else "is not there"
    remedy = (
        f"make it again with: {printable(parent.command, 2000)}"
        if parent.command
        else f"make it with {KINDS.get(parent.kind, 'mmgen')}"
    )
    raise MissingParentError(
        f"cannot find the {printable(parent.role, 40)} that {path} was made from ({printable(str(where))} {state}); "
        f"{remedy}"
    )


def find_relatives(folders: Iterable[Path], kind: str, parent_id: str) -> list[Path]:
    """Return artifacts of ``kind`` in ``folders`` that were made from the artifact with content id ``parent_id``.

    Returns:
        Paths, the newest file first; unreadable and foreign files are passed over.
    """
    newest: dict[str, tuple[float, Path]] = {}
    for folder in folders:
        for path in _artifact_paths(Path(folder)):
            try:
                header = read_header(path)
                if header.kind == kind and any(parent.content_id == parent_id for parent in header.parents):
                    newest.setdefault(os.path.realpath(path), (path.stat().st_mtime, path))
            except (ArtifactError, OSError):
                continue
    return [path for _, path in sorted(newest.values(), key=lambda pair: pair[0], reverse=True)]

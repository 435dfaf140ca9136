"""Parents of artifacts: how they are recorded and found, and the tree of all ancestors."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal

from mmgen.artifacts.containers import add_article, read_header
from mmgen.artifacts.files import check_replaceable, check_writable, list_visible_files, note_output
from mmgen.artifacts.header import KINDS, Header, Parent, advised_command
from mmgen.artifacts.verified import is_verified
from mmgen.core.errors import ArtifactError, FormatVersionError, MissingParentError, UsageError
from mmgen.core.parsing import printable


def check_output(path: Path, kind: str | None, *inputs: Path) -> None:
    """Raise an error, before work starts, if an artifact of ``kind`` may not be written to ``path``.

    Only an artifact of the same kind is replaced, or an empty file, and none that the work reads; when it is written,
    nothing is replaced that was not there now.

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
    if kind != "latents":  # a cache, which several fits may make of one model: all write the same
        note_output(path)
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


def parent_record(path: Path, role: str, child: Path, opened: Header | None = None) -> Parent:
    """Return the record of the file ``path`` as a parent, for the header of ``child`` (which need not exist yet).

    Args:
        path: The parent.
        role: Its role for the child.
        child: The file that is made from it.
        opened: Its header from when it was opened, since it may be replaced meanwhile; by default it is read now.

    Raises:
        ArtifactError: ``path`` is no artifact.
    """
    header = opened or read_header(path)
    absolute = os.path.realpath(path)
    try:
        recorded = os.path.relpath(absolute, os.path.realpath(Path(child).parent))
    except ValueError:  # another drive
        recorded = absolute
    return Parent(role, header.kind, header.content_id, PurePath(recorded).as_posix(), header.command)


def check_unchanged(path: Path, content_id: str, found: Header | None = None) -> None:
    """Raise an error unless the artifact at ``path`` is still the one with this content id.

    Args:
        path: The artifact.
        content_id: The id that it had when it was opened.
        found: Its header as it is now, which is read by default.

    Raises:
        ArtifactError: It was replaced.
    """
    if (found or read_header(path)).content_id != content_id:
        raise ArtifactError(f"{path} was replaced meanwhile; type the command again")


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
    with suppress(OSError):
        yield from list_visible_files(folder)


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
    state = "now holds something else" if os.path.isfile(where) else "is not there"
    raise MissingParentError(
        f"cannot find the {printable(parent.role, 40)} that {path} was made from ({printable(str(where))} {state}); "
        f"make it again with: {advised_command(parent.command, parent.kind)}"
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


_DEEPEST = 64  # generations; honest files have four

State = Literal["verified", "found", "damaged", "missing"]
"""Verified against its content id; too large to be verified; not matching; not there."""


@dataclass(frozen=True)
class Node:
    """An artifact in a lineage, the tree of the files from which another file was made.

    Attributes:
        role: Its role for its child, such as "dataset"; "" for the root of the lineage.
        kind: Kind of artifact.
        content_id: Its id.
        path: Where it is; where it was recorded if it is missing.
        state: Whether a file with this content id was verified, is there, is damaged or is missing.
        command: The command that makes it again.
        parents: Its parents; empty for a missing file.
        header: Its header; None if it is missing.
    """

    role: str
    kind: str
    content_id: str
    path: Path
    state: State
    command: str
    parents: tuple["Node", ...] = ()
    header: Header | None = None

    @property
    def is_present(self) -> bool:
        """True if a file with this content id exists, whether or not its data were verified."""
        return self.state != "missing"

    def to_json(self, seen: set[str] | None = None) -> dict[str, Any]:
        """Return the tree as nested values for JSON; a file that occurs twice lists its parents the first time only."""
        seen = set() if seen is None else seen
        again = self.content_id in seen
        seen.add(self.content_id)
        return {
            "role": self.role,
            "kind": self.kind,
            "content_id": self.content_id,
            "path": str(self.path),
            "found": self.is_present,
            "state": self.state,
            "command": self.command,
            "parents": [] if again else [parent.to_json(seen) for parent in self.parents],
        }


def read_lineage(path: Path) -> Node:
    """Read the artifact at ``path`` and all files from which it was made, as a tree; each file is read once.

    Raises:
        ArtifactError: ``path`` itself is no artifact, does not match its content id, or is an ancestor of itself; a
            parent that cannot be found or is damaged is only marked.
    """
    return _Tracer().trace(Path(path), "", ())


class _EndlessLineageError(ArtifactError):
    """Error for a lineage that is too deep, or in which a file is its own ancestor."""


class _Tracer:
    """Reader of a lineage that reads each file once, even if several files were made from it."""

    def __init__(self) -> None:
        self._known: dict[str, Node] = {}

    def trace(self, path: Path, role: str, descendants: tuple[str, ...]) -> Node:
        """Return a file with its ancestors; ``descendants``, content ids of files made from it, reveal cycles."""
        header = read_header(path)
        if header.content_id in self._known:
            return replace(self._known[header.content_id], role=role)
        descendants = (*descendants, header.content_id)
        if len(descendants) > _DEEPEST:
            raise _EndlessLineageError(
                f"{path} has too many generations of ancestors, expected at most {_DEEPEST}; make it again"
            )
        state: State = "verified"
        try:
            state = "verified" if is_verified(path) else "found"
        except ArtifactError:
            if len(descendants) == 1:
                raise
            state = "damaged"
        parents = tuple(self._trace_parent(path, parent, descendants) for parent in header.parents)
        node = Node(role, header.kind, header.content_id, path, state, header.command, parents, header)
        self._known[header.content_id] = node
        return node

    def _trace_parent(self, path: Path, parent: Parent, descendants: tuple[str, ...]) -> Node:
        if parent.content_id in descendants:
            raise _EndlessLineageError(
                f"{path} names itself among the files that it was made from, so its header was changed; make it again"
            )
        if parent.content_id in self._known:
            return replace(self._known[parent.content_id], role=parent.role)
        try:
            return self.trace(find_parent_file(path, parent), parent.role, descendants)
        except _EndlessLineageError:
            raise
        except (MissingParentError, ArtifactError):
            where = path.parent / parent.path
            return Node(parent.role, parent.kind, parent.content_id, where, "missing", parent.command)


def walk_ancestors(node: Node) -> Iterator[Node]:
    """Yield ``node`` and then all its ancestors, each once."""
    seen: set[str] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current.content_id not in seen:
            seen.add(current.content_id)
            yield current
            stack += reversed(current.parents)


def outline_lineage(roots: Sequence[Node]) -> list[tuple[int, Node, bool]]:
    """Return a triple for each line of a lineage: depth, file, and whether an earlier line shows the same file.

    Roots that are ancestors of other roots are listed there only.
    """
    ancestors = {node.content_id for root in roots for parent in root.parents for node in walk_ancestors(parent)}
    listed: list[tuple[int, Node, bool]] = []
    seen: set[str] = set()

    def list_node(node: Node, depth: int) -> None:
        again = node.content_id in seen
        listed.append((depth, node, again))
        seen.add(node.content_id)
        for parent in () if again else node.parents:
            list_node(parent, depth + 1)

    for root in roots:
        if root.content_id not in ancestors and root.content_id not in seen:
            list_node(root, 0)
    return listed


def format_lineage(node: Node) -> list[str]:
    """Format a lineage as lines of text, one per file, the files that it was made from indented below it.

    Example: ``└─ dataset  mnist-a.h5  (dataset 1f9a0c33e2b7, verified)``
    """
    lines: list[str] = []
    seen: set[str] = set()

    def add_lines(current: Node, indent: str, branch: str, child_indent: str) -> None:
        again = current.content_id in seen
        seen.add(current.content_id)
        state: str = current.state
        if not current.is_present:
            state = f"MISSING, make it again with: {advised_command(current.command, current.kind)}"
        if again:
            state = "as above"
        role = f"{printable(current.role, 40)}  " if current.role and current.role != current.kind else ""
        where, kind = printable(str(current.path), 1000), printable(current.kind, 40)
        lines.append(f"{indent}{branch}{role}{where}  ({kind} {printable(current.content_id, 12)[:12]}, {state})")
        for position, parent in enumerate(() if again else current.parents):
            last = position == len(current.parents) - 1
            add_lines(parent, indent + child_indent, "└─ " if last else "├─ ", "   " if last else "│  ")

    add_lines(node, "", "", "")
    return lines

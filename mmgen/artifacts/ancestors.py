"""The lineage of a file: its parents and theirs, each found by content id or marked as missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mmgen.artifacts import Header, Parent, read_header
from mmgen.artifacts.lineage import find_parent_file
from mmgen.artifacts.verified import is_verified
from mmgen.core.errors import ArtifactError, MissingParentError
from mmgen.core.parsing import printable

__all__ = ["Node", "read_lineage", "outline_lineage", "format_lineage", "walk_ancestors"]

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
            state = "MISSING, make it again with: " + (printable(current.command, 2000) or "?")
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

"""Where a file comes from: it, its parents, and theirs, each verified by content id or marked as missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.artifacts import Header, find_parent, read_header
from mmgen.errors import ArtifactError, MissingParentError

__all__ = ["Node", "lineage", "outline", "tree_lines", "walk"]

_DEEPEST = 16


@dataclass(frozen=True)
class Node:
    """A file of a lineage.

    Attributes:
        role: What it was to its child; "" for the file asked about.
        kind: Kind of artifact.
        content_id: Its id.
        path: Where it is; where it was recorded if it is missing.
        found: Whether a file with this content id is there.
        command: The command that makes it again.
        parents: Its parents; none are known of a missing file.
        header: Its header; None if it is missing.
    """

    role: str
    kind: str
    content_id: str
    path: Path
    found: bool
    command: str
    parents: tuple["Node", ...] = ()
    header: Header | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "role": self.role,
            "kind": self.kind,
            "content_id": self.content_id,
            "path": str(self.path),
            "found": self.found,
            "command": self.command,
            "parents": [parent.to_json() for parent in self.parents],
        }


def lineage(path: Path, role: str = "", depth: int = _DEEPEST) -> Node:
    """The file at ``path`` with everything that it was made from.

    Raises:
        ArtifactError: ``path`` itself is no artifact; a parent that cannot be found is only marked.
    """
    header = read_header(path)
    parents = []
    for parent in header.parents if depth > 0 else ():
        try:
            parents.append(lineage(find_parent(path, parent.role), parent.role, depth - 1))
        except (MissingParentError, ArtifactError):
            where = path.parent / parent.path
            parents.append(Node(parent.role, parent.kind, parent.content_id, where, False, parent.command))
    return Node(role, header.kind, header.content_id, path, True, header.command, tuple(parents), header)


def walk(node: Node) -> Iterator[Node]:
    """The node and all its ancestors; one that is reached twice comes once."""
    seen: set[str] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current.content_id not in seen:
            seen.add(current.content_id)
            yield current
            stack += reversed(current.parents)


def outline(roots: Sequence[Node]) -> list[tuple[int, Node, bool]]:
    """Files with their depth, parents below their children, and whether a file was listed before with its parents.

    Roots that are ancestors of other roots are listed there only.
    """
    ancestors = {node.content_id for root in roots for parent in root.parents for node in walk(parent)}
    found: list[tuple[int, Node, bool]] = []
    seen: set[str] = set()

    def visit(node: Node, depth: int) -> None:
        again = node.content_id in seen
        found.append((depth, node, again))
        seen.add(node.content_id)
        for parent in () if again else node.parents:
            visit(parent, depth + 1)

    for root in roots:
        if root.content_id not in ancestors and root.content_id not in seen:
            visit(root, 0)
    return found


def tree_lines(node: Node) -> list[str]:
    """The lineage as lines of text, a line for each file, parents below their children.

    Example: ``└─ dataset  mnist-a.h5  (dataset 1f9a0c33e2b7, verified)``
    """
    lines: list[str] = []
    seen: set[str] = set()

    def visit(current: Node, before: str, branch: str, inner: str) -> None:
        again = current.content_id in seen
        seen.add(current.content_id)
        state = "verified" if current.found else "MISSING, make it again with: " + (current.command or "?")
        if again:
            state = "as above"
        role = f"{current.role}  " if current.role and current.role != current.kind else ""
        lines.append(f"{before}{branch}{role}{current.path}  ({current.kind} {current.content_id[:12]}, {state})")
        for position, parent in enumerate(() if again else current.parents):
            last = position == len(current.parents) - 1
            visit(parent, before + inner, "└─ " if last else "├─ ", "   " if last else "│  ")

    visit(node, "", "", "")
    return lines

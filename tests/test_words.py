"""Words of the house: how sentences about the code begin."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("mmgen", "cli", "data_recipes", "tests", "benchmarks", "docs")
FILES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if not any(part.is_symlink() for part in [path, *path.parents])  # mmgen/cli is cli
)


def _statements(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements at any depth; expressions hold no docstrings, and are most of a tree."""
    for node in nodes:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(node, part, ()))


def _sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that begin a docstring, or what a docstring says of an argument or attribute."""
    for node in _statements(ast.parse(path.read_text()).body):
        said = node.value.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) else None
        if not (isinstance(node, ast.Expr) and isinstance(said, str)):
            continue
        for number, line in enumerate(said.splitlines()):
            named = re.match(r"\s+\w+: (.*)", line)
            if named or not number:
                yield node.lineno + number, named[1] if named else line


def test_files_are_found() -> None:
    assert len(FILES) > 400


@pytest.mark.parametrize("folder", FOLDERS)
def test_sentences_begin_with_their_noun(folder: str) -> None:
    """ "Seed of the draws.", not "Of the draws."."""
    found = [
        f"{path.relative_to(ROOT)}:{line}: {said}"
        for path in FILES
        if path.is_relative_to(ROOT / folder)
        for line, said in _sentences(path)
        if said.startswith("Of ")
    ]
    assert not found

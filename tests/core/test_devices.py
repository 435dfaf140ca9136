"""Where randomness is drawn is said at every place: what is left out there is found on a GPU alone."""

import ast
from pathlib import Path

import pytest

import mmgen

SOURCES = sorted(Path(mmgen.__file__).parent.rglob("*.py"))
MAKERS = {"torch_generator", "random_stream"}
"""The functions that make a generator of torch; torch refuses one of another device than the numbers to draw."""


@pytest.mark.slow
def test_every_generator_says_its_device() -> None:
    calls = {
        f"{path.name}:{node.lineno}": {keyword.arg for keyword in node.keywords}
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS
    }
    assert len(calls) > 20, "the walk finds them"
    assert [place for place, said in calls.items() if "device" not in said] == []

"""The notebook of the pages: run in order, small, and still what the functions show."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.generated import generated_page

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTEBOOK = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def executor() -> ModuleType:
    spec = importlib.util.spec_from_file_location("execute", DOCS / "execute.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_was_run_from_the_first_cell_to_the_last_and_is_small() -> None:
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert NOTEBOOK["nbformat"] == 4 and len({cell["id"] for cell in NOTEBOOK["cells"]}) == len(NOTEBOOK["cells"])
    assert (DOCS / "notebook.ipynb").stat().st_size < 300_000
    shown = json.dumps([cell["outputs"] for cell in CODE])
    assert "image/png" in shown and "text/html" in shown
    assert not re.search(r"/(home|root|work|tmp|Users)/|object at 0x|Traceback", shown)


def test_what_runs_it_keeps_prints_pictures_and_tables(tmp_path: Path) -> None:
    class Both:
        def _repr_png_(self) -> bytes:
            return b"png"

    outputs, value = executor()._run("print('said')\nx = 3\nx + 1", {})
    assert value == 4 and outputs == [{"output_type": "stream", "name": "stdout", "text": "said\n"}]
    assert executor()._shown(Both()) == {"image/png": "cG5n", "text/plain": "Both"}


@pytest.mark.slow
def test_it_still_shows_what_it_shows(tmp_path: Path) -> None:
    again = executor().executed(NOTEBOOK, tmp_path)

    def shape(notebook: dict[str, Any]) -> list[list[list[str]]]:
        found = [cell.get("outputs", []) for cell in notebook["cells"]]
        return [[sorted(output.get("data", {"text": ""})) for output in outputs] for outputs in found]

    assert shape(again) == shape(NOTEBOOK)


@pytest.mark.slow
def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    block = "\n".join(re.findall(r"^```python\n(.*?)^```$", generated_page("python.md"), re.S | re.M))
    reductions = (
        (r"copies=\d+", "copies=1"), (r"steps=\d+", "steps=20"), (r"draws=\d+", "draws=1, queries=8"),
        (r"number=8", "number=1, dimensions=1"),
    )  # fmt: skip
    for number, less in reductions:
        assert re.search(number, block)
        block = re.sub(number, less, block)
    names: dict[str, Any] = {}
    exec(block, names)
    made = ("threes.png", "traversal.png", "report.html", "explore.html", "digits-model/README.md")
    assert all((tmp_path / name).exists() for name in made) and len(names["scores"]) > 2

"""No file of settings in the current folder reaches a library: that folder may hold what a stranger has sent."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.program import environment

ROOT = Path(__file__).parents[2]
PLANTED = {
    "matplotlibrc": "text.usetex: True\nfont.size: 77\n",
    ".numba_config.yaml": "disable_jit: 1\ncaptured_errors: nonsense\n",
    "wandb/settings": "[default]\nbase_url = https://evil.example\n",
}
SEEN = """
import os, sys
from mmgen.figures import plots
assert "matplotlib" not in sys.modules, "a mistake need not wait for it"
plots.get("traversal")
import matplotlib, mmgen.figures.report.curves
from mmgen.data_recipes._clevr._vectors import numba
from numba.core import config
config.reload_config()
seen = [matplotlib.rcParams[name] for name in ("text.usetex", "font.size")]
print(os.path.basename(os.getcwd()), *seen, config.DISABLE_JIT)
"""


@pytest.mark.slow
def test_settings_of_the_current_folder_are_not_read(tmp_path: Path) -> None:
    for name, text in PLANTED.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", SEEN], cwd=tmp_path, env=environment(1), text=True, capture_output=True, check=False
    )
    assert done.stdout.split() == [tmp_path.name, "False", "10.0", "0"], done.stderr


def test_a_folder_that_is_gone_is_no_obstacle(tmp_path: Path) -> None:
    here = os.getcwd()
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    try:
        (tmp_path / "gone").rmdir()
        from mmgen.core.extras import outside_current_folder

        with outside_current_folder():
            assert not (tmp_path / "gone").exists()
    finally:
        os.chdir(here)


@pytest.mark.slow
def test_each_such_library_is_first_imported_in_one_place() -> None:
    """matplotlib by the room that draws, before any file of it; numba by one file."""
    found: dict[str, set[str]] = {"matplotlib": set(), "numba": set(), "wandb": set()}
    for folder in ("mmgen", "cli", "data_recipes"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                for name in names:
                    if (library := name.split(".")[0]) in found:
                        found[library].add(str(path.relative_to(ROOT)).removeprefix("mmgen/data_recipes/"))
    rooms = {"drawing", "report", "plots"}  # of plots only the figures, which are loaded by name
    for name in found["matplotlib"]:
        assert name.split("/")[:2] == ["mmgen", "figures"] and name.split("/")[2] in rooms and "plots/_" not in name
    assert {name.removeprefix("data_recipes/") for name in found["numba"]} == {"_clevr/_vectors.py"}
    assert found["wandb"] == {"mmgen/training/log.py"}

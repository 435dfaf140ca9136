"""What a shell offers after Tab: names of everything that can be named, without the libraries that take seconds."""

import subprocess
import sys
from pathlib import Path

import pytest

from mmgen import data_recipes, metrics, objectives
from mmgen.cli._main import command_names
from mmgen.experiments import experiment_names
from mmgen.figures import plots
from mmgen.settings import presets
from tests.program import within


def offered(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Bash is offered at the end of a line."""
    words = line.split()
    monkeypatch.setenv("_MMGEN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) if line.endswith(" ") else len(words) - 1))
    return within(folder).stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mmgen ", command_names()),
        ("mmgen make-data ", data_recipes.names()),
        ("mmgen make-data mnist-", [name for name in data_recipes.names() if name.startswith("mnist-")]),
        ("mmgen make-data mnist-a --so", ["--source"]),
        ("mmgen make-data mnist-a --co", ["--copies", "--code"]),
        ("mmgen make-data two-objects --ma", ["--masks", "--materials"]),
        ("mmgen train d.h5 --objective ", objectives.names()),
        ("mmgen train d.h5 --preset quick", [name for name in presets.preset_names() if name.startswith("quick")]),
        ("mmgen eval m.safetensors --metric co", [name for name in metrics.names() if name.startswith("co")]),
        ("mmgen plot ", plots.names()),
        ("mmgen list objective te", ["telbo"]),
        ("mmgen list presets quickstart/",
         [f"quickstart/{name}" for name in ("captions", "digits", "pictures", "plain-cvae", "shapes")]),
        ("mmgen reproduce wu-", sorted({name.split("/")[0] for name in experiment_names() if name.startswith("wu-")})),
        ("mmgen fit-aggregate m.safetensors --given ", ["attributes", "text", "nothing"]),
    ],
)  # fmt: skip
def test_names_are_offered(line: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(offered(line, tmp_path, monkeypatch)) == sorted(expected)


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from mmgen.cli import _options as c; from types import SimpleNamespace as S;"
        "assert 'telbo' in c.complete_members('mmgen.objectives')('te');"
        "assert c.complete_names_of_kind(S(params={'kind': 'objective'}), 'te') == ['telbo'];"
        "print(*{'torch', 'numpy', 'pydantic', 'h5py', 'rich'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("variables", [{}, {"COMP_WORDS": "mmgen show x", "COMP_CWORD": "abc"}])
def test_a_line_that_no_shell_has_asked_about(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"_MMGEN_COMPLETE": "complete_bash", **variables}.items():
        monkeypatch.setenv(name, value)
    done = within(tmp_path)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("mmgen: cannot complete this line: ")

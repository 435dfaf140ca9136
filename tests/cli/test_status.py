"""``mmgen status``: which files of a folder are up to date, from headers alone."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch

from mmgen.artifacts import find_parent, header as headers, parent_record, read_header, write_checkpoint
from mmgen.core.errors import MissingParentError
from mmgen.core.version import __version__
from mmgen.evaluation import write_scores
from mmgen.results.score import Score
from tests.cli.conftest import Run
from tests.cli.test_main import left_by

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def write(path: Path, *parents: Path, value: float = 0.0, facts: Mapping[str, Any] | None = None) -> str:
    """Write a model, or an aggregate if there are parents; return its content id."""
    kind = "aggregate" if parents else "model"
    told = {"facts": facts, "command": f"mmgen {'fit-aggregate' if parents else 'train'} -o {path.name}"}
    records = [parent_record(one, "model", path) for one in parents]
    tensors = {"w": torch.tensor([value])}
    return write_checkpoint(path, kind=kind, tensors=tensors, settings={}, seed=0, parents=records, **told).content_id


def write_state(path: Path, finished: bool) -> None:
    write_checkpoint(path, kind="training-state", tensors={}, settings={}, seed=0, facts={"finished": finished})


def write_score(path: Path, **ids: str) -> None:
    run = {"name": "a", "settings": "0", "seed": "0"}
    write_scores(path, [Score("correctness", "correctness", 50.0, 1.0, "%", "higher", 4, "own", ids=ids, run=run)])


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """A folder with model m, the aggregate a fitted to it, b made from a, and scores of a."""
    m, a, b = (tmp_path / f"{name}.safetensors" for name in "mab")
    write(m)
    content_id = write(a, m)
    write(b, a)
    write_score(tmp_path / "a.jsonl", aggregate=content_id)
    return tmp_path


def states(run: Run, *words: str) -> dict[str, list[str]]:
    """State and remedy by the name of the file."""
    done = run("status", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return {line.split("\t")[1]: line.split("\t")[3:] for line in done.stdout.splitlines()}


def test_everything_is_up_to_date_and_ancestors_come_first(chain: Path, run: Run) -> None:
    lines = run("status").stdout.splitlines()
    assert lines == [
        "model\tm.safetensors\t\tup to date\t",
        "aggregate\ta.safetensors\tmodel m.safetensors\tup to date\t",
        "aggregate\tb.safetensors\tmodel a.safetensors\tup to date\t",
        "scores\ta.jsonl\taggregate a.safetensors\tup to date\t",
    ]


def test_a_changed_parent_outdates_what_was_made_from_it(chain: Path, run: Run) -> None:
    write(chain / "m.safetensors", value=1.0)
    found = states(run)
    assert found["m.safetensors"] == ["up to date", ""]
    again = "make it again with: mmgen fit-aggregate -o a.safetensors --overwrite"
    assert found["a.safetensors"] == ["parent changed", again]
    assert found["b.safetensors"] == ["parent out of date", "first renew a.safetensors"]
    assert found["a.jsonl"] == ["parent out of date", "first renew a.safetensors"]
    write(chain / "a.safetensors", chain / "m.safetensors")
    found = states(run)
    assert found["a.safetensors"] == ["up to date", ""]
    assert found["a.jsonl"] == [
        "parent changed", "measure again with: mmgen eval a.safetensors -o a.jsonl --overwrite"
    ]  # fmt: skip


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_the_exit_code_tells_whether_all_is_up_to_date(form: tuple[str, ...], chain: Path, run: Run) -> None:
    assert run("status", "--exit-code", *form).returncode == 0
    write(chain / "m.safetensors", value=1.0)
    before, asked = run("status", *form), run("status", "--exit-code", *form)
    assert (before.returncode, asked.returncode) == (0, 1)
    assert (asked.stdout, asked.stderr) == (before.stdout, "")


def test_a_missing_parent_is_named_with_its_command(chain: Path, run: Run) -> None:
    (chain / "m.safetensors").unlink()
    found = states(run)
    assert found["a.safetensors"] == ["parent missing", "make the model with: mmgen train -o m.safetensors"]
    assert found["b.safetensors"] == ["up to date", ""]  # its own parent is there


def test_a_renamed_parent_is_found_by_its_content(chain: Path, run: Run) -> None:
    (chain / "m.safetensors").rename(chain / "renamed.safetensors")
    assert states(run)["a.safetensors"] == ["up to date", ""]


def test_unfinished_trainings_are_continued(chain: Path, run: Run) -> None:
    write(chain / "m.safetensors", facts={"finished": False})
    write_state(chain / "m.last.safetensors", finished=False)
    write_state(chain / "n.last.safetensors", finished=False)
    write_state(chain / "o.last.safetensors", finished=True)
    write_checkpoint(
        chain / "p.last.safetensors", kind="training-state", tensors={}, settings={"training": {"steps": 8000}}, seed=0,
        facts={"finished": False, "step": 361},
    )  # fmt: skip
    found = states(run)
    assert found["m.safetensors"] == ["unfinished", "continue with: mmgen train -o m.safetensors"]
    assert found["n.safetensors"] == ["unfinished", "give the command of its training again to continue"]
    assert found["p.safetensors"][1].startswith("stopped at step 361 of 8,000; give the command")
    assert "o.safetensors" not in found


def test_other_versions_and_unreadable_files(chain: Path, run: Run) -> None:
    with mock.patch.object(headers, "__version__", "0.0.9"):
        write(chain / "m.safetensors", value=1.0)
    (chain / "broken.h5").write_bytes(b"\x00" * 100)
    found = states(run)
    assert found["m.safetensors"] == ["other version", f"made with mmgen 0.0.9, this is {__version__}"]
    state, reason = found["broken.h5"]
    assert state == "unreadable" and "broken.h5 is neither HDF5 nor safetensors" in reason


def test_pages_are_of_models_that_are_there(chain: Path, run: Run) -> None:
    head = '<!doctype html><meta name="generator" content="mmgen {}">'
    model = read_header(chain / "m.safetensors").content_id
    for kind, content_id in (("report", model), ("explore", "0" * 64)):
        mark = f'<meta name="mmgen-model" content="{content_id}">'
        (chain / f"{kind}.html").write_text(f"{head.format(kind)}{mark}")
    (chain / "foreign.html").write_text("<html>")
    lines = run("status").stdout.splitlines()
    again = "draw it again with: mmgen explore . -o explore.html"
    assert lines[-2:] == [
        f"explore\texplore.html\tmodel 000000000000\tparent missing\t{again}",
        "report\treport.html\tmodel m.safetensors\tup to date\t",
    ]


def test_json_holds_every_reason(chain: Path, run: Run) -> None:
    with mock.patch.object(headers, "__version__", "0.0.9"):
        write(chain / "a.safetensors", chain / "m.safetensors", value=3.0)
    (chain / "m.safetensors").unlink()
    found = [json.loads(line) for line in run("status", "--json").stdout.splitlines()]
    (one,) = [file for file in found if file["path"] == "a.safetensors"]
    assert one["state"] == "parent missing"
    assert [problem["state"] for problem in one["problems"]] == ["parent missing", "other version"]
    assert [(parent["role"], parent["state"]) for parent in one["parents"]] == [("model", "missing")]


def test_a_file_that_names_itself_among_its_ancestors_ends(chain: Path, run: Run) -> None:
    a, b = chain / "a.safetensors", chain / "b.safetensors"
    write(a, b, value=2.0)
    assert states(run)["a.safetensors"]


def test_golden_files_without_torch(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "golden")
    (left,) = left_by(f"status {tmp_path / 'golden'}")
    assert left.said == "" and not left.loaded & {"torch", "matplotlib"}


def test_an_empty_folder(run: Run) -> None:
    done = run("status")
    assert (done.returncode, done.stdout) == (0, "")
    assert "there are no files of mmgen in" in done.stderr


def test_a_file_that_cannot_be_looked_at_hides_no_other(chain: Path, run: Run) -> None:
    (chain / "loop.h5").symlink_to("loop.h5")
    (chain / "far.h5").symlink_to("x" * 300)
    for number, name in enumerate(("a/b", "../x", "x" * 300, "", "..")):
        score = json.loads((chain / "a.jsonl").read_text())
        score["run"]["name"] = name
        (chain / f"s{number}.jsonl").write_text(json.dumps(score) + "\n")
    record = replace(parent_record(chain / "m.safetensors", "model", chain / "c"), path="y" * 300, content_id="0" * 64)
    write_checkpoint(chain / "c.safetensors", kind="aggregate", tensors={}, settings={}, seed=0, parents=[record])
    found = {name: state for name, (state, *_) in states(run).items()}
    assert {found[name] for name in ("loop.h5", "far.h5")} == {"unreadable"}
    assert {found[f"s{number}.jsonl"] for number in range(5)} == {"up to date"}
    assert (found["c.safetensors"], found["b.safetensors"]) == ("parent missing", "up to date")
    shutil.move(chain / "m.safetensors", chain / "renamed.safetensors")
    assert find_parent(chain / "a.safetensors", "model").name == "renamed.safetensors", "by its content id"


@pytest.mark.parametrize(
    ("command", "advised"),
    [
        ("mmgen train d.h5 --code=payload.py", "mmgen train (its own command runs a file of Python, --code: look at"),
        ("rm -rf /", "mmgen train"),
        ("mmgen train d.h5; rm -rf /", "mmgen train 'd.h5;' rm -rf /"),
    ],
)
def test_advice_is_a_command_of_mmgen_and_runs_no_file_of_a_stranger(
    command: str, advised: str, tmp_path: Path, run: Run
) -> None:
    model = tmp_path / "m.safetensors"
    write_checkpoint(model, kind="model", tensors={}, settings={}, seed=0, facts={"finished": False}, command=command)
    write(tmp_path / "a.safetensors", model)
    assert states(run)["m.safetensors"][1].startswith(f"continue with: {advised}")
    model.unlink()
    assert states(run)["a.safetensors"][1].startswith(f"make the model with: {advised}")
    with pytest.raises(MissingParentError) as missing:
        find_parent(tmp_path / "a.safetensors", "model")
    assert f"make it again with: {advised}" in str(missing.value)

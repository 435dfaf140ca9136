"""Outputs that are no files, finished work, sizes that no memory holds: refused before any work, by every command."""

import os
import shutil
import stat
from pathlib import Path

import pytest

import mmgen as library
from mmgen.cli._main import command_names, load_command
from tests.end_to_end.test_malformed import sentence
from tests.program import TINY, instead, mmgen, within
from tests.worlds import added, added_rows

DIGITS = ["mnist-a", "--source", "digits", "--size", "32", "--number", "40", "--workers", "1"]
WRITE = {
    "make-data": DIGITS,
    "train": ["d.h5", "--objective", "elbo", "--steps", "2", *TINY],
    "train-classifier": ["d.h5", "--network", "small", "--steps", "2"],
    "fill-gaps": ["d.h5"],
    "fit-aggregate": ["small.safetensors", "--steps", "2", "--examples", "100"],
    "eval": ["small.safetensors", "--metric", "active-units"],
    "sample": ["small.safetensors", "-n", "2"],
    "show": ["d.h5"],
    "plot": ["traversal", "small.safetensors"],
    "report": ["small.safetensors"],
    **added_rows("WRITE"),
}
ENDING = {
    "fill-gaps": "h5",
    "eval": "jsonl",
    "sample": "png",
    "show": "png",
    "plot": "png",
    "report": "html",
    **added_rows("ENDING"),
}


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    mmgen(folder, "train", "d.h5", "--objective", "elbo", "--steps", "2", *TINY, "-o", "small.safetensors")
    return folder / "small.safetensors"


def test_every_command_with_an_output_is_tried() -> None:
    able = {name for name in command_names() if any("--output" in p.opts for p in load_command(name).params)}
    assert able - {"quickstart", "reproduce"} == WRITE.keys()  # those two write into folders


@pytest.mark.parametrize("command", WRITE)
def test_a_pipe_is_not_replaced(folder: Path, model: Path, tmp_path: Path, command: str) -> None:
    ending = ENDING.get(command, "safetensors")
    out = tmp_path / f"pipe.{ending}"
    os.mkfifo(out)
    for path, why in ((out, "it is a pipe"), (tmp_path / f"{'n' * 300}.{ending}", "file name too long")):
        done = within(folder, command, *WRITE[command], "-o", path)
        assert (done.returncode, done.stdout) == (1, "")
        assert why in sentence(done.stderr)
    assert stat.S_ISFIFO(out.stat().st_mode) and list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("command", "name"), [("quickstart", "scores-prior.jsonl"), ("quickstart", "same-words.png"),
                          ("reproduce", "cremer-table1-cpu.md"), ("reproduce", "cremer-table1-cpu.html")],
)  # fmt: skip
def test_nor_in_a_folder(tmp_path: Path, command: str, name: str) -> None:
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / name)
    done = within(tmp_path, command, *(["cremer-table1"] if command == "reproduce" else ["--quick"]), "-o", "out")
    assert (done.returncode, done.stdout) == (1, "")
    assert "it is a pipe" in sentence(done.stderr)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [name]


@pytest.mark.parametrize("beside", [".last.safetensors", ".log.jsonl"])
@pytest.mark.parametrize("command", ["train", "train-classifier"])
def test_nor_are_pipes_beside_it(folder: Path, tmp_path: Path, command: str, beside: str) -> None:
    os.mkfifo(tmp_path / f"m{beside}")
    done = within(folder, command, *WRITE[command], "-o", tmp_path / "m.safetensors")
    assert (done.returncode, done.stdout) == (1, "")
    assert "it is a pipe" in done.stderr.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == [f"m{beside}"]


@pytest.mark.parametrize(
    "command", ["make-data", "train", "train-classifier", "fit-aggregate", "eval", *added("KEEPS_FINISHED")]
)
def test_finished_work_is_replaced_only_when_told(folder: Path, model: Path, command: str) -> None:
    out = folder / f"finished-{command}.{ENDING.get(command, 'h5' if command == 'make-data' else 'safetensors')}"
    there = {"make-data": "d.h5", "train": model.name, "train-classifier": "judge.safetensors"}
    try:
        if command in there:  # weights without the state of their run, as somebody hands them on
            shutil.copy(folder / there[command], out)
        elif command == "fit-aggregate":
            mmgen(folder, command, *WRITE[command], "-o", out)
            out.with_suffix(".last.safetensors").unlink()
        else:
            out.write_text('{"metric": "an hour of work"}\n')
        before = out.read_bytes()
        done = within(folder, command, *WRITE[command], "-o", out)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--overwrite" in done.stderr.splitlines()[-1] and "another --output" in done.stderr.splitlines()[-1]
        assert out.read_bytes() == before
        assert any("--overwrite" in parameter.opts for parameter in load_command(command).params)
    finally:
        for path in folder.glob(f"finished-{command}*"):
            path.unlink()


def test_the_same_dataset_again_is_kept(tmp_path: Path) -> None:
    assert mmgen(tmp_path, "make-data", *DIGITS, "-o", "d.h5") == "d.h5\n"
    made = os.stat(tmp_path / "d.h5").st_ino
    again = within(tmp_path, "make-data", *DIGITS, "-o", "d.h5")
    assert (again.returncode, again.stdout) == (0, "d.h5\n")
    assert "made by the same command" in sentence("mmgen: " + again.stderr)
    assert os.stat(tmp_path / "d.h5").st_ino == made
    assert within(tmp_path, "make-data", *DIGITS, "--seed", 1, "-o", "d.h5").returncode == 2
    assert mmgen(tmp_path, "make-data", *DIGITS, "--seed", 1, "-o", "d.h5", "--overwrite") == "d.h5\n"
    assert os.stat(tmp_path / "d.h5").st_ino != made


LARGE = [
    ["make-data", *instead(DIGITS, "--number", str(10**13)), "-o", "x.h5"],
    ["make-data", "two-objects", "--number", 10**13, "-o", "x.h5"],
    ["make-data", "multimnist", "--source", "digits", "--number", 10**13, "-o", "x.h5"],
    ["train", "d.h5", "--objective", "elbo", *instead(TINY, "--batch", str(10**10)), "-o", "x.safetensors"],
    ["train", "d.h5", "--objective", "mmvae", "--set", f"objective.draws={10**9}", *TINY, "-o", "x.safetensors"],
    ["train-classifier", "d.h5", "--network", "small", "--batch", 10**10, "-o", "x.safetensors"],
    ["sample", "small.safetensors", "-n", 10**9, "-o", "x.h5"],
    ["eval", "small.safetensors", "--metric", "log-likelihood", "--samples", 2 * 10**9],
    ["eval", "small.safetensors", "--metric", "log-likelihood", "--text-samples", 10**12],
    ["eval", "small.safetensors", "--metric", "correctness", "--draws", 10**12],
]


@pytest.mark.parametrize("arguments", LARGE, ids=[f"{words[0]}-{number}" for number, words in enumerate(LARGE)])
def test_what_no_memory_holds_is_refused_before_work(folder: Path, model: Path, arguments: list[object]) -> None:
    before = set(folder.iterdir())
    done = within(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("mmgen: ") and "of memory, but " in said and "are free; use " in said
    assert set(folder.iterdir()) == before


def test_scores_are_the_result(folder: Path, model: Path) -> None:
    """Lines on stdout in a pipe; with --json or -o the table is talk."""
    measure = ["eval", model, "--metric", "active-units", "--number", "50"]
    done = within(folder, *measure)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert rows and all(len(row) == 10 and row[0] == "active-units" and float(row[5]) >= 0 for row in rows)
    assert "± standard error" not in done.stderr
    for options in (["--json"], ["-o", "lines.jsonl", "--overwrite"]):
        done = within(folder, *measure, *options)
        assert "± standard error" in done.stderr and "\t" not in done.stdout
    shown = dict(line.split("\t") for line in mmgen(folder, "show", model).splitlines())
    assert (
        shown["kind"] == "model" and shown["parents.dataset.path"].endswith("d.h5") and "settings.data.split" in shown
    )


def test_what_load_returns_says_what_it_is(model: Path) -> None:
    assert "load" in dir(library)
    text = repr(library.load(model))
    assert text.startswith(f"<model {model}: elbo, z 4; image 1x32x32; attributes digit, ") and "on cpu>" in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--text-weight", "2"], "--text-weight got 2, expected nothing with target aggregate"),
        *(row for rows in added("REFUSED_FITS") for row in rows),
        (["--target", "true", "--guidance", "2"], "--guidance got 2, expected nothing with target true"),
        (["--guidance", "2", "--set", "aggregate.target.name=true"], "it is a setting of target guided"),
        (["--guidance", "2", "--set", "aggregate.target.name=3"], "'aggregate.target.name' got 3, expected a name"),
        (["--guidance", "2", "--set", "aggregate=3"], "setting 'aggregate' got 3"),
        (["--guidance", "2", "--set", "aggregate.target=3"], "'aggregate.target' got 3, expected a table"),
    ],
)
def test_a_fit_refuses_settings_that_it_cannot_use(model: Path, options: list[str], said: str) -> None:
    done = within(model.parent, "fit-aggregate", model.name, "--steps", "2", *options, "-o", "refused.safetensors")
    assert done.returncode and said in sentence(done.stderr)
    assert not model.with_name("refused.safetensors").exists()


def test_an_empty_condition_of_a_fit_is_refused(model: Path) -> None:
    with pytest.raises(library.core.errors.UsageError, match="given got ''"):
        library.fit_aggregate(model, given="")


def test_a_fit_to_one_encoding_is_refused(model: Path) -> None:
    done = within(model.parent, "fit-aggregate", model.name, "--examples", "1", "-o", "refused.safetensors")
    assert done.returncode == 1 and "expected at least 2" in done.stderr and "note:" not in done.stderr
    assert not model.with_name("refused.safetensors").exists()


@pytest.mark.parametrize("option", [["--steps", "0"], ["--set", "training.steps=0"]])
def test_a_judge_of_no_steps_is_refused(folder: Path, option: list[str]) -> None:
    done = within(folder, "train-classifier", "d.h5", *option, "-o", "untrained.safetensors")
    assert done.returncode == 2 and "steps got" in done.stderr


@pytest.mark.parametrize("room", ["objective", "model", "model.image_network", "aggregate.family", "aggregate.target"])
def test_a_name_in_settings_that_is_no_text_is_refused(model: Path, room: str) -> None:
    first = ["fit-aggregate", model.name] if room.startswith("aggregate") else ["train", "d.h5", "--objective", "elbo"]
    for value in ("3", "[1]", "{a = 1}"):
        done = within(model.parent, *first, "--set", f"{room}.name={value}", "-o", "refused.safetensors")
        assert done.returncode == 2 and sentence(done.stderr)

"""What a command is given, and where it shall write: anything wrong is one sentence, a failure, and no half a file."""

import json
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import safetensors.torch
import torch

from mmgen.artifacts import FORMAT_VERSION, containers, read_checkpoint, write_checkpoint
from tests.program import TINY, mmgen, within

# What unpickling would run: never to be read, whatever the file around it is called, in its tensors or in its header.
PICKLE = b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x08builtins\x94."


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    mmgen(folder, "train", "d.h5", "--objective", "elbo", "--steps", "2", *TINY, "-o", "small.safetensors")
    return folder / "small.safetensors"


def newer(folder: Path) -> dict[str, Path]:
    """A dataset and a model of the next format."""
    dataset, checkpoint = folder / "bad-newer.h5", folder / "bad-newer.safetensors"
    shutil.copy(folder / "d.h5", dataset)
    with h5py.File(dataset, "r+") as file:
        header = json.loads(file.attrs["mmgen"])
        file.attrs["mmgen"] = np.bytes_(json.dumps(header | {"format_version": FORMAT_VERSION + 1}).encode())
    with safetensors.safe_open(folder / "small.safetensors", "pt") as file:
        header = json.loads(file.metadata()["mmgen"]) | {"format_version": FORMAT_VERSION + 1}
    safetensors.torch.save_file({"w": torch.zeros(1)}, checkpoint, {"mmgen": json.dumps(header)})
    return {"newer dataset": dataset, "newer model": checkpoint}


def malformed(folder: Path) -> dict[str, Path]:
    """Files that are not what a command expects."""
    data = (folder / "d.h5").read_bytes()
    files = {
        "truncated": data[: len(data) // 2],
        "empty": b"",
        "text": b"not an artifact at all, just words\n",
        "pickle": PICKLE,
        "pickle.safetensors": PICKLE,
        "tensors.safetensors": safetensors.torch.save({"w": torch.tensor(list(PICKLE), dtype=torch.uint8)}),
        "pickled-header.safetensors": safetensors.torch.save({"w": torch.zeros(1)}, {"mmgen": repr(PICKLE)}),
    }
    paths = {}
    for name, content in files.items():
        paths[name] = folder / f"bad-{name}"
        paths[name].write_bytes(content)
    paths["foreign HDF5"] = folder / "bad-foreign.h5"
    with h5py.File(paths["foreign HDF5"], "w") as file:
        file["images"] = np.zeros((3, 28, 28))
    paths["wrong kind"] = folder / "judge.safetensors"
    paths["missing"] = folder / "is-not-there.h5"
    paths["folder"] = folder
    return paths | newer(folder)


def sentence(said: str) -> str:
    """The only line of a failed command's stderr."""
    lines = [line for line in said.splitlines() if line.strip()]
    assert len(lines) == 1, said
    assert lines[0].startswith("mmgen: ")
    return lines[0]


@pytest.mark.parametrize("command", ["train", "train-classifier", "fit-aggregate", "eval", "sample", "show"])
def test_malformed_inputs_get_one_sentence(folder: Path, model: Path, command: str) -> None:
    options = {"eval": ["--metric", "correctness"]}.get(command, [])
    paths = malformed(folder)
    if command == "show":  # it takes any kind
        del paths["wrong kind"]
    for name, path in paths.items():
        done = within(folder, command, path, *options)
        assert done.stdout == ""
        assert done.returncode in (1, 2), name
        said = sentence(done.stderr)
        if name.startswith("newer") and command == "show":
            assert "or later" in said


@pytest.mark.parametrize("command", ["fit-aggregate", "eval", "sample"])
def test_a_model_whose_weights_are_not_finite_is_refused(
    folder: Path, model: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    header, tensors = read_checkpoint(model)
    for tensor in tensors.values():
        if tensor.is_floating_point():
            tensor.fill_(torch.nan)
    bad = folder / "bad-nan.safetensors"
    about = {"settings": header.settings, "seed": header.seed, "parents": header.parents}
    with monkeypatch.context() as patched:  # a file of an earlier version
        patched.setattr(containers, "_check_finite", lambda *_: None)
        write_checkpoint(bad, kind="model", tensors=tensors, **about)
    options = {"eval": ["--metric", "coverage"], "sample": ["-n", 1, "-o", "nan.png"]}.get(command, [])
    done = within(folder, command, bad, *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert "finite" in sentence(done.stderr)


@contextmanager
def little_room(folder: Path, size: int = 200) -> Iterator[Path]:
    """A disk that takes no file of more than some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield folder
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def missing(folder: Path) -> Iterator[Path]:
    yield folder / "is-not-there"


@contextmanager
def a_file(folder: Path) -> Iterator[Path]:
    (folder / "file").write_bytes(b"")
    yield folder / "file"
    (folder / "file").unlink()


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """/sys takes no file from anybody, the superuser included."""
    yield Path("/sys")


PLACES = [little_room, missing, a_file, read_only]
COMMANDS = {
    "train": ["d.h5", "--objective", "elbo", "--steps", "20", *TINY, "-o", "{}/x.safetensors"],
    "train-classifier": ["d.h5", "--network", "small", "--steps", "5", "-o", "{}/x.safetensors"],
    "fit-aggregate": ["small.safetensors", "--steps", "5", "--examples", "100", "-o", "{}/x.safetensors"],
    "eval": ["small.safetensors", "--metric", "active-units", "-o", "{}/x.jsonl"],
    "sample": ["small.safetensors", "-n", "4", "-o", "{}/x.png"],
    "report": ["small.safetensors", "-o", "{}/x.html"],
}


@pytest.mark.slow_cases("report-little_room")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("command", COMMANDS)
def test_where_nothing_can_be_written(folder: Path, model: Path, tmp_path: Path, command: str, place: Callable) -> None:
    before = {path for path in folder.iterdir() if "-latents-" not in path.name}
    with place(tmp_path) as out:
        done = within(folder, command, *(argument.format(out) for argument in COMMANDS[command]))
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    last = done.stderr.splitlines()[-1]
    if command in ("eval", "sample", "report") and place is not little_room:
        assert "ing ..." not in done.stderr, "no work was begun"
    # Encodings are cached beside the model, so that there may be no room for those either.
    assert last.startswith((f"mmgen: cannot write {out}", "mmgen: cannot write small-latents-"))
    assert "; " in last
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"x.log.jsonl"}, "no half a file"
    assert {path for path in folder.iterdir() if "-latents-" not in path.name} == before
    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("command", ["train", "train-classifier"])
def test_a_disk_with_room_for_the_log_alone(folder: Path, tmp_path: Path, command: str) -> None:
    """The training fails when it saves; with room again the same command makes the file."""
    arguments = [argument.format(tmp_path) for argument in COMMANDS[command]]
    with little_room(tmp_path, 10_000):
        done = within(folder, command, *arguments)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"mmgen: cannot write {tmp_path}/x")
    assert {path.name for path in tmp_path.iterdir()} == {"x.log.jsonl"}
    assert mmgen(folder, command, *arguments) == f"{tmp_path}/x.safetensors\n"

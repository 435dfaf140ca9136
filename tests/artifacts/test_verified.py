"""A dataset that was changed in place is used by nobody; one that was not is read through once."""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from mmgen.artifacts import Dataset, content_id as remembered
from mmgen.cli._main import command_names, main
from mmgen.core.errors import ArtifactError
from tests.worlds import added_rows


@pytest.fixture
def settled(tmp_path, dataset_at, monkeypatch) -> Path:
    """A dataset that is old enough to be remembered, and a cache of its own."""
    monkeypatch.setenv("MMGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remembered, "_known", set())
    path = tmp_path / "data.h5"
    dataset_at(path)
    time.sleep(0.15)
    return path


def rotate(path: Path, name: str = "modalities/attributes") -> None:
    """Move all labels on by one example, through h5py, the header as it was."""
    with h5py.File(path, "r+") as file:
        file[name][:] = np.roll(file[name][:], 1, axis=0)


@pytest.fixture
def reads(monkeypatch) -> list[Path]:
    """The files that were read through."""
    found: list[Path] = []
    verify = Dataset.verify
    monkeypatch.setattr(Dataset, "verify", lambda data: (found.append(data.path), verify(data))[1])
    return found


def change_pixels(path: Path) -> None:
    rotate(path, "modalities/image")


def change_factor(path: Path) -> None:
    rotate(path, "factors/angle")


def change_split(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["splits/iid/test"][0] = 24


def change_vocabulary(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        item = file["modalities/attributes"]
        values = json.loads(item.attrs["values"])
        item.attrs["values"] = np.bytes_(json.dumps([row[::-1] for row in values]).encode())


CHANGES = [rotate, change_pixels, change_factor, change_split, change_vocabulary]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_in_place_is_found_where_the_data_are_used(settled: Path, change: Callable[[Path], None]) -> None:
    Dataset.open(settled).close()
    times = settled.stat()
    change(settled)
    os.utime(settled, ns=(times.st_atime_ns, times.st_mtime_ns))  # a time of modification can be set back
    with pytest.raises(ArtifactError, match="do not match its content id"):
        Dataset.open(settled)
    Dataset.open(settled, verify=False).close()


def test_a_file_is_read_through_once(settled: Path, reads: list[Path], monkeypatch) -> None:
    for _ in range(3):
        Dataset.open(settled).close()
    monkeypatch.setattr(remembered, "_known", set())  # as in another process
    Dataset.open(settled).close()
    assert reads == [settled]
    os.utime(settled)
    time.sleep(0.15)
    Dataset.open(settled).close()
    assert reads == [settled] * 2
    settled.rename(settled.with_name("other.h5"))
    Dataset.open(settled.with_name("other.h5")).close()
    assert len(reads) == 3


def test_a_file_that_was_just_written_is_not_remembered_yet(settled: Path, reads: list[Path]) -> None:
    """A change in the same tick of the clock would not be seen."""
    os.utime(settled)
    Dataset.open(settled).close()
    Dataset.open(settled).close()
    assert len(reads) == 2


def test_a_file_that_changes_while_it_is_read_is_not_remembered(settled: Path, monkeypatch) -> None:
    verify = Dataset.verify
    monkeypatch.setattr(Dataset, "verify", lambda data: (verify(data), os.utime(data.path))[0])
    Dataset.open(settled).close()
    assert not remembered._known


@pytest.mark.parametrize("place", ["a file", "read-only", "nowhere"])
def test_a_cache_that_cannot_be_written_costs_time_only(settled: Path, tmp_path: Path, monkeypatch, place: str) -> None:
    (tmp_path / "file").write_text("")
    where = {"a file": tmp_path / "file", "read-only": Path("/proc/self"), "nowhere": Path("/dev/null/x")}[place]
    monkeypatch.setenv("MMGEN_CACHE", str(where))
    Dataset.open(settled).close()
    rotate(settled)
    with pytest.raises(ArtifactError, match="do not match its content id"):
        Dataset.open(settled)


def test_the_cache_stays_small(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("MMGEN_CACHE", str(tmp_path))
    monkeypatch.setattr(remembered, "_MOST", 10)
    for number in range(25):
        remembered.record_verified(f"{number:064d}")
    assert len(list((tmp_path / "verified").iterdir())) <= 10
    assert remembered.was_verified(f"{24:064d}")


def test_nothing_but_show_opens_a_dataset_unverified() -> None:
    root = Path(__file__).parents[2]
    sources = {
        p: p.read_text(encoding="utf-8") for f in ("mmgen", "cli", "data_recipes") for p in (root / f).rglob("*.py")
    }
    assert any("Dataset.open(" in text for text in sources.values())
    unverified = {path.name for path, text in sources.items() if "verify=False" in text}
    direct = {path.name for path, text in sources.items() if re.search(r"(?<![\w.])Dataset\(\w*path", text)}
    assert (unverified, direct) == ({"contents.py", "verified.py"}, set())


COMMANDS = {
    "train": ["train", "DATA", "--objective", "elbo", "--steps", "1", "-o", "OUT"],
    "train-classifier": ["train-classifier", "DATA", "--network", "small", "--steps", "1", "-o", "OUT"],
    **added_rows("STARTS_FROM_A_DATASET"),
    "show": ["show", "DATA", "-o", "OUT"],
}


def test_commands_that_start_from_a_dataset_are_known() -> None:
    assert COMMANDS.keys() <= set(command_names())


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_uses_a_changed_dataset(
    settled: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rotate(settled)
    out = tmp_path / ("out.png" if command == "show" else "out.safetensors")
    words = [{"DATA": str(settled), "OUT": str(out)}.get(word, word) for word in COMMANDS[command]]
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 1
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith(f"mmgen: {settled} is damaged: its data or facts do not match its content id")
    assert not out.exists()

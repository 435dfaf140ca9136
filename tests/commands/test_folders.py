"""Folders in place of files: a report, a page to explore and a comparison of all that belongs together in one."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mmgen.artifacts import parent_record, write_checkpoint
from mmgen.commands._folders import expand_folders, find_explored_files, find_reported_files, find_score_files
from mmgen.core.errors import UsageError
from mmgen.core.progress import Watch


def write(folder: Path, name: str, kind: str, model: str = "") -> None:
    path = folder / f"{name}.safetensors"
    parents = [parent_record(folder / f"{model}.safetensors", "model", path)] if model else []
    tensors = {"w": torch.full((1,), float(len(name)))}
    write_checkpoint(path, kind=kind, tensors=tensors, settings={"name": name}, seed=0, parents=parents)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model with an aggregate and its sharpener, a judge, states, logs, scores and weights of another program."""
    write(tmp_path, "model", "model")
    write(tmp_path, "aggregate", "aggregate", "model")
    write(tmp_path, "sharp", "sharpener", "model")
    write(tmp_path, "judge", "classifier")
    for name in ("model.log.jsonl", "model.last.safetensors", "scores.jsonl", "notes.txt", ".hidden.safetensors"):
        (tmp_path / name).touch()
    (tmp_path / "foreign.safetensors").write_bytes(b"no artifact")
    return tmp_path


def names(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


def test_files_of_a_folder(folder: Path) -> None:
    assert names(find_score_files(folder)) == ["scores.jsonl"]
    assert names(find_explored_files(folder)) == [
        "model.safetensors", "aggregate.safetensors", "sharp.safetensors", "scores.jsonl",
    ]  # fmt: skip
    assert {"judge.safetensors", "model.safetensors", "scores.jsonl"} < {*names(find_reported_files(folder))}
    assert not {"model.log.jsonl", "model.last.safetensors"} & {*names(find_reported_files(folder))}
    single = folder / "model.safetensors"
    (folder / "scores.jsonl").write_text("{}")
    assert expand_folders([single, folder], find_score_files, Watch()) == [single, folder / "scores.jsonl"]


def test_an_empty_file_of_a_folder_hides_no_other(folder: Path) -> None:
    said: list[str] = []
    watch = SimpleNamespace(say=said.append)
    (folder / "scores.jsonl").write_text("{}")
    for name in ("e.jsonl", "e.safetensors"):
        (folder / name).touch()
    for find in (find_explored_files, find_reported_files, find_score_files):
        found = names(expand_folders([folder], find, watch))  # type: ignore[arg-type]  # all that is used of it
        assert "scores.jsonl" in found and not {"e.jsonl", "e.safetensors"} & {*found}
        assert said.pop().startswith("empty files are left out: ") and not said
    empty = folder / "e.jsonl"
    assert empty in expand_folders([folder, empty], find_score_files, watch)  # type: ignore[arg-type]


def test_the_model_with_fitted_posteriors_is_explored(folder: Path) -> None:
    write(folder, "another", "model")
    assert "another.safetensors" not in names(find_explored_files(folder))
    write(folder, "further", "aggregate", "another")
    with pytest.raises(UsageError, match=r"holds 2 models, expected one: .*; or mmgen explore \S+another.safetensors "):
        find_explored_files(folder)


def test_every_file_of_a_large_folder_is_found(folder: Path) -> None:
    for number in range(1_200):
        (folder / f"a{number}.txt").touch()
    (folder / "z.jsonl").touch()
    assert names(find_score_files(folder)) == ["scores.jsonl", "z.jsonl"]
    assert "sharp.safetensors" in names(find_explored_files(folder))


def test_other_folders_stand_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "picture.png").touch()
    for find in (find_explored_files, find_reported_files, find_score_files):
        assert find(tmp_path) == find(tmp_path / "nowhere") == []

"""Copies of datasets that name what they should not, or would never be read to their end."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmgen.contrib.hub.data_recipes.hub import Hub
from mmgen.core.errors import DataError
from mmgen.settings.config import validate

pytest.importorskip("datasets")

import datasets

from tests.contrib.hub.test_hub import table
from tests.own_data._pictures import picture


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved dataset ``one``, and one of two splits ``two``."""
    folder = tmp_path_factory.mktemp("saved")
    table().save_to_disk(str(folder / "one"))
    datasets.DatasetDict(train=table(), test=table()).save_to_disk(str(folder / "two"))
    return folder


def refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Why a copy is refused, which takes no time."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", path.parent / "cache")
    monkeypatch.setattr(datasets.config, "HF_CACHE_HOME", path.parent / "cache")
    start = time.monotonic()
    with pytest.raises(DataError) as error:
        validate(Hub, {"dataset": str(path), "size": 8}).survey(0, 1).run()
    assert time.monotonic() - start < 10 and "\n" not in str(error.value)
    return str(error.value)


def names(value: Any) -> Callable[[Path], None]:
    """Lets the saved dataset name this as its file."""

    def change(folder: Path) -> None:
        state = json.loads((folder / "state.json").read_text())
        state["_data_files"] = [{"filename": value}] if isinstance(value, str) else value
        (folder / "state.json").write_text(json.dumps(state))

    return change


def pipe(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def link(name: str, target: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def writes(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


def link_to_a_table(folder: Path) -> None:
    shutil.copytree(folder, folder.parent / "other")
    name = next(folder.glob("*.arrow")).name
    link(name, f"../other/{name}")(folder)


SAVED = {
    "a pipe above": (names("../pipe"), "names '../pipe', expected only files of its own"),
    "a device": (names("/dev/zero"), "names '/dev/zero', expected only files of its own"),
    "an absolute name": (names("/etc/passwd"), "names '/etc/passwd', expected only files of its own"),
    "a name through a folder": (names("x/../../pipe"), "expected only files of its own"),
    "a file that is not there": (names("x.arrow"), "names 'x.arrow', which is no file in"),
    "a folder": (names("."), "expected only files of its own"),
    "no name": (names([{"filename": 3}]), "names '3', expected only files of its own"),
    "no list": (names({}), "has no list '_data_files'"),
    "names instead of files": (names(["x.arrow"]), "names 'None'"),
    "a pipe in it": (pipe("more.arrow"), "more.arrow is a device or a pipe, expected files and folders; remove it"),
    "a pipe as its state": (pipe("state.json"), "state.json is a device or a pipe"),
    "a pipe as its description": (pipe("dataset_info.json"), "dataset_info.json is a device or a pipe"),
    "a pipe as README": (pipe("README.md"), "README.md is a device or a pipe"),
    "a pipe as YAML": (pipe(".huggingface.yaml"), ".huggingface.yaml is a device or a pipe"),
    "a link to a device": (link("x.arrow", "/dev/zero"), "x.arrow is a device or a pipe"),
    "a link to another table": (link_to_a_table, "expected only files of its own"),
    "a state elsewhere": (link("state.json", "../two/train/state.json"), "expected only files of its own"),
    "a description elsewhere": (link("dataset_info.json", "/etc/passwd"), "dataset_info.json', expected only files"),
    "a state that is no JSON": (writes("state.json", "{"), "cannot read"),
    "a deep state": (writes("state.json", "[" * 100_000), "cannot read"),
}


@pytest.mark.parametrize("case", SAVED)
def test_a_saved_dataset_names_plain_files_of_its_own(
    case: str, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, says = SAVED[case]
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    os.mkfifo(tmp_path / "pipe")
    change(tmp_path / "one")
    assert says in refused(tmp_path / "one", monkeypatch)


@pytest.mark.parametrize("split", ["../one", "/etc", "train/../../one", 3])
def test_splits_of_a_saved_dataset_are_its_own(
    split: Any, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    (tmp_path / "two" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", split]}))
    assert f"names '{split}', expected only files of its own" in refused(tmp_path / "two", monkeypatch)


def bomb(levels: int) -> str:
    """YAML of few lines that would be 9 ** levels values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


YAML = {
    "aliases": (bomb(11), "begins with YAML that refers to itself (*a0); write it plainly, or remove it"),
    "a merge": ("a: &a {x: 1}\nb:\n  <<: *a\n", "refers to itself (*a)"),
    "itself": ("a: &a [*a]\n", "refers to itself (*a)"),
    "depth": ("a: " + "[" * 60 + "]" * 60 + "\n", "or is more than 50 deep"),
    "more depth": ("a: " + "[" * 5_000 + "\n", "or is more than 50 deep"),
}


@pytest.mark.parametrize("readme", ["README.md", ".huggingface.yaml"])
@pytest.mark.parametrize("case", YAML)
def test_yaml_is_no_more_than_it_says(case: str, readme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, says = YAML[case]
    (tmp_path / "p").mkdir()
    table().to_parquet(tmp_path / "p" / "train.parquet")
    (tmp_path / "p" / readme).write_text(f"---\n{text}---\n" if readme == "README.md" else text)
    assert says in refused(tmp_path / "p", monkeypatch)


def test_long_descriptions_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p").mkdir()
    table().to_parquet(tmp_path / "p" / "train.parquet")
    (tmp_path / "p" / "README.md").touch()
    os.truncate(tmp_path / "p" / "README.md", 2**24 + 1)
    assert "README.md has 16,777,217 bytes, expected at most 16,777,216" in refused(tmp_path / "p", monkeypatch)


FOLDERS = {
    "a class called train": (("bus", "car", "train"), "takes 10 pictures of .* and passes over 20, such as 'bus/"),
    "a word that it does not know": (("train/a", "holdout/a"), "and passes over 15, such as 'holdout/a/"),
    "thumbnails": (("cat", "cat/@eaDir", "dog"), "takes 10 files of .* that are hidden or a system's, such as"),
    "parts as classes": (
        ("trainset", "testset"),
        "the column 'label' holds testset and trainset, which may be parts of a split",
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_of_pictures_that_the_library_takes_otherwise(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, says = FOLDERS[case]
    for n in range(30):
        place = tmp_path / "p" / names[n % len(names)]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{n:03d}.png").write_bytes(picture(n))
    assert re.search(says, refused(tmp_path / "p", monkeypatch))


def test_a_pipe_in_place_of_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "x.parquet")
    assert "is a device or a pipe, expected" in refused(tmp_path / "x.parquet", monkeypatch)


def test_splits_without_train_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the test pictures alone would be trained on."""
    datasets.DatasetDict(trainval=table(), test=table()).save_to_disk(str(tmp_path / "p"))
    assert "'trainval', 'test', none of which is called train" in refused(tmp_path / "p", monkeypatch)

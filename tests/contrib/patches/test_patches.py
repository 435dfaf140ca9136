"""Patches: cut from where they say, parts that share no picture, and sources that are refused in a sentence."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmgen.artifacts import Dataset
from mmgen.contrib.patches.data_recipes.patches import NaturalPatches
from mmgen.core.errors import DataError, SettingsError
from mmgen.settings.config import validate


def grey(number: int, size: tuple[int, int] = (20, 14)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(number).integers(0, 256, size[::-1], np.uint8))


def berkeley(folder: Path, counts: dict[str, int]) -> Path:
    """images/train/000.png and so on."""
    number = 0
    for part, count in counts.items():
        (folder / "images" / part).mkdir(parents=True)
        for _ in range(count):
            grey(number).save(folder / "images" / part / f"{number:03d}.png")
            number += 1
    (folder / "iids_train.txt").write_text("0\n")
    return folder


def archive(path: Path, **changes: np.ndarray) -> Path:
    generator = np.random.default_rng(0)
    arrays = {
        "train": generator.integers(0, 256, (60, 4, 4), np.uint8),
        "train_image": np.repeat(np.arange(20), 3),
        "test": generator.integers(0, 256, (20, 4, 4), np.uint8),
        "test_image": np.repeat(np.arange(30, 40), 2),
    }
    np.savez(path, **{**arrays, **changes})
    return path


def make(path: Path, **settings: object) -> Dataset:
    validate(NaturalPatches, settings).make(path).run()
    return Dataset.open(path)


def test_patches_are_what_stands_at_their_place(tmp_path: Path) -> None:
    folder = berkeley(tmp_path / "set", {"train": 20, "test": 6})
    (folder / "images" / "notes.png").write_bytes(b"passed over: not in a part")
    with make(tmp_path / "x.h5", pictures=folder, side=5, per_picture=4) as dataset:
        assert dataset.size == 104 and dataset.default_scheme == "official"
        picture, row, column = (dataset.read_factor(name) for name in ("picture", "row", "column"))
        for number in (0, 50, 103):
            whole = np.asarray(grey(int(picture[number])))  # pictures are numbered by name: test before train
            order = sorted(path.name for path in folder.rglob("images/test/*")) + sorted(
                path.name for path in folder.rglob("images/train/*")
            )
            whole = np.asarray(grey(int(order[picture[number]][:3])))
            expected = whole[row[number] : row[number] + 5, column[number] : column[number] + 5]
            np.testing.assert_array_equal(dataset.read("patch")[number], expected)
        parts = {part: set(picture[dataset.split("official", part)].tolist()) for part in ("train", "val", "test")}
        assert [len(parts[part]) for part in ("train", "val", "test")] == [18, 2, 6]
        assert not (parts["train"] & parts["val"] or parts["train"] & parts["test"] or parts["val"] & parts["test"])
        assert parts["test"] == set(range(6))


def test_bsds500_also_has_the_split_of_bsds300(tmp_path: Path) -> None:
    folder = berkeley(tmp_path / "set", {"train": 200, "val": 100, "test": 5})
    with make(tmp_path / "x.h5", pictures=folder, per_picture=1) as dataset:
        assert list(dataset.schemes) == ["bsds300", "official"] or set(dataset.schemes) == {"bsds300", "official"}
        assert dataset.default_scheme == "bsds300"
        sizes = [
            [len(dataset.split(name, part)) for part in ("train", "val", "test")] for name in ("bsds300", "official")
        ]
        assert sizes == [[180, 20, 100], [200, 100, 5]]
        assert set(dataset.split("bsds300", "test")) == set(dataset.split("official", "val"))


def test_an_archive_is_taken_as_it_is(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz")
    with make(tmp_path / "x.h5", patches=path) as dataset, np.load(path) as arrays:
        np.testing.assert_array_equal(dataset.read("patch"), np.concatenate([arrays["train"], arrays["test"]]))
        assert len(dataset.split("official", "test")) == 20 and len(dataset.split("official", "val")) == 6
        assert dataset.header.settings["pictures"] == 30
        assert (dataset.read_factor("row") == -1).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"train": np.array([{}] * 3, object)}, "its train is no array of numbers"),
        ({"train": np.zeros((60, 4, 4), np.float32)}, "its patches are float32"),
        ({"test_image": np.zeros(20, np.int64)}, "train_image and test_image share 1 numbers of pictures, such as 0"),
        ({"test": np.zeros((20, 3, 3), np.uint8)}, "its train patches are 4 x 4 and its test patches 3 x 3 pixels"),
        ({"train_image": np.zeros(3, np.int64)}, r"numbers of pictures int64 \[3\]"),
    ],
)
def test_archives_of_something_else_are_refused(changes: dict[str, np.ndarray], said: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", **changes)
    with pytest.raises(DataError, match=said):
        make(tmp_path / "x.h5", patches=path)
    assert not (tmp_path / "x.h5").exists()


def test_broken_sources_are_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path / "a.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="it is no zip, or a truncated one"):
        make(tmp_path / "x.h5", patches=tmp_path / "half.npz")
    with zipfile.ZipFile(tmp_path / "less.npz", "w") as file:
        file.writestr("train.npy", b"")
    with pytest.raises(DataError, match=r"it has no array train_image|its train is no array"):
        make(tmp_path / "x.h5", patches=tmp_path / "less.npz")
    folder = berkeley(tmp_path / "set", {"train": 20, "test": 5})
    some = folder / "images" / "train" / "003.png"
    buffer = io.BytesIO()
    grey(3, (6, 30)).save(buffer, "PNG")
    for data, said in ((buffer.getvalue(), "6 x 30 pixels, expected 8 x 8"), (some.read_bytes()[:60], r"003\.png in")):
        some.write_bytes(data)
        with pytest.raises(DataError, match=said):
            make(tmp_path / "x.h5", pictures=folder)
    assert not (tmp_path / "x.h5").exists()
    (tmp_path / "few").mkdir()
    grey(0).save(tmp_path / "few" / "a.png")
    with pytest.raises(DataError, match=r"holds 1 picture \(.* expected at least 20"):
        make(tmp_path / "x.h5", pictures=tmp_path / "few")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "got neither of --pictures"),
        ({"pictures": "a", "patches": "b"}, "got both of --pictures"),
        ({"patches": "b", "side": 8}, "an archive's patches were cut before"),
        ({"pictures": "a", "number": 40, "per_picture": 3}, "both set the number of patches"),
    ],
)
def test_settings_that_contradict_one_another(settings: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        validate(NaturalPatches, settings)

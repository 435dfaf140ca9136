"""The three CelebA recipes from source to file: what it holds, what is left out, and what a kill leaves."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import ArtifactError, DataError, Interrupted, SettingsError, UsageError
from mmgen.data_recipes._celeba._landmarks import Face, FaceFinder, add_watermark, blacken_right_half
from mmgen.data_recipes._celeba._source import ALL_ATTRIBUTES, ATTRIBUTES
from mmgen.settings.config import validate
from tests.data_recipes._faces import build_celeba

NUMBER = 40
RECIPES = ["celeba-18", "celeba-words", "celeba-transforms"]

needs_faces = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("cv2", "dlib", "skimage", "face_recognition_models")),
    reason="needs the extra faces",
)
every_recipe = pytest.mark.parametrize("name", [*RECIPES[:2], pytest.param(RECIPES[2], marks=needs_faces)])


@pytest.fixture(scope="module")
def celeba(tmp_path_factory) -> Path:
    return build_celeba(tmp_path_factory.mktemp("celeba"), NUMBER)


def make(name: str, path: Path, *, seed: int = 0, workers: int = 1, chunk: int = 16, **settings) -> Dataset:
    if name == "celeba-transforms":
        settings = {"detector": "aligned", **settings}
    recipe = validate(data_recipes.get(name), settings)
    assert recipe.setup_work() is None
    assert recipe.make(path, seed=seed, workers=workers, chunk=chunk, command="mmgen make-data x").run() == path
    return Dataset.open(path)


def content(*arguments, **settings) -> str:
    with make(*arguments, **settings) as dataset:
        return dataset.header.content_id


@every_recipe
def test_the_file_holds_what_the_recipe_says(name, celeba, tmp_path):
    with make(name, tmp_path / "d.h5", celeba=celeba) as dataset:
        assert dataset.size == NUMBER
        assert str(celeba) not in str(dataset.header.settings)
        assert dataset.header.facts["unreadable"] == 0
        image = dataset.read_image("image", slice(None))
        assert image.shape == (NUMBER, 3, 64, 64)
        assert (image.std(axis=(1, 2, 3)) > 10).all()
        info = dataset.attributes["attributes"]
        assert info.names == ATTRIBUTES
        assert set(info.values) == {("no", "yes")}
        every = dataset.read_factor("celeba_attributes")
        codes = dataset.read_attributes("attributes", slice(None))
        assert np.array_equal(codes, every[:, [ALL_ATTRIBUTES.index(one) for one in ATTRIBUTES]])
        assert np.array_equal(dataset.read_factor("number"), np.arange(1, NUMBER + 1))
        assert set(dataset.schemes) == {"iid", "official"} | ({"iid-paper"} if name == "celeba-words" else set())
        for scheme in ("iid", "official"):
            assert [len(dataset.split(scheme, part)) for part in PARTS] == [32, 4, 4]
            assert np.array_equal(dataset.split(scheme, "test"), np.flatnonzero(dataset.read_factor("partition") == 2))


def test_words_say_what_the_attributes_say(celeba, tmp_path):
    with make("celeba-words", tmp_path / "d.h5", celeba=celeba) as dataset:
        info = dataset.texts["text"]
        assert (len(info.vocabulary), info.length, info.slots) == (19, 9, ())
        codes = dataset.read_attributes("attributes", slice(None))
        text = dataset.read_text("text", slice(None))
        number = dataset.read_factor("words")
        for row, (words, attributes) in enumerate(zip(text, codes, strict=True)):
            said = info.words(words).split()
            true = {one for one, code in zip(ATTRIBUTES, attributes, strict=True) if code}
            true |= set() if "Male" in true else {"Female"}
            assert len(said) == len(set(said)) == min(9, len(true))
            assert number[row] == len(true)
            assert set(said) <= true
        parts = [len(dataset.split("iid-paper", part)) for part in PARTS]
        assert parts == [36, 2, 2]  # 180,000 of 202,599


@needs_faces
def test_transforms_are_of_the_same_picture(celeba, tmp_path):
    with make("celeba-transforms", tmp_path / "d.h5", celeba=celeba) as dataset:
        channels = {"image": 3, "grayscale": 1, "edges": 1, "mask": 1, "completion": 3, "watermark": 3}
        assert {name: info.shape for name, info in dataset.images.items()} == {
            name: (number, 64, 64) for name, number in channels.items()
        }
        pictures = {name: dataset.read_image(name, slice(None)) for name in channels}
        image = pictures["image"]
        luma = np.einsum("nchw,c->nhw", image, [0.299, 0.587, 0.114])
        assert np.abs(luma - pictures["grayscale"][:, 0]).max() <= 2
        assert np.array_equal(pictures["completion"], np.stack([blacken_right_half(one) for one in image]))
        assert np.array_equal(pictures["watermark"], np.stack([add_watermark(one) for one in image]))
        assert (pictures["edges"].max(axis=(1, 2, 3)) > 60).all()
        assert (dataset.read_factor("face_found") == 1).all()
        assert (dataset.read_factor("landmark_error") < 5).all()
        points = dataset.read_factor("landmarks")
        assert points.shape == (NUMBER, 68, 2)
        eyes = points[:, 36:48].mean(axis=1)
        x, y = np.rint(points[:, 48:68].mean(axis=1)).astype(int).T * 64 // 178 - [[0], [20 * 64 // 178]]
        assert (pictures["mask"][np.arange(NUMBER), 0, y, x] > 100).all()  # the mouth is filled
        assert np.abs(eyes - [89, 111]).max() < 12
        assert dataset.header.settings["landmarks_sha256"].startswith("fbdc2cb8")


@pytest.mark.slow_cases("celeba-transforms")
@every_recipe
def test_content_depends_on_neither_workers_chunks_nor_packing(name, tmp_path):
    plain = build_celeba(tmp_path / "plain", 20)
    zipped = build_celeba(tmp_path / "zip", 20, zipped="all", lists="csv")
    workers = 2 if name == "celeba-transforms" else 1  # all recipes do their work alike
    ids = {
        content(name, tmp_path / "a.h5", celeba=plain, chunk=7),
        content(name, tmp_path / "b.h5", celeba=plain, chunk=64),
        content(name, tmp_path / "c.h5", celeba=zipped, chunk=11, workers=workers),
    }
    assert len(ids) == 1


def test_content_depends_on_settings_and_images(celeba, tmp_path):
    other = build_celeba(tmp_path / "other", NUMBER, faults=["no-face"])
    variants = [{}, {"size": 32}, {"crop": 148}, {"number": 20}, {"celeba": other}]
    ids = {
        content("celeba-18", tmp_path / f"{i}.h5", **{"celeba": celeba, **variant})
        for i, variant in enumerate(variants)
    }
    assert len(ids) == len(variants)


def test_a_number_is_spread_over_all_parts(celeba, tmp_path):
    with make("celeba-18", tmp_path / "d.h5", celeba=celeba, number=20) as dataset:
        assert np.array_equal(dataset.read_factor("number"), np.arange(1, NUMBER, 2))
        assert [len(dataset.split("official", part)) for part in PARTS] == [16, 2, 2]


@pytest.mark.parametrize(
    ("fault", "why"),
    [("truncated", "truncated"), ("not-a-jpeg", "no JPEG"), ("small", "64 x 64"), ("damaged-zip", "damaged there")],
)
def test_unreadable_images_are_named_and_only_dropped_when_told(fault, why, tmp_path):
    folder = build_celeba(tmp_path / "c", NUMBER, zipped="images", faults=[fault])
    path = tmp_path / "d.h5"
    says = rf"1 of the first 16 images in .* cannot be read: 000003.jpg \(.*{why}.*--drop-unreadable"
    with pytest.raises(DataError, match=says):
        make("celeba-18", path, celeba=folder)
    assert not path.exists()
    with make("celeba-18", path, celeba=folder, drop_unreadable=True) as dataset:
        assert dataset.size == NUMBER - 1
        assert 3 not in dataset.read_factor("number")
        assert dataset.header.facts["unreadable_images"] == ["000003.jpg"]
        assert sum(len(dataset.split("official", part)) for part in PARTS) == NUMBER - 1


@pytest.mark.slow
@needs_faces
def test_missing_faces_are_counted_flagged_and_dropped_when_told(tmp_path):
    folder = build_celeba(tmp_path / "c", 20, faults=["no-face"])
    settings = {"celeba": folder, "detector": "dlib"}
    with make("celeba-transforms", tmp_path / "a.h5", **settings) as dataset:
        found = dataset.read_factor("face_found")
        assert np.flatnonzero(found == 0).tolist() == [7]
        assert dataset.header.facts["faceless"] == 1
        assert not dataset.read_image("mask", np.array([7])).any()
        assert np.isnan(dataset.read_factor("landmarks")[7]).all()
        whole = dataset.read_image("mask", slice(None))
        one = dataset.header.content_id
    with make("celeba-transforms", tmp_path / "b.h5", drop_faceless=True, **settings) as dataset:
        assert dataset.size == 19
        assert dataset.header.facts["faceless"] == 1
        assert 8 not in dataset.read_factor("number")
        assert np.array_equal(dataset.read_image("mask", slice(None)), np.delete(whole, 7, axis=0))
        assert dataset.header.content_id != one


@needs_faces
def test_where_nothing_is_left_it_says_why(tmp_path, monkeypatch):
    folder, path = build_celeba(tmp_path / "c", 20), tmp_path / "d.h5"
    with monkeypatch.context() as patch:
        patch.setattr(FaceFinder, "find", lambda *_: Face(None, float("nan")))
        settings = {"celeba": folder, "drop_faceless": True}
        says = r"no face found in 20 of 20 images; leave out --drop-faceless, or try --detector aligned$"
        with pytest.raises(DataError, match=says):
            make("celeba-transforms", path, detector="dlib", **settings)
        with pytest.raises(DataError, match="or try --detector dlib"):
            make("celeba-transforms", path, detector="aligned", **settings)
        assert not path.exists()
        with make("celeba-transforms", path, celeba=folder, detector="dlib") as dataset:
            assert dataset.header.facts["faceless"] == dataset.size == 20


def test_where_nothing_can_be_read_nothing_stays(tmp_path):
    folder = build_celeba(tmp_path / "c", 20)
    for image in folder.glob("Img/img_align_celeba/*.jpg"):
        image.write_bytes(b"")
    with pytest.raises(
        DataError, match=r"no image is left to store: 20 of the first 20 images in .* cannot be read: 000001.jpg"
    ):
        make("celeba-18", tmp_path / "d.h5", celeba=folder, drop_unreadable=True)
    assert [file.name for file in tmp_path.iterdir()] == ["c"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from mmgen import data_recipes
recipe = data_recipes.get("celeba-words")(celeba=Path(sys.argv[1]))
for progress in recipe.make(Path(sys.argv[2]), workers=1, chunk=8):
    if progress.done >= 16:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_leaves_no_file_and_the_same_command_makes_it(celeba, tmp_path):
    path = tmp_path / "d.h5"
    done = subprocess.run([sys.executable, "-c", _KILLED, celeba, path], timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    again = content("celeba-words", path, celeba=celeba, chunk=8)
    assert again == content("celeba-words", tmp_path / "whole.h5", celeba=celeba)


def test_termination_is_an_error_that_says_what_was_written():
    from mmgen.cli._make import _interrupt_when_terminated

    with pytest.raises(Interrupted, match="nothing was written"), _interrupt_when_terminated():
        os.kill(os.getpid(), signal.SIGTERM)


def test_mistakes_are_one_sentence(celeba, tmp_path):
    with pytest.raises(UsageError, match=r"your own copy of CelebA: get img_align_celeba.zip, .* from https://mmlab"):
        data_recipes.get("celeba-18")().make(tmp_path / "d.h5")
    with pytest.raises(UsageError, match=r"--number got 50, but .* holds 40 images"):
        data_recipes.get("celeba-18")(celeba=celeba, number=50).make(tmp_path / "d.h5")
    with pytest.raises(SettingsError, match="at most crop, which is 40"):
        validate(data_recipes.get("celeba-18"), {"crop": 40})
    with pytest.raises(SettingsError, match="'aligned' or 'dlib'"):
        validate(data_recipes.get("celeba-transforms"), {"detector": "hog"})
    for path, says in ((tmp_path / "no" / "d.h5", "there is no folder"), (tmp_path, "is a directory")):
        with pytest.raises(ArtifactError, match=says):
            data_recipes.get("celeba-18")(celeba=celeba).make(path, workers=1).run()
    assert list(tmp_path.iterdir()) == []

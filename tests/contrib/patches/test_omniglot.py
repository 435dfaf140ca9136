"""OMNIGLOT from the user's copy: which way up pictures are, box means by hand, splits, and files that are not it."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from mmgen.artifacts import PARTS, Dataset
from mmgen.contrib.patches.data_recipes.omniglot import Omniglot, box_mean, read_characters
from mmgen.core.errors import DataError
from tests.contrib.patches._characters import build_omniglot, drawing, write_zip

SMALL = Path(os.environ.get("MMGEN_TEST_DATA", "../shared/data")) / "omniglot"


def pictures(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (size, 28, 28)) / 255


def write_matrix(path: Path, train: int = 40, test: int = 10, **others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A file like chardata.mat: pictures in columns, each column by column. Returns the pictures, the right way up."""
    some, more = pictures(train, 0), pictures(test, 1)
    columns = [part.transpose(0, 2, 1).reshape(len(part), -1).T for part in (some, more)]
    savemat(path, {"data": columns[0], "testdata": columns[1], **others}, do_compression=True)
    return some, more


def made(path: Path, **settings: object) -> Dataset:
    return Dataset.open(Omniglot(**settings).make(path, seed=0).run())


def test_pictures_of_the_matrix_stand_upright_and_keep_their_levels(tmp_path: Path) -> None:
    one_hot = np.eye(3)[np.arange(40) % 3].T
    some, more = write_matrix(
        tmp_path / "chardata.mat", target=one_hot, testtarget=one_hot[:, :10], targetchar=np.arange(1, 41)[None]
    )
    with made(tmp_path / "o.h5", omniglot=tmp_path) as dataset:
        assert dataset.images["image"].layout == "probabilities"
        assert "28 x 28 as published" in dataset.header.settings["pictures"]
        assert str(tmp_path) not in str(dataset.header.settings)
        stored = dataset.read_image("image")[:, 0]
        np.testing.assert_array_equal(stored, np.rint(255 * np.concatenate([some, more])))
        assert dataset.attributes["attributes"].values == (("alphabet-01", "alphabet-02", "alphabet-03"),)
        assert dataset.read_attributes("attributes")[:5, 0].tolist() == [0, 1, 2, 0, 1]
        assert dataset.read_factor("character").tolist() == [*range(1, 41), *[0] * 10]
        assert np.array_equal(dataset.split("official", "test"), np.arange(40, 50))
        assert len(dataset.split("official", "val")) == 2


def test_alphabets_that_the_matrix_does_not_tell_are_unknown(tmp_path: Path) -> None:
    write_matrix(tmp_path / "chardata.mat", target=np.full((3, 40), 0.5))
    with made(tmp_path / "o.h5", omniglot=tmp_path / "chardata.mat") as dataset:
        assert set(dataset.read_attributes("attributes").flatten()) == {255}


@pytest.mark.slow
def test_the_published_validation_part_is_that_of_the_authors_code(tmp_path: Path) -> None:
    """The last 1,345 of numpy's old permutation by seed 123; its first and last numbers, computed once by numpy."""
    blank = np.zeros((784, 24_345), np.uint8)
    savemat(tmp_path / "chardata.mat", {"data": blank, "testdata": blank[:, :8_070]}, do_compression=True)
    with made(tmp_path / "o.h5", omniglot=tmp_path) as dataset:
        train, val, test = (dataset.split("official", part) for part in PARTS)
        assert [len(rows) for rows in (train, val, test)] == [23_000, 1_345, 8_070]
        order = np.random.RandomState(seed=123).permutation(24_345)
        assert np.array_equal(val, np.sort(order[-1_345:]))
        assert not set(train.tolist()) & set(val.tolist())


def test_box_means_by_hand() -> None:
    """A box of 3.75 x 3.75: the first has three whole pixels and three quarters of the fourth, in each direction."""
    ink = np.zeros((3, 105, 105), bool)
    ink[0] = True
    ink[1, 3, 0] = True  # shared by the boxes (0, 0) and (1, 0), three to one
    ink[2, 104, 104] = True
    means = box_mean(ink)
    assert (means[0] == 255).all()
    assert means[1, 0, 0] == round(255 * 0.75 / 3.75**2)
    assert means[1, 1, 0] == round(255 * 0.25 / 3.75**2)
    assert means[1].sum() == means[1, :2, 0].sum()
    assert means[2, 27, 27] == round(255 / 3.75**2)


def test_drawings_in_zips_are_ink_once_and_called_box_means(tmp_path: Path) -> None:
    with made(tmp_path / "o.h5", omniglot=build_omniglot(tmp_path)) as dataset:
        assert dataset.size == 24
        assert "box means" in dataset.header.settings["pictures"]
        assert dataset.attributes["attributes"].values == (("Greek", "Latin", "Tagalog", "Tibetan"),)
        assert np.array_equal(dataset.split("official", "test"), np.arange(18, 24))
        latin = 6 + 3 + 1  # second alphabet, second character, second drawer
        np.testing.assert_array_equal(dataset.read_image("image")[latin, 0], box_mean(drawing(1, 2, 2)[None])[0])
        assert dataset.read_factor("character")[latin] == 2


def test_a_drawing_in_two_zips_counts_once(tmp_path: Path) -> None:
    write_zip(tmp_path / "images_background_small1.zip", ["Greek", "Latin"])
    write_zip(tmp_path / "images_background_small2.zip", ["Greek", "Sanskrit"])
    characters = read_characters(tmp_path)
    assert (len(characters), characters.alphabets) == (18, ("Greek", "Latin", "Sanskrit"))
    with made(tmp_path / "o.h5", omniglot=tmp_path, number=20, binarise=True) as dataset:
        assert dataset.schemes == ["iid"]
        assert dataset.images["image"].layout == "bits"


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        (None, b"", "holds no OMNIGLOT, expected chardata.mat"),
        ("chardata.mat", b"not a Matlab file" * 20, "cannot read .* as a Matlab file"),
        ("images_background.zip", b"no zip", "it is no zip"),
    ],
)
def test_what_is_not_omniglot_is_refused(tmp_path: Path, name: str | None, content: bytes, complaint: str) -> None:
    if name:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        read_characters(tmp_path)


def test_a_matrix_of_other_shapes_or_numbers_is_refused(tmp_path: Path) -> None:
    savemat(tmp_path / "chardata.mat", {"data": np.zeros((10, 4)), "testdata": np.zeros((784, 4))})
    with pytest.raises(DataError, match=r"its 'data' has shape \[10, 4\]"):
        read_characters(tmp_path)
    savemat(tmp_path / "chardata.mat", {"data": np.full((784, 4), 255.0), "testdata": np.zeros((784, 4))})
    with pytest.raises(DataError, match="numbers outside 0 to 1 in 'data'"):
        read_characters(tmp_path)


def test_nothing_given_and_too_much_given_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"needs your own copy: get .* and name file or folder by --omniglot"):
        read_characters(None)
    write_matrix(build_omniglot(tmp_path) / "chardata.mat")
    with pytest.raises(DataError, match="expected one of them; name the file itself"):
        read_characters(tmp_path)


@pytest.mark.skipif(not (SMALL / "images_background_small1.zip").is_file(), reason=f"needs the small zips in {SMALL}")
@pytest.mark.slow
def test_the_small_sets_as_published() -> None:
    """4,840 distinct drawings of eight alphabets: Greek and Latin are in both zips."""
    characters = read_characters(SMALL)
    assert len(characters) == 4_840
    assert len(characters.alphabets) == 8
    ink = characters.images.mean() / 255
    assert 0.03 < ink < 0.12

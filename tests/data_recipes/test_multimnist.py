"""MultiMNIST: what text, factors and splits say is what the canvas shows."""

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.data_recipes._digits import CollectionName
from mmgen.data_recipes._several_digits import DigitPools
from mmgen.data_recipes._sources import read_digits
from mmgen.settings.config import validate

EVERYTHING = slice(None)
CORNERS = [(4, 4), (4, 23), (23, 4), (23, 23)]  # top and left of each cell
NO_SOURCE = 2**32 - 1


def make(path, *, source: CollectionName = "digits", seed=0, workers=1, chunk=2048, **settings) -> Dataset:
    recipe = validate(data_recipes.get("multimnist"), {"number": 400, "source": source, **settings})
    recipe.make(path, seed=seed, workers=workers, chunk=chunk).run()
    return Dataset.open(path)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    with make(tmp_path_factory.mktemp("multimnist") / "d.h5", number=2000) as opened:
        yield opened


def test_text_spells_the_digits_in_reading_order(dataset):
    info = dataset.texts["text"]
    assert (info.vocabulary, info.length, info.slots) == (tuple("0123456789"), 4, ())
    assert not dataset.attributes
    words = dataset.read_text("text", EVERYTHING)
    count, digit, source = (dataset.read_factor(name) for name in ("count", "digit", "source"))
    labels = read_digits("digits", None).labels
    for row, n, shown, numbers in zip(words, count, digit, source, strict=True):
        assert row[:n].tolist() == shown[:n].tolist() == labels[numbers[:n]].tolist()
        assert (row[n:] == 10).all()
        assert (shown[n:] == 255).all()
        assert (numbers[n:] == NO_SOURCE).all()


def test_numbers_of_digits_and_digits_are_uniform(dataset):
    counts = np.bincount(dataset.read_factor("count"), minlength=5)
    # Pearson's statistic; 0.999 quantiles of chi-squared with 4 and 9 degrees of freedom.
    assert len(counts) == 5
    assert ((counts - 400) ** 2 / 400).sum() < 18.5
    digit = dataset.read_factor("digit")
    shown = np.bincount(digit[digit != 255], minlength=10)
    shares = np.bincount(read_digits("digits", None).labels) / 1797
    expected = shown.sum() * shares
    assert ((shown - expected) ** 2 / expected).sum() < 27.9


def test_each_cell_shows_its_source_digit_shrunk(dataset):
    from PIL import Image

    images = dataset.read_image("image", slice(0, 200))[:, 0]
    originals = read_digits("digits", None).images
    for image, numbers in zip(images, dataset.read_factor("source"), strict=False):
        expected = np.zeros((50, 50), int)
        for (top, left), number in zip(CORNERS, numbers, strict=True):
            if number != NO_SOURCE:
                small = Image.fromarray(originals[number]).resize((21, 21), Image.Resampling.BICUBIC)
                expected[top : top + 21, left : left + 21] += np.asarray(small)
        assert np.array_equal(image, np.minimum(expected, 255))


def test_centres_are_those_of_the_ink(small_mnist, tmp_path):
    with make(tmp_path / "d.h5", source="mnist", mnist=small_mnist, number=60) as dataset:
        images = dataset.read_image("image", EVERYTHING)[:, 0]
        x, y, digit = (dataset.read_factor(name) for name in ("centre_x", "centre_y", "digit"))
        assert np.array_equal(np.isnan(x), digit == 255)
        assert np.array_equal(np.isnan(y), digit == 255)
        for row, image in enumerate(images):
            for k, (top, left) in enumerate(CORNERS):
                if digit[row, k] == 255:
                    continue
                down, right = np.nonzero(image[top : top + 21, left : left + 21])
                assert y[row, k] == top + (down.min() + down.max() + 1) / 2
                assert x[row, k] == left + (right.min() + right.max() + 1) / 2
        assert not images[digit[:, 0] == 255].any()


@pytest.mark.parametrize("source", ["mnist", "digits"])
def test_no_source_digit_is_in_two_parts(source, small_mnist, tmp_path):
    settings = {"mnist": small_mnist} if source == "mnist" else {}
    with make(tmp_path / "d.h5", source=source, number=600, **settings) as dataset:
        assert set(dataset.schemes) == ({"iid", "official"} if source == "mnist" else {"iid"})
        numbers = dataset.read_factor("source")
        for scheme in dataset.schemes:
            rows = [dataset.split(scheme, part) for part in PARTS]
            assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(600))
            used = [set(numbers[some].ravel()) - {NO_SOURCE} for some in rows]
            assert all(used)
            assert sum(map(len, used)) == len(set.union(*used))
        if source == "mnist":
            # 60 digits: 48 for training of which 4 are val, 12 for test; images have the same shares.
            assert [len(dataset.split("official", part)) for part in PARTS] == [440, 40, 120]
            test = dataset.split("official", "test")
            assert np.array_equal(np.flatnonzero(dataset.read_factor("source_part")), test)
            assert set(numbers[test].ravel()) <= {*range(48, 60), NO_SOURCE}


@pytest.mark.parametrize("size", [16, 50, 127])
def test_digits_stay_on_canvases_of_any_size(size, tmp_path):
    with make(tmp_path / "d.h5", number=40, size=size) as dataset:
        images = dataset.read_image("image", EVERYTHING)
        assert images.shape == (40, 1, size, size)
        count = dataset.read_factor("count")
        assert np.array_equal(images.any(axis=(1, 2, 3)), count > 0)
        right, bottom = dataset.read_factor("centre_x")[:, 1], dataset.read_factor("centre_y")[:, 2]
        assert np.all(right[count > 1] > size / 2)
        assert np.all(bottom[count > 2] > size / 2)


def test_original_digits_have_the_publishers_parts(mnist_folder):
    digits = read_digits("mnist", mnist_folder)
    pools = DigitPools.divide(digits, 0)
    assert set(pools.schemes) == {"iid", "official"}
    assert np.bincount(pools.pool).tolist() == [55_000, 5_000, 10_000]
    assert np.array_equal(pools.pool == PARTS.index("test"), digits.part == 1)

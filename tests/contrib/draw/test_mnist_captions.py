"""MNIST captions: sentences, attributes and factors say what the canvas shows; held-out digits stay out of training."""

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import DataError
from mmgen.data_recipes._digits import CollectionName
from mmgen.data_recipes._sources import read_digits
from mmgen.settings.config import validate

EVERYTHING = slice(None)
NO_SOURCE = 2**32 - 1
TEMPLATES = [
    "the digit a is on the left of the digit b .",
    "the digit a is on the right of the digit b .",
    "the digit a is at the top of the digit b .",
    "the digit a is at the bottom of the digit b .",
    "the digit a is at the top left of the image .",
    "the digit a is at the bottom right of the image .",
    "the digit a is at the top right of the image .",
    "the digit a is at the bottom left of the image .",
]
TOP, MIDDLE, BOTTOM = (0, 1, 2), (16, 17, 18), (30, 31, 32)
LEFT, RIGHT = (0, 1, 2, 3, 4), (28, 29, 30, 31, 32)
# Rows and columns of the digits by template, as published.
PLACES = [
    [(MIDDLE, LEFT), (MIDDLE, RIGHT)],
    [(MIDDLE, RIGHT), (MIDDLE, LEFT)],
    [(TOP, MIDDLE), (BOTTOM, MIDDLE)],
    [(BOTTOM, MIDDLE), (TOP, MIDDLE)],
    [(TOP, LEFT)],
    [(BOTTOM, RIGHT)],
    [(TOP, RIGHT)],
    [(BOTTOM, LEFT)],
]


def make(path, *, source: CollectionName = "digits", seed=0, workers=1, chunk=2048, **settings) -> Dataset:
    recipe = validate(data_recipes.get("mnist-captions"), {"number": 400, "source": source, **settings})
    recipe.make(path, seed=seed, workers=workers, chunk=chunk).run()
    return Dataset.open(path)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    with make(tmp_path_factory.mktemp("captions") / "d.h5", number=6000) as opened:
        yield opened


def held_out_digits(dataset) -> list[list[int]]:
    """Return the digit held out of each slot by template, 10 for none, as the file records them."""
    recorded = dataset.header.settings["held_out"]
    return [[10 if digit == "none" else int(digit) for digit in recorded[text]] for text in TEMPLATES]


def test_sentences_are_the_eight_of_twelve_tokens(dataset):
    info = dataset.texts["text"]
    assert (len(info.vocabulary), info.length, info.slots) == (22, 12, ())
    template, digit = dataset.read_factor("template"), dataset.read_factor("digit")
    for row, number, shown in zip(dataset.read_text("text", EVERYTHING), template, digit, strict=True):
        names = {"a": str(shown[0]), "b": str(shown[1])}
        assert info.words(row) == " ".join(names.get(word, word) for word in TEMPLATES[number].split())
        assert (row < 22).all()
    # Pearson's statistic of equal shares; 0.999 quantile of chi-squared with 7 degrees of freedom.
    counts = np.bincount(template[dataset.split("iid", "train")], minlength=8)
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 24.3


def test_attributes_name_the_left_or_upper_digit_first(dataset):
    info = dataset.attributes["attributes"]
    assert info.names == ("layout", "digit_1", "digit_2")
    layouts = ["side-by-side"] * 2 + ["stacked"] * 2 + ["top-left", "bottom-right", "top-right", "bottom-left"]
    template, digit, row, column = (dataset.read_factor(name) for name in ("template", "digit", "row", "column"))
    for codes, number, shown, y, x in zip(
        dataset.read_attributes("attributes", EVERYTHING), template, digit, row, column, strict=True
    ):
        assert info.values[0][codes[0]] == layouts[number]
        order = np.lexsort((x, y) if layouts[number] == "stacked" else (y, x)) if number < 4 else [0, 1]
        assert codes[1:].tolist() == shown[order].tolist()


def test_digits_lie_at_the_published_places(dataset):
    template, row, column = (dataset.read_factor(name) for name in ("template", "row", "column"))
    for number, places in enumerate(PLACES):
        of = template == number
        for k, (rows, columns) in enumerate(places):
            assert set(row[of, k].tolist()) == set(rows)
            assert set(column[of, k].tolist()) == set(columns)
        if len(places) == 1:
            assert (row[of, 1] == -1).all()
            assert (column[of, 1] == -1).all()
    assert (np.ptp(row[template < 2], axis=1) == 0).all(), "digits side by side share their row"
    assert (np.ptp(column[(template == 2) | (template == 3)], axis=1) == 0).all(), "stacked ones share their column"


def test_the_canvas_is_the_maximum_of_its_digits(dataset):
    images = dataset.read_image("image", slice(0, 300))[:, 0]
    originals = read_digits("digits", None).images
    source, row, column = (dataset.read_factor(name) for name in ("source", "row", "column"))
    for image, numbers, tops, lefts in zip(images, source, row, column, strict=False):
        expected = np.zeros((60, 60), np.uint8)
        for number, top, left in zip(numbers, tops, lefts, strict=True):
            if number != NO_SOURCE:
                box = expected[top : top + 28, left : left + 28]
                box[:] = np.maximum(box, originals[number])
        assert np.array_equal(image, expected)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_held_out_digits_are_never_seen_in_training_and_always_in_heldout(seed, tmp_path):
    with make(tmp_path / "d.h5", number=3000, seed=seed) as dataset:
        held_out = held_out_digits(dataset)
        template, digit = dataset.read_factor("template"), dataset.read_factor("digit")
        odd = np.array(
            [
                any(shown == kept for shown, kept in zip(pair, held_out[number], strict=False))
                for number, pair in zip(template, digit.tolist(), strict=True)
            ]
        )
        assert np.array_equal(odd, dataset.read_factor("held_out").astype(bool))
        for part in PARTS:
            assert not odd[dataset.split("iid", part)].any()
        for part in ("train", "val"):
            assert np.array_equal(dataset.split("heldout", part), dataset.split("iid", part))
        unseen = dataset.split("heldout", "test")
        assert odd[unseen].all()
        assert abs(len(unseen) - len(dataset.split("iid", "test"))) <= 1
        # Every slot with a held-out digit is measured.
        shown = {(number, k) for number, pair in zip(template[unseen], digit[unseen], strict=True)
                 for k, each in enumerate(held_out[number]) if pair[k] == each}  # fmt: skip
        assert shown == {(n, k) for n, row in enumerate(held_out) for k, each in enumerate(row) if each < 10}


@pytest.mark.slow
def test_held_out_pairs_are_uniform_among_the_excluded_ones(tmp_path):
    with make(tmp_path / "d.h5", number=40_000, size=16) as dataset:
        held_out = held_out_digits(dataset)
        rows = dataset.split("heldout", "test")
        template, digit = dataset.read_factor("template")[rows], dataset.read_factor("digit")[rows]
        test = np.zeros(1797, bool)  # the source digits of test images
        source = dataset.read_factor("source")[dataset.read_factor("held_out") == 1]
        test[source[source != NO_SOURCE]] = True
        shares = np.bincount(read_digits("digits", None).labels[test], minlength=10) / test.sum()
        number = next(n for n in range(4) if max(held_out[n]) < 10)
        first, second = held_out[number]
        pairs = digit[template == number]
        excluded = 1 - (1 - shares[first]) * (1 - shares[second])
        for shown, share in (((pairs[:, 0] == first), shares[first]), ((pairs[:, 1] == second), shares[second])):
            expected = share / excluded
            assert abs(shown.mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / len(pairs))


@pytest.mark.parametrize("source", ["mnist", "digits"])
def test_no_source_digit_is_in_two_parts(source, small_mnist, tmp_path):
    settings = {"mnist": small_mnist} if source == "mnist" else {}
    with make(tmp_path / "d.h5", source=source, number=600, **settings) as dataset:
        assert set(dataset.schemes) == {"iid", "heldout"} | ({"official"} if source == "mnist" else set())
        numbers = dataset.read_factor("source")
        rows = [dataset.split("iid", part) for part in PARTS]
        rows[2] = np.concatenate([rows[2], dataset.split("heldout", "test")])
        assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(600))
        used = [set(numbers[some].ravel()) - {NO_SOURCE} for some in rows]
        assert all(used)
        assert sum(map(len, used)) == len(set.union(*used))


@pytest.mark.parametrize("size", [16, 28, 60, 127])
def test_digits_stay_on_canvases_of_any_size(size, tmp_path):
    with make(tmp_path / "d.h5", number=200, size=size) as dataset:
        assert dataset.read_image("image", EVERYTHING).shape == (200, 1, size, size)
        cell = round(28 * size / 60)
        row, column, digit = (dataset.read_factor(name) for name in ("row", "column", "digit"))
        there = digit != 255
        for first in (row, column):
            assert first[there].min() >= 0
            assert first[there].max() + cell <= size


def test_a_part_without_a_permitted_digit_is_refused(tmp_path, monkeypatch):
    from mmgen.data_recipes import _several_digits

    few = read_digits("digits", None)
    ones = few.labels == 1
    monkeypatch.setattr(
        _several_digits, "read_digits", lambda *_: type(few)(few.images[ones], few.labels[ones], few.part[ones])
    )
    recipe = validate(data_recipes.get("mnist-captions"), {"source": "digits"})
    seed = next(n for n in range(40) if ["1"] in recipe.further_settings(n)["held_out"].values())
    with pytest.raises(DataError, match="--seed"):
        make(tmp_path / "d.h5", seed=seed, number=200)

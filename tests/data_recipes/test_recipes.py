"""Contracts of all recipes, over every member of the room."""

from pathlib import Path

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import SettingsError
from mmgen.settings.config import validate
from tests.data_recipes.conftest import write_idx

DIGIT_RECIPES = ["binary-mnist", "fashion-mnist", "mnist", "mnist-2bit", "mnist-a"]


def make(name: str, path: Path, *, seed: int = 0, workers: int = 1, chunk: int = 2048, **settings) -> Dataset:
    recipe = validate(data_recipes.get(name), {"number": 80, **settings})
    assert recipe.make(path, seed=seed, workers=workers, chunk=chunk, command="mmgen make-data x").run() == path
    return Dataset.open(path)


@pytest.mark.parametrize("name", DIGIT_RECIPES)
def test_the_file_holds_what_the_recipe_says(name, small_mnist, tmp_path):
    with make(name, tmp_path / "d.h5", mnist=small_mnist) as dataset:
        recipe = data_recipes.get(name)
        assert dataset.size == 80
        assert dataset.header.kind == "dataset"
        assert dataset.header.settings["recipe"] == name
        assert dataset.header.command == "mmgen make-data x"
        assert str(small_mnist) not in str(dataset.header.settings)
        attributes = dataset.attributes["attributes"]
        assert dict(zip(attributes.names, map(list, attributes.values), strict=True)) == recipe.vocabulary
        codes = dataset.read_attributes("attributes", slice(None))
        assert np.all(codes < [len(values) for values in attributes.values])
        assert set(dataset.factors) == {*recipe.random_factors, "source", "source_part"}
        assert np.array_equal(dataset.read_factor("source"), np.arange(80) % 60)
        assert np.array_equal(dataset.read_factor("source_part"), (np.arange(80) % 60) >= 48)
        images = dataset.read_image("image", slice(None))
        size = recipe.model_fields["size"].default
        assert images.shape == (80, 1, size, size)
        assert images.any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("name", DIGIT_RECIPES)
def test_splits_are_disjoint_and_complete(name, small_mnist, tmp_path):
    with make(name, tmp_path / "d.h5", mnist=small_mnist, number=240) as dataset:
        own = {"compositional"} if name == "mnist-a" else {"official"}
        assert set(dataset.schemes) == {"iid", "iid-paper"} | own
        for scheme in dataset.schemes:
            rows = np.concatenate([dataset.split(scheme, part) for part in PARTS])
            assert np.array_equal(np.sort(rows), np.arange(240))
        source = dataset.read_factor("source")
        by_part = [set(source[dataset.split("iid", part)]) for part in PARTS]
        assert [len(some) for some in by_part] == [51, 3, 6]
        assert sum(map(len, by_part)) == len(set.union(*by_part))
        assert [len(dataset.split("iid-paper", part)) for part in PARTS] == [204, 12, 24]


def test_fewer_images_than_digits_are_split_in_the_same_shares(small_mnist, tmp_path):
    with make("mnist", tmp_path / "d.h5", mnist=small_mnist, number=20) as dataset:
        assert [len(dataset.split("iid", part)) for part in PARTS] == [17, 1, 2]


def test_compositional_parts_share_no_combination(small_mnist, tmp_path):
    with make("mnist-a", tmp_path / "d.h5", mnist=small_mnist, number=3000, size=16) as dataset:
        codes = dataset.read_attributes("attributes", slice(None))
        combinations = [set(map(tuple, codes[dataset.split("compositional", part)])) for part in PARTS]
        assert [len(some) for some in combinations] == [204, 12, 24]
        assert len(set.union(*combinations)) == 240


@pytest.mark.slow
def test_content_does_not_depend_on_workers(small_mnist, tmp_path):
    identities = set()
    for workers in (1, 2):
        with make("mnist-a", tmp_path / f"{workers}.h5", workers=workers, chunk=16, mnist=small_mnist) as dataset:
            identities.add(dataset.header.content_id)
    assert len(identities) == 1


def test_content_depends_on_seed_settings_and_source(small_mnist, tmp_path):
    variants = [{}, {"seed": 1}, {"size": 32}, {"binarise": False}, {"number": 81}, {"source": "digits", "mnist": None}]
    identities = set()
    for index, variant in enumerate(variants):
        with make("mnist-a", tmp_path / f"{index}.h5", **{"mnist": small_mnist, **variant}) as dataset:
            identities.add(dataset.header.content_id)
    assert len(identities) == len(variants)


def test_a_smaller_number_is_a_prefix(small_mnist, tmp_path):
    with (
        make("mnist-a", tmp_path / "a.h5", mnist=small_mnist, number=50) as fewer,
        make("mnist-a", tmp_path / "b.h5", mnist=small_mnist, number=90) as more,
    ):
        rows = slice(0, 50)
        assert np.array_equal(fewer.read_packed("image", rows), more.read_packed("image", rows))
        assert np.array_equal(fewer.read_attributes("attributes", rows), more.read_attributes("attributes", rows))
        assert np.array_equal(fewer.read_factor("angle"), more.read_factor("angle")[:50])


@pytest.mark.slow
def test_mnist_keeps_digits_as_published(mnist_folder, tmp_path):
    from mmgen.data_recipes._sources import read_digits

    digits = read_digits("mnist", mnist_folder)
    with make("mnist", tmp_path / "d.h5", mnist=mnist_folder) as dataset:
        assert np.array_equal(dataset.read_image("image", slice(None))[:, 0], digits.images[:80])
        assert np.array_equal(dataset.read_attributes("attributes", slice(None))[:, 0], digits.labels[:80])


def test_mnist_2bit_tells_parity_and_magnitude_only(small_mnist, tmp_path):
    with make("mnist-2bit", tmp_path / "d.h5", mnist=small_mnist) as dataset:
        codes = dataset.read_attributes("attributes", slice(None))
        digit = dataset.read_factor("digit")
        info = dataset.attributes["attributes"]
        words = [tuple(info.values[a][code] for a, code in enumerate(row)) for row in codes]
        for one, (parity, magnitude) in zip(digit, words, strict=True):
            assert parity == ("odd" if one % 2 else "even")
            assert magnitude == ("from-5" if one >= 5 else "below-5")


def test_the_work_reports_images_and_its_length(small_mnist, tmp_path):
    recipe = data_recipes.get("mnist-a")(mnist=small_mnist, number=50)
    work = recipe.make(tmp_path / "d.h5", workers=1, chunk=20)
    assert (len(work), work.unit) == (50, "image")
    assert [progress.done for progress in work] == [20, 40, 50]


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"size": 4}, "greater than or equal to 16"),
        ({"number": 0}, "number"),
        ({"copies": -1, "number": "many"}, "setting 'number'"),
        ({"copies": 3, "number": 40}, "setting 'copies': leave it out with number"),
    ],
)
def test_wrong_settings_are_named(settings, complaint):
    with pytest.raises(SettingsError) as caught:
        validate(data_recipes.get("mnist-a"), settings)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_recipe_of_the_documentation_works(tmp_path):
    text = (Path(__file__).parents[2] / "docs" / "how-to-add-a-recipe.md").read_text(encoding="utf-8")
    module = {"__name__": "two_tone"}
    exec(text.split("```python\n")[2].split("```")[0], module)
    identities = set()
    for chunk in (30, 2048):
        path = tmp_path / f"{chunk}.h5"
        module["TwoTone"](number=100).make(path, workers=1, chunk=chunk).run()
        with Dataset.open(path) as dataset:
            codes = dataset.read_attributes("attributes", slice(None))[:, 0]
            assert 20 < codes.sum() < 80
            assert np.array_equal(dataset.read_image("image", slice(None))[:, 0, 3, 3], codes * 255)
            assert dataset.schemes == ["iid"]
            identities.add(dataset.header.content_id)
    assert len(identities) == 1


def test_dynamic_pixels_are_kept_as_probabilities(small_mnist, tmp_path):
    """The same levels as grey, and said to be something else, in the file and in its settings."""
    with (
        make("mnist", tmp_path / "a.h5", mnist=small_mnist, binarise="dynamic") as dynamic,
        make("mnist", tmp_path / "b.h5", mnist=small_mnist) as grey,
    ):
        assert (dynamic.images["image"].layout, grey.images["image"].layout) == ("probabilities", "bytes")
        assert dynamic.header.settings["binarise"] == "dynamic"
        assert dynamic.header.content_id != grey.header.content_id
        assert np.array_equal(dynamic.read_image("image"), grey.read_image("image"))
        assert set(np.unique(dynamic.read_pixels("image"))) == {0.0, 1.0}


def test_burdas_split_holds_the_last_400_training_digits_out(tmp_path):
    folder = tmp_path / "mnist"
    folder.mkdir()
    for prefix, n in (("train", 1000), ("t10k", 100)):
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", np.zeros((n, 28, 28), np.uint8))
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", (np.arange(n) % 10).astype(np.uint8))
    with make("mnist", tmp_path / "a.h5", mnist=folder, binarise="dynamic", number=None) as dataset:
        parts = [dataset.split("official-400", part) for part in PARTS]
        for found, expected in zip(parts, (range(600), range(600, 1000), range(1000, 1100)), strict=True):
            assert np.array_equal(found, expected)


def test_what_is_drawn_once_is_not_dynamic(small_mnist, tmp_path):
    with pytest.raises(SettingsError, match="--dynamic is not for binary-mnist"):
        make("binary-mnist", tmp_path / "a.h5", mnist=small_mnist, binarise="dynamic")

"""Data under a published set's names: what is that set, what is not, and what is said of the one and the other."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import Dataset
from mmgen.commands.make_data import preview_recipe
from mmgen.core.errors import UsageError
from mmgen.data_recipes import _sources
from mmgen.data_recipes._celeba import _source
from mmgen.data_recipes._celeba._source import Source
from mmgen.data_recipes._sources import read_digits
from mmgen.experiments._plan import find_experiment
from mmgen.results.published import published_table
from mmgen.settings.config import validate
from tests.conftest import outside_data
from tests.data_recipes._faces import build_celeba


def made(name: str, path: Path, **settings: Any) -> tuple[dict[str, Any], list[str]]:
    """Settings that a dataset records, and what is said of its sources."""
    recipe = validate(data_recipes.get(name), settings)
    making = recipe.make(path, workers=1)
    making.run()
    with Dataset.open(path) as data:
        return data.header.settings, list(making.notes)


@pytest.mark.parametrize("name", ["mnist", "mnist-a", "mnist-2bit", "binary-mnist", "fashion-mnist", "multimnist"])
def test_other_digits_under_mnists_names_are_said_to_be_others(name: str, small_mnist: Path, tmp_path: Path) -> None:
    title = "Fashion-MNIST" if name == "fashion-mnist" else "MNIST"
    settings, said = made(name, tmp_path / "d.h5", mnist=small_mnist, number=20)
    assert settings["content"] == f"not {title} as published"
    assert f"{small_mnist} is not {title} as published (SHA-256 of its content" in said[0]


def test_the_published_digits_are_known_whatever_they_are_packed_in(
    small_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = _sources._COLLECTIONS["mnist"]
    known = _sources._Collection("MNIST", collection.files, (), read_digits("mnist", small_mnist).sha256)
    monkeypatch.setitem(_sources._COLLECTIONS, "mnist", known)
    for file in small_mnist.iterdir():  # as some browsers unpack them
        (tmp_path / file.stem.replace("-idx", ".idx")).write_bytes(gzip.decompress(file.read_bytes()))
    assert made("mnist", tmp_path / "d.h5", mnist=tmp_path, number=20)[1] == []
    labels = tmp_path / "t10k-labels.idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:-1] + b"\7")  # one label of all is another one
    settings, said = made("mnist", tmp_path / "e.h5", mnist=tmp_path, number=20)
    assert settings["content"] == "not MNIST as published" and len(said) == 1


@pytest.mark.slow
@pytest.mark.parametrize("data", ["mnist", "binary-mnist"])
def test_mnist_is_mnist(data: str, tmp_path: Path) -> None:
    if data == "mnist":
        digits = read_digits("mnist", outside_data("mnist"))
        assert digits.content is not None and digits.content.is_published
        return
    held = np.load(outside_data("binary-mnist") / "fixed_binarisation.npz")
    images = np.concatenate([held[part].reshape(-1, 28, 28) for part in ("train", "valid", "test")]) * np.uint8(255)
    part = np.repeat(np.array([0, 2, 1], np.uint8), [50_000, 10_000, 10_000])
    assert _sources.Digits(images, np.full(70_000, 255, np.uint8), part).sha256 == _sources._CONTENT


def test_other_files_in_the_place_of_the_fixed_binarisation(tmp_path: Path) -> None:
    for name in ("train", "valid", "test"):
        (tmp_path / f"binarized_mnist_{name}.amat").write_text("\n".join(" ".join("01" * 392) for _ in range(10)))
    settings, said = made("binary-mnist", tmp_path / "d.h5", amat=tmp_path)
    assert settings["content"].startswith("not the binarised MNIST") and "no published numbers" in said[0]


def test_faces_are_counted_and_lists_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build_celeba(tmp_path / "c", 24)
    assert Source(folder, "ignored").compare_with_published().why == "it has 24 images, expected 202,599"
    monkeypatch.setattr(_source, "CELEBA_SIZE", 24)
    monkeypatch.setattr(_source, "PARTS", {code: (name, 8) for code, name in enumerate(("train", "val", "test"))})
    monkeypatch.setattr(_source, "_check_parts", lambda *_: None)
    with Source(folder, "ignored") as source:
        assert "list_attr_celeba, list_eval_partition has another content" in source.compare_with_published().notes[0]
        monkeypatch.setattr(_source, "PUBLISHED", {name: sorted(md5)[0] for name, md5 in source._md5.items()})
        assert source.compare_with_published().settings == {}
        assert "is not verified to be CelebA (images are counted" in source.compare_with_published().notes[0]


def test_published_numbers_do_not_stand_beside_other_data(small_mnist: Path, tmp_path: Path) -> None:
    settings, _ = made("mnist", tmp_path / "d.h5", mnist=small_mnist, number=20, binarise=False)
    table = published_table("WG Table 2, MNIST")
    assert table.differences(settings) == ["data that are not MNIST as published"]
    assert table.differences({key: value for key, value in settings.items() if key != "content"}) == []
    with pytest.raises(UsageError, match=r"--data got .*d.h5, which is not MNIST as published, expected the data of"):
        find_experiment("wu-table2", str(tmp_path / "d.h5"))


def test_a_dry_run_says_what_the_sources_are(small_mnist: Path) -> None:
    said = preview_recipe(validate(data_recipes.get("mnist"), {"mnist": small_mnist}), 0)
    assert said[0] == "to do: making mnist, 60 images" and "is not MNIST as published" in said[1]

"""What every recipe promises, over all members of the room, made small from small sources."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.config import validate
from tests.data_recipes._characters import build_omniglot
from tests.data_recipes._faces import build_celeba

NUMBER = 24
FACES = ("cv2", "dlib", "skimage", "face_recognition_models")


@pytest.fixture(scope="module")
def small(small_mnist: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Settings that make a recipe small, and its sources, by the name of the field; a recipe takes those it has."""
    faces = build_celeba(tmp_path_factory.mktemp("celeba"), NUMBER)
    characters = build_omniglot(tmp_path_factory.mktemp("omniglot"))
    return {
        "mnist": small_mnist,
        "omniglot": characters,
        "celeba": faces,
        "number": NUMBER,
        "size": 32,
        "samples": 1,
        "detector": "aligned",
    }


@pytest.mark.parametrize("name", data_recipes.names())
def test_recipe(name: str, small: dict[str, object], tmp_path: Path) -> None:
    """Content depends on the seed, not on chunks; the file says how it was made; parts of a split share no row."""
    if name == "celeba-transforms" and any(importlib.util.find_spec(package) is None for package in FACES):
        pytest.skip("needs the extra faces")
    member = data_recipes.get(name)
    recipe = validate(member, {field: value for field, value in small.items() if field in member.model_fields})
    work = recipe.prepare()
    assert work is None or name == "two-objects", (
        f"{name} wants to fetch or build something first: give it a small source in the fixture `small`"
    )
    ids = []
    for number, (seed, chunk) in enumerate([(0, 2048), (0, 7), (1, 2048)]):
        path = tmp_path / f"{number}.h5"
        recipe.make(path, seed=seed, workers=1, chunk=chunk, command=f"mmgen make-data {name}").run()
        with Dataset.open(path) as dataset:
            dataset.verify()
            header = dataset.header
            ids.append(header.content_id)
            assert (header.kind, header.seed) == ("dataset", seed)
            assert header.settings["recipe"] == name
            assert header.command == f"mmgen make-data {name}"
            assert 0 < dataset.size <= NUMBER
            assert dataset.images
            assert dataset.attributes or dataset.texts
            assert dataset.schemes
            for scheme in dataset.schemes:
                rows = np.concatenate([dataset.split(scheme, part) for part in PARTS])
                assert len(set(rows.tolist())) == len(rows)
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]

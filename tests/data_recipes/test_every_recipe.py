"""What every recipe promises, over all members of the room, made small from small sources."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from mmgen import data_recipes
from mmgen.commands.make_data import preview_recipe
from mmgen.settings.config import validate
from mmgen.testing.data import NUMBER, check_recipe
from tests.data_recipes._faces import build_celeba
from tests.own_data._pictures import write_folder
from tests.worlds import added_rows

FACES = ("cv2", "dlib", "skimage", "face_recognition_models")


@pytest.fixture(scope="module")
def small(small_mnist: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Settings that make a recipe small, and its sources, by the name of the field; a recipe takes those it has."""
    faces = build_celeba(tmp_path_factory.mktemp("celeba"), NUMBER)
    pictures = write_folder(tmp_path_factory.mktemp("own"), NUMBER)
    with pytest.MonkeyPatch.context() as patch:
        sources = {
            field: write(tmp_path_factory.mktemp(field), patch) for field, write in added_rows("SMALL_SOURCES").items()
        }
        yield {
            **sources,
            "mnist": small_mnist,
            "celeba": faces,
            "number": NUMBER,
            "size": 32,
            "samples": 1,
            "detector": "aligned",
            "pictures": pictures,
        }


@pytest.mark.slow_cases("dsprites", "celeba-transforms")
@pytest.mark.parametrize("name", data_recipes.names())
def test_recipe(name: str, small: dict[str, object], tmp_path: Path) -> None:
    """Content depends on the seed, not on chunks; the file says how it was made; parts of a split share no row."""
    if name == "celeba-transforms" and any(importlib.util.find_spec(package) is None for package in FACES):
        pytest.skip("needs the extra faces")
    for package in added_rows("PACKAGES_OF_RECIPES").get(name, ()):
        pytest.importorskip(package)
    member = data_recipes.get(name)
    small = added_rows("SETTINGS_OF_RECIPES").get(name, small)
    recipe = validate(member, {field: value for field, value in small.items() if field in member.model_fields})
    work = recipe.setup_work()
    assert work is None or name == "two-objects", (
        f"{name} wants to fetch or build something first: give it a small source in the fixture `small`"
    )
    if recipe.survey(0, 1) is None:
        assert any(line.startswith("to do: ") for line in preview_recipe(recipe, 0)), (
            "a dry run says what would be made"
        )
    assert not list(tmp_path.iterdir()), "and writes nothing"
    check_recipe(name, tmp_path, **{field: value for field, value in small.items() if field in member.model_fields})

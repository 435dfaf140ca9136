"""OMNIGLOT and BSDS300: data under their names that are not these."""

import shutil
from pathlib import Path

import pytest

from mmgen.contrib.patches.data_recipes.omniglot import read_characters
from mmgen.contrib.patches.data_recipes.patches import find_pictures
from tests.conftest import outside_data
from tests.contrib.patches._characters import build_omniglot
from tests.data_recipes.test_published_sets import made


def test_omniglot_of_other_drawings(tmp_path: Path) -> None:
    build_omniglot(tmp_path)
    settings, said = made("omniglot", tmp_path / "d.h5", omniglot=tmp_path, number=20)
    assert settings["content"] == "not OMNIGLOT as published"
    assert "it has 24 drawings, expected 32,460" in said[0]


@pytest.mark.slow
def test_omniglots_files(tmp_path: Path) -> None:
    small = outside_data("omniglot")
    shutil.copy(small / "images_background_small1.zip", tmp_path / "small.zip")
    shutil.copy(small / "images_background_small1.zip", tmp_path / "images_background_small1.zip")
    assert read_characters(tmp_path / "images_background_small1.zip").content.is_published
    assert read_characters(tmp_path / "small.zip").content.is_published is False, "of no known number of drawings"


def test_pictures_of_other_numbers_are_not_berkeleys(tmp_path: Path) -> None:
    for part, number in (("train", 200), ("test", 100)):
        (tmp_path / part).mkdir()
        for n in range(number):
            (tmp_path / part / f"{n}{part}.png").touch()
    (tmp_path / "cover.png").touch()
    source = find_pictures(tmp_path)
    assert source.content is not None and source.content.settings == {"content": "not BSDS300 as published"}
    assert source.elsewhere == 1

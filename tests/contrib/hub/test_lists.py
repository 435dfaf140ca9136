"""A list from outside the package downloads nothing."""

from pathlib import Path

import pytest

from mmgen import data_recipes
from tests.experiments.test_foreign_lists import refused


@pytest.mark.parametrize(
    "settings",
    [
        'recipe = "hub"\nfiles = "owner/name"',
        'files = ["hub", "owner/name"]',
        'recipe = ["hub"]',
        'seed = 1\nfiles = "hub"',
    ],
)
def test_nothing_is_downloaded_that_a_list_names(settings: str, tmp_path: Path) -> None:
    said = refused(tmp_path, f'command = "make-data"\n{settings}')
    assert "makes data by hub, which downloads whatever" in said or "unknown recipe '['hub']'" in said
    fetching = [name for name in data_recipes.names() if data_recipes.get(name).fetches_anything]
    assert fetching == ["hub"]

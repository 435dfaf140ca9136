"""CdSprites+: what sentences say is what pictures show, at every level."""

from pathlib import Path

import numpy as np
import pytest

from mmgen.artifacts import Dataset
from mmgen.contrib.rivals.data_recipes.cdsprites import Cdsprites
from mmgen.core.errors import SettingsError
from mmgen.settings.config import validate

SENTENCES = ("heart", "small heart", "small red heart", "at top left small red heart",
             "at top left small red heart on black")  # fmt: skip


def made(level: int, folder: Path, **settings: object) -> Dataset:
    path = folder / f"{level}.h5"
    Cdsprites(level=level, number=60, **settings).make(path, workers=1).run()
    return Dataset.open(path)


@pytest.mark.parametrize("level", range(1, 6))
def test_a_level_names_one_attribute_more(level: int, tmp_path: Path) -> None:
    with made(level, tmp_path) as data:
        text, attributes = data.modalities["text"], data.modalities["attributes"]
        words = [text.vocabulary[code] for code in data.read_packed("text", np.array([0])).ravel()]
        codes = data.read_attributes("attributes", np.arange(60))
    assert attributes.names == ("shape", "size", "colour", "place", "ground")[:level]
    assert len(words) == len(SENTENCES[level - 1].split())
    for name, values, code in zip(attributes.names, attributes.values, codes[0], strict=True):
        assert values[code] in " ".join(words), name
    assert all(len({*column}) == len(values) for column, values in zip(codes.T, attributes.values, strict=True))


def test_pictures_show_what_is_said(tmp_path: Path) -> None:
    """Colour, place, size and ground are measured from the pixels, not read from the file."""
    with made(5, tmp_path) as data:
        attributes = data.modalities["attributes"]
        codes = data.read_attributes("attributes", np.arange(60))
        images = data.read_image("image", np.arange(60)).astype(float)
    grounds, areas = {"white": 255.0, "black": 0.0}, {"large": [], "small": []}
    paints: dict[str, set[tuple[int, ...]]] = {}
    for picture, row in zip(images, codes, strict=True):
        words = zip(attributes.names, attributes.values, row, strict=True)
        said = {name: values[code] for name, values, code in words}
        assert (picture[:, 0, 0] == grounds[said["ground"]]).all()
        covered = (picture != grounds[said["ground"]]).any(0)
        down, across = np.nonzero(covered)
        vertical, horizontal = said["place"].split()
        assert (down.mean() < 32) == (vertical == "top") and (across.mean() < 32) == (horizontal == "left")
        areas[said["size"]].append(covered.sum())
        colours, counts = np.unique(picture[:, covered], axis=1, return_counts=True)
        paints.setdefault(said["colour"], set()).add(tuple(colours[:, counts.argmax()].astype(int)))
    assert min(areas["large"]) > 1.4 * max(areas["small"])
    assert all(len(found) == 1 for found in paints.values()) and len(set.union(*paints.values())) == 5


def test_a_level_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match="level"):
        validate(Cdsprites, {"level": 6})

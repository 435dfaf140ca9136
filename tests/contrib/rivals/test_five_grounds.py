"""Five grounds: pictures are crops inverted under digits; no digit and no pixel of a ground is in two parts."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import DataError, SettingsError
from mmgen.data_recipes._sources import read_digits
from mmgen.settings.config import validate


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Three pictures of different sizes whose pixels are all random."""
    folder, rng = tmp_path_factory.mktemp("grounds"), np.random.default_rng(0)
    for name, (width, height) in {"a": (300, 200), "b": (150, 250), "c": (260, 130)}.items():
        Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(folder / f"{name}.png")
    return tuple(str(folder / f"{name}.png") for name in "abc")


def make(path: Path, grounds: tuple[str, ...], **settings: object) -> Dataset:
    values = {"number": 600, "source": "digits", "grounds": grounds, **settings}
    validate(data_recipes.get("five-grounds"), values).make(path, workers=1).run()
    return Dataset.open(path)


def pixels(name: str) -> np.ndarray:
    return np.asarray(Image.open(name)).transpose(2, 0, 1).astype(int)


@pytest.fixture(scope="module")
def dataset(grounds: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return make(tmp_path_factory.mktemp("five") / "d.h5", grounds)


def test_a_picture_is_a_crop_inverted_under_a_digit(dataset: Dataset, grounds: tuple[str, ...]) -> None:
    source, x, y = (dataset.read_factor(name) for name in ("source", "crop_x", "crop_y"))
    digits = read_digits("digits", None)
    for view, name in enumerate(grounds):
        ground = pixels(name)
        for row, picture in enumerate(dataset.read_image(f"m{view}", slice(0, 100)).astype(int)):
            crop = ground[:, y[row, view] :, x[row, view] :][:, :28, :28]
            ink = digits.images[source[row, view]]
            assert (picture[:, ink == 0] == crop[:, ink == 0]).all()
            assert (picture[:, ink == 255] == 255 - crop[:, ink == 255]).all()
            assert (np.abs(picture - (crop + ink / 255 * (255 - 2 * crop))) <= 0.5001).all()


def test_modalities_show_different_pictures_of_one_digit(dataset: Dataset) -> None:
    source, codes = dataset.read_factor("source"), dataset.read_attributes("attributes", slice(None))
    assert (read_digits("digits", None).labels[source] == codes).all()
    assert all(len({*row}) == 3 for row in source.tolist())
    assert len(np.unique(codes)) == 10


@pytest.mark.parametrize("quadrants", [False, True])
def test_no_digit_and_no_pixel_of_a_ground_is_in_two_parts(
    quadrants: bool, grounds: tuple[str, ...], tmp_path: Path
) -> None:
    """Sources are divided before they are paired: also crops that overlap are of one part."""
    size = 64 if quadrants else 28
    bigger = []
    for number, name in enumerate(grounds):
        bigger.append(str(tmp_path / f"{number}.png"))
        Image.open(name).resize((400, 300)).save(bigger[-1])
    with make(tmp_path / "d.h5", tuple(bigger), quadrants=quadrants, size=size, number=200) as dataset:
        source, x, y = (dataset.read_factor(name) for name in ("source", "crop_x", "crop_y"))
        rows = [dataset.split("iid", part) for part in PARTS]
        assert sum(map(len, rows)) == 200 and all(len(some) for some in rows)
        digits = [{*source[some].flat} for some in rows]
        assert not (digits[0] & digits[1] or digits[0] & digits[2] or digits[1] & digits[2])
        for view in range(3):
            used = np.zeros((3, 300, 400), bool)
            for code, some in enumerate(rows):
                for row in some:
                    used[code, y[row, view] :, x[row, view] :][:size, :size] = True
            assert used.sum(0).max() == 1 and used.any((1, 2)).all()


def test_the_digit_is_in_its_quadrant(grounds: tuple[str, ...], tmp_path: Path) -> None:
    bigger = []
    for number, name in enumerate(grounds[:2]):
        bigger.append(str(tmp_path / f"{number}.png"))
        Image.open(name).resize((400, 300)).save(bigger[-1])
    with make(tmp_path / "d.h5", tuple(bigger), quadrants=True, size=64, number=60) as dataset:
        info = dataset.attributes["attributes"]
        assert (info.names, info.values[1]) == (
            ("digit", "quadrant"), ("top-left", "top-right", "bottom-left", "bottom-right"),
        )  # fmt: skip
        quadrant = dataset.read_attributes("attributes", slice(None))[:, 1]
        assert {*quadrant} == {0, 1, 2, 3}
        x, y = (dataset.read_factor(f"crop_{axis}") for axis in "xy")
        for view, name in enumerate(bigger):
            ground = pixels(name)
            for row, picture in enumerate(dataset.read_image(f"m{view}", slice(None))):
                changed = picture != ground[:, y[row, view] :, x[row, view] :][:, :64, :64]
                parts = changed.any(0).reshape(2, 32, 2, 32).any((1, 3)).ravel()
                assert parts.tolist() == [number == quadrant[row] for number in range(4)]


def test_the_file_says_whose_pictures_its_grounds_are(grounds: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    with make(tmp_path / "d.h5", ("chelsea", grounds[0])) as dataset:
        settings = dataset.header.settings
        assert settings["grounds"] == ["chelsea", "a.png"]
        assert settings["licences"] == ["Stefan van der Walt; CC0", "the user's own"]
        assert str(tmp_path.parent) not in str(settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"quadrants": True}, "quadrants got size 28, expected 64; use --size 64"),
        ({"size": 40}, "setting 'size' got 40, expected 28, 32 or 64"),
        ({"grounds": ["chelsea"]}, "grounds"),
        (
            {"grounds": ["rocket", "stonehenge"]},
            "cannot read the ground stonehenge: .*; name a picture, or one of chelsea",
        ),
        (
            {"size": 64},
            "the ground b.png got 150 x 250 pixels, .* such as 288 x 96; use a larger picture, or a smaller",
        ),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(
    settings: dict[str, object], said: str, grounds: tuple[str, ...], tmp_path: Path
) -> None:
    if "grounds" in settings:
        pytest.importorskip("skimage")
    with pytest.raises((DataError, SettingsError), match=said):
        make(tmp_path / "d.h5", **{"grounds": grounds, **settings})  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_too_few_digits_of_a_kind_are_refused(small_mnist: Path, grounds: tuple[str, ...], tmp_path: Path) -> None:
    said = "the source digits got 1 of a kind in the val part, expected at least 3, one for each modality"
    with pytest.raises(DataError, match=said):
        make(tmp_path / "d.h5", grounds, source="mnist", mnist=small_mnist)
    assert not list(tmp_path.iterdir())

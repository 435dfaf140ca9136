"""dSprites: drawn pictures against published ones, every combination once, splits, and archives that are not it."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import DataError
from mmgen.data_recipes import dsprites
from mmgen.data_recipes.dsprites import POSITIONS, SHAPES, Dsprites, SpriteArchive, render_sprites

REFERENCE = Path(os.environ.get("MMGEN_TEST_DATA", "../shared/data")) / "dsprites-reference" / "gif_frames.npz"
FACTORS = ("shape", "scale", "orientation", "x", "y")


def picture(shape: int, scale: int, orientation: int, x: int, y: int) -> np.ndarray:
    return np.unpackbits(render_sprites(shape, scale, orientation)[32 * x + y], axis=-1)


@pytest.mark.skipif(not REFERENCE.exists(), reason=f"{REFERENCE} is not here")
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_published_frames(every: int) -> None:
    """The mean of 320 frames is 0.81 of 4,096 pixels, the worst 5."""
    with np.load(REFERENCE) as frames:
        images, codes = frames["images"][::every], frames["latent_classes"][::every].astype(int)
    different = np.array([(picture(*code) != image).sum() for code, image in zip(codes, images, strict=True)])
    by_shape = [different[codes[:, 0] == number].mean() for number in range(3)]
    assert len(different) == 320 // every
    assert different.max() <= 5
    assert by_shape[0] <= 0.2
    assert by_shape[1] <= 1.4
    assert by_shape[2] <= 1


def test_shapes_by_hand() -> None:
    """A square of side 19.2 about (16, 16) holds the centres of 20 x 20 pixels; areas are those of the shapes."""
    square = picture(0, 5, 0, 0, 0)
    assert square.sum() == 400
    assert square[6:26, 6:26].all()
    for number, area in ((0, 19.2**2), (1, np.pi * 12.8 * 7.2)):
        drawn = np.unpackbits(render_sprites(number, 5, 3), axis=-1).reshape(POSITIONS, -1).sum(1)
        assert drawn.mean() == pytest.approx(area, rel=0.005)
    heart = picture(2, 5, 0, 0, 16)
    assert np.array_equal(heart[:, :32], heart[:, 31::-1]), "upright hearts about column 16 are symmetric"
    assert heart[:32].sum() > 0


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_place_angle_and_ink(shape: int) -> None:
    ends = [picture(shape, 5, 0, x, y) for x, y in ((0, 0), (31, 0), (0, 31))]
    rows, columns = np.nonzero(ends[0])
    assert columns.mean() == pytest.approx(np.nonzero(ends[1])[1].mean() - 32)
    assert rows.mean() == pytest.approx(np.nonzero(ends[2])[0].mean() - 32)
    first, last = render_sprites(shape, 2, 0), render_sprites(shape, 2, 39)
    assert np.array_equal(first, last), "both ends of the orientations are one angle"
    assert not np.array_equal(first, render_sprites(shape, 2, 38))
    rows, columns = np.nonzero(np.unpackbits(render_sprites(shape, 5, 5), axis=-1).any(0))
    assert (rows.min(), columns.min()) >= (2, 2)
    assert max(rows.max(), columns.max()) <= 61


def test_turning_is_counter_clockwise() -> None:
    """A quarter of a turn or so brings the point of the heart from the bottom to the right."""
    upright, turned = picture(2, 5, 0, 16, 16), picture(2, 5, 10, 16, 16)
    assert upright[40, 32]
    assert not upright[25, 32], "the notch is at the top"
    assert turned[32, 40]
    assert not turned[32, 25]


def made(path: Path, **settings: object) -> Dataset:
    return Dataset.open(Dsprites(**settings).make(path, seed=0, workers=1, chunk=2048).run())


def test_numbered_choice(tmp_path: Path) -> None:
    with made(tmp_path / "d.h5", number=24, orientations=39) as dataset:
        codes = np.stack([dataset.read_factor(name) for name in FACTORS], 1)
        images = dataset.read_image("image")
        assert dataset.header.settings["pictures"] == "drawn"
        assert np.array_equal(dataset.read_attributes("attributes"), codes[:, :2])
        assert codes[:, 2].max() < 39
        assert len(np.unique(codes, axis=0)) == 24
        for code, image in zip(codes[::6], images[::6], strict=True):
            assert np.array_equal(image[0], picture(*map(int, code)))


@pytest.mark.slow
def test_all_of_them(tmp_path: Path) -> None:
    """Each combination once, y fastest; both ends of the orientations lie in the same part."""
    with made(tmp_path / "d.h5") as dataset:
        assert dataset.size == 737_280
        codes = np.stack([dataset.read_factor(name) for name in FACTORS], 1)
        assert np.array_equal(np.ravel_multi_index(tuple(codes.T), (3, 6, 40, 32, 32)), np.arange(737_280))
        part = np.empty(737_280, int)
        for number, name in enumerate(PARTS):
            part[dataset.split("iid", name)] = number
        by_angle = part.reshape(18, 40, 1024)
        assert np.array_equal(by_angle[:, 0], by_angle[:, 39])
        assert np.bincount(part)[0] == pytest.approx(0.85 * 737_280, rel=0.01)
        ink = sum(dataset.read_image("image", slice(row, row + 2048)).mean() for row in range(0, 737_280, 2048))
        radii = dsprites._HEART_RADII
        heart = (radii[:-1] * radii[1:]).sum() * np.sin(np.pi / 18)  # both halves of the polygon
        areas = 19.2**2, np.pi * 12.8 * 7.2, heart
        assert ink / 360 == pytest.approx(np.square(dsprites.SCALES).mean() * np.mean(areas) / 4096, rel=0.002)
    assert (tmp_path / "d.h5").stat().st_size < 8 * 2**20


def write_archive(path: Path, pictures: np.ndarray, name: str = "imgs.npy") -> Path:
    stored = io.BytesIO()
    np.save(stored, pictures)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(name, stored.getvalue())
        archive.writestr("metadata.npy", b"cos\nsystem\n(S'false'\ntR.")  # never looked at
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Archives of three sprites only."""
    monkeypatch.setattr(dsprites, "_PICTURES", 3 * POSITIONS)
    columns = np.random.default_rng(0).integers(0, 2, (3 * POSITIONS, 1, 64), dtype=np.uint8)
    return np.tile(columns, (1, 64, 1))  # no two alike, and soon packed


def test_archive_is_read_sprite_by_sprite(small: np.ndarray, tmp_path: Path) -> None:
    archive = SpriteArchive(write_archive(tmp_path / "a.npz", small))
    found = list(archive.read_pictures([0, 2]))
    packed = np.packbits(small.reshape(3, POSITIONS, -1), axis=-1)
    assert len(found) == 2
    assert np.array_equal(found[0], packed[0])
    assert np.array_equal(found[1], packed[2])


def test_dataset_of_an_archive(small: np.ndarray, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "a.npz", small)
    recipe = Dsprites(dsprites=archive, number=20)
    recipe._select_combinations = lambda seed: np.array([5, 9, 1024 + 31, 3 * 1024 - 1])  # type: ignore[method-assign]  # of three sprites
    with Dataset.open(recipe.make(tmp_path / "d.h5", seed=0, workers=1).run()) as dataset:
        assert dataset.header.settings["pictures"] == "published"
        assert str(tmp_path) not in str(dataset.header.settings)
        assert np.array_equal(dataset.read_image("image")[:, 0], small[[5, 9, 1024 + 31, 3 * 1024 - 1]])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda images: images[:-1], "has shape (3071, 64, 64)"),
        (lambda images: images.astype(np.int64), "an array of int64, expected uint8"),
        (lambda images: np.asfortranarray(images), "in Fortran order"),
        (lambda images: images.reshape(3, -1), "has shape (3, 4194304)"),
    ],
)
def test_other_arrays(change: object, said: str, small: np.ndarray, tmp_path: Path) -> None:
    path = write_archive(tmp_path / "a.npz", change(np.zeros_like(small)))  # type: ignore[operator]  # a parameter; zeros, for only shape, type and order are looked at
    with pytest.raises(DataError, match=r"give the published dsprites_ndarray") as error:
        SpriteArchive(path)
    assert said in str(error.value)


def test_other_files(small: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("no zip")
    with pytest.raises(DataError, match="it is no zip"):
        SpriteArchive(tmp_path / "text.npz")
    with pytest.raises(DataError, match=r"has no imgs\.npy"):
        SpriteArchive(write_archive(tmp_path / "b.npz", small, "other.npy"))
    with pytest.raises(DataError, match="cannot read"):
        SpriteArchive(tmp_path / "missing.npz")


def test_damage_is_found_while_reading(small: np.ndarray, tmp_path: Path) -> None:
    small[2000, 0, 0] = 2
    with pytest.raises(DataError, match="a pixel is 2, expected 0 or 1"):
        list(SpriteArchive(write_archive(tmp_path / "a.npz", small)).read_pictures([1]))
    small[2000, 0, 0] = 0
    path = write_archive(tmp_path / "c.npz", small)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x40
    path.write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        list(SpriteArchive(path).read_pictures([]))

"""Published files of digits: good ones are read exactly, malformed ones refused with the reason."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mmgen import data_recipes
from mmgen.artifacts import PARTS, Dataset
from mmgen.core.errors import DataError, SettingsError
from mmgen.core.notation import UNKNOWN
from mmgen.data_recipes._published import read_idx
from mmgen.settings.config import validate


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


@given(array=arrays(np.uint8, array_shapes(min_dims=1, max_dims=3, max_side=7)), packed=st.booleans())
def test_what_was_written_is_read(tmp_path_factory, array, packed):
    path = tmp_path_factory.mktemp("idx") / "file"
    data = idx_bytes(array)
    path.write_bytes(gzip.compress(data) if packed else data)
    assert np.array_equal(read_idx(path, array.ndim), array)


GOOD = idx_bytes(np.arange(24, dtype=np.uint8).reshape(2, 3, 4))


PACKED = gzip.compress(GOOD, mtime=0)


BEGINS, FITS = "unsigned bytes with 3 dimensions (it begins otherwise)", "bytes, which are not there, or there are more"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", BEGINS),
        (b"PK\x03\x04 a zip file", BEGINS),
        (b"<html><body>404</body></html>", "it is a web page instead of the file"),
        (GOOD[:10], BEGINS),
        (GOOD[:-1], FITS),
        (GOOD + b"\0", FITS),
        (b"\0\0\x0d\x03" + GOOD[4:], BEGINS),
        (idx_bytes(np.zeros(5, np.uint8)), BEGINS),
        (struct.pack(">4B3I", 0, 0, 8, 3, 2**31, 2**31, 4) + b"\0" * 8, "2147483648 x 2147483648 x 4 bytes, which are"),
        (struct.pack("<4B3I", 0, 0, 8, 3, 60_000, 28, 28) + b"\0" * 8, FITS),
        (PACKED[:-9], "damaged or truncated gzip"),
        (PACKED[:-8] + b"\xff" * 4 + PACKED[-4:], "damaged or truncated gzip"),
        (gzip.compress(GOOD[:-1], mtime=0), FITS),
    ],
)
def test_malformed_files_are_refused(tmp_path, data, complaint):
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        read_idx(path, 3)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(DataError, match="cannot read"):
            read_idx(path, 1)


SIZES = {"train": 20, "valid": 8, "test": 6}


@pytest.fixture
def amat(tmp_path):
    """A folder of three such files, and the pixels in them."""
    folder = tmp_path / "amat"
    folder.mkdir()
    generator = np.random.default_rng(0)
    pixels = {name: generator.integers(0, 2, (n, 784)) for name, n in SIZES.items()}
    for name, rows in pixels.items():
        np.savetxt(folder / f"binarized_mnist_{name}.amat", rows, fmt="%d")
    return folder, np.concatenate(list(pixels.values()))


def recipe(folder, **settings):
    return validate(data_recipes.get("binary-mnist"), {"amat": folder, **settings})


def test_pixels_and_parts_are_the_files_and_labels_unknown(amat, tmp_path):
    folder, pixels = amat
    identities = set()
    for seed, chunk in ((0, 2048), (0, 7)):
        path = tmp_path / f"{chunk}.h5"
        chosen = recipe(folder)
        assert chosen.setup_work() is None
        chosen.make(path, seed=seed, workers=1, chunk=chunk).run()
        with Dataset.open(path) as dataset:
            assert np.array_equal(dataset.read_image("image", slice(None)).reshape(34, 784), pixels)
            assert (dataset.read_attributes("attributes", slice(None)) == UNKNOWN).all()
            rows = [dataset.split("official", part).tolist() for part in PARTS]
            assert rows == [[*range(20)], [*range(20, 28)], [*range(28, 34)]]
            assert dataset.read_factor("source_part").tolist() == [0] * 20 + [2] * 8 + [1] * 6
            assert str(folder) not in str(dataset.header.settings)
            identities.add(dataset.header.content_id)
    assert len(identities) == 1


@pytest.mark.parametrize("ending", ["\r\n", " \n", "\n\n", ""])
def test_line_ends_do_not_matter(amat, tmp_path, ending):
    folder, pixels = amat
    path = folder / "binarized_mnist_test.amat"
    text = path.read_text()
    path.write_bytes((text.replace("\n", ending) if ending else text.rstrip("\n")).encode())
    digits = recipe(folder).read_sources()
    assert np.array_equal(digits.images.reshape(34, 784), pixels * 255)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda text: text.replace("1", "2", 1), "has '2' in line 1, expected lines of 784 numbers"),
        (lambda text: text.replace("\n", "\n0.5 ", 1), r"has '\.' in line 2"),
        (lambda text: text.replace("0 1", "01", 1), "a number of several digits"),
        (lambda text: text[: len(text) // 2 + 99], r"has 50 numbers in line 4"),
        (lambda text: text.replace("\n", " "), "has 4704 numbers in line 1"),
        (lambda text: "", "has 0 numbers in line 1"),
        (lambda text: "\n \n", "has 0 numbers in line 1"),
    ],
)
def test_other_files_are_refused(amat, tmp_path, spoil, complaint):
    folder, _ = amat
    path = folder / "binarized_mnist_test.amat"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(DataError, match=complaint) as caught:
        recipe(folder).make(tmp_path / "d.h5")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "d.h5").exists()


def test_missing_files_are_named(amat, tmp_path):
    folder, _ = amat
    (folder / "binarized_mnist_valid.amat").unlink()
    with pytest.raises(DataError, match=r"there is no binarized_mnist_valid\.amat in"):
        recipe(folder).read_sources()
    with pytest.raises(DataError, match="there is no folder"):
        recipe(tmp_path / "nowhere").read_sources()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"source": "digits"}, "leave it out with source"),
        ({"mnist": "x"}, "with source and mnist"),
        ({"size": 32}, "size"),
    ],
)
def test_settings_of_other_digits_are_refused_with_it(tmp_path, settings, complaint):
    with pytest.raises(SettingsError, match=complaint):
        recipe(tmp_path, **settings)

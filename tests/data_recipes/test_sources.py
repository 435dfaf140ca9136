"""Sources: what is read from the user's folder, and what is refused."""

import gzip
import io
import shutil
import struct
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mmgen.core.errors import DataError
from mmgen.data_recipes import _sources
from mmgen.data_recipes._published import read_npy_header
from mmgen.data_recipes._sources import fetch_digits, read_digits
from tests.data_recipes.conftest import write_idx

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def test_training_digits_come_first(small_mnist):
    digits = read_digits("mnist", small_mnist)
    assert len(digits) == 60
    assert digits.images.shape == (60, 28, 28)
    assert digits.part.tolist() == [0] * 48 + [1] * 12
    assert digits.labels[:12].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]


@pytest.mark.parametrize("dotted", [False, True])
def test_unpacked_files_and_dotted_names_give_the_same_digits(small_mnist, tmp_path, dotted):
    for name in FILES:
        plain = name.replace("-idx", ".idx") if dotted else name
        (tmp_path / plain).write_bytes(gzip.decompress((small_mnist / f"{name}.gz").read_bytes()))
    assert read_digits("mnist", tmp_path).sha256 == read_digits("mnist", small_mnist).sha256


def test_missing_folder_and_missing_file_are_named(small_mnist, tmp_path):
    with pytest.raises(DataError, match="there is no folder"):
        read_digits("mnist", tmp_path / "nowhere")
    for name in FILES[:3]:
        shutil.copy(small_mnist / f"{name}.gz", tmp_path)
    with pytest.raises(DataError, match="there is no t10k-labels-idx1"):
        read_digits("mnist", tmp_path)


def test_files_that_do_not_belong_together_are_refused(small_mnist, tmp_path):
    shutil.copytree(small_mnist, tmp_path, dirs_exist_ok=True)
    shutil.copy(small_mnist / "t10k-labels-idx1-ubyte.gz", tmp_path / "train-labels-idx1-ubyte.gz")
    with pytest.raises(DataError, match=r"48 images but .* 12 labels"):
        read_digits("mnist", tmp_path)
    shutil.copy(small_mnist / "train-labels-idx1-ubyte.gz", tmp_path / "train-images-idx3-ubyte.gz")
    with pytest.raises(DataError, match=r"with 3 dimensions .it begins otherwise"):
        read_digits("mnist", tmp_path)


@pytest.mark.parametrize("labels", [[], [0, 10]])
def test_labels_that_no_digit_has_are_refused(small_mnist, tmp_path, labels):
    shutil.copytree(small_mnist, tmp_path, dirs_exist_ok=True)
    write_idx(tmp_path / "t10k-images-idx3-ubyte.gz", np.zeros((len(labels), 28, 28), np.uint8))
    write_idx(tmp_path / "t10k-labels-idx1-ubyte.gz", np.array(labels, np.uint8))
    with pytest.raises(DataError, match="must hold at least one label and none above 9"):
        read_digits("mnist", tmp_path)


def test_bundled_digits_are_scikit_learns_enlarged():
    digits = read_digits("digits", None)
    bunch = load_digits()
    assert len(digits) == 1797
    assert np.array_equal(digits.labels, bunch.target)
    assert not digits.part.any()
    # Enlarging keeps the mean brightness: 16 is white.
    brightness = digits.images.mean(axis=(1, 2)) / 255
    assert np.allclose(brightness, bunch.images.mean(axis=(1, 2)) / 16, atol=0.03)
    # At the centres of the 8 x 8 fields the enlarged image has nearly the original's values.
    centres = ((np.arange(8) + 0.5) * 3.5).astype(int)
    sampled = digits.images[:, centres][:, :, centres]
    assert np.corrcoef(sampled.ravel(), bunch.images.ravel())[0, 1] > 0.97


def test_nothing_is_fetched_where_a_folder_is_named_or_none_is_needed(tmp_path):
    assert fetch_digits("digits", None) is None
    assert fetch_digits("mnist", tmp_path) is None


def test_an_empty_cache_is_filled_first(monkeypatch, tmp_path):
    monkeypatch.setattr(_sources, "cache_folder", lambda name: tmp_path / name)
    work = fetch_digits("mnist", None)
    assert work is not None
    assert work.total == 9912422 + 28881 + 1648877 + 4542
    assert not (tmp_path / "mnist").exists()


def test_another_known_collection_is_refused(monkeypatch, small_mnist):
    known = _sources._COLLECTIONS
    content = read_digits("mnist", small_mnist).sha256
    monkeypatch.setitem(known, "mnist", replace(known["mnist"], content=content))
    assert len(read_digits("mnist", small_mnist)) == 60
    with pytest.raises(DataError, match="holds MNIST, expected Fashion-MNIST: name another folder"):
        read_digits("fashion-mnist", small_mnist)


def test_the_original_files_are_recognised(mnist_folder):
    digits = read_digits("mnist", mnist_folder)
    assert len(digits) == 70_000
    assert int((digits.part == 0).sum()) == 60_000
    assert digits.sha256 == _sources._COLLECTIONS["mnist"].content
    assert digits.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_a_header_of_an_array_that_ends_too_soon_is_refused_in_a_sentence() -> None:
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3,"
    with pytest.raises(ValueError, match="a damaged header"):
        read_npy_header(io.BytesIO(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text))

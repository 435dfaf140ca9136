"""IDX files: good ones are read exactly, malformed ones refused with the reason."""

import gzip
import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mmgen.core.errors import DataError
from mmgen.data_recipes._published import read_idx


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

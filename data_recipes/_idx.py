"""Reader for IDX files, the format that MNIST is published in; gzipped or not.

Big-endian: two zero bytes, a type code (8: unsigned byte), the number of dimensions, each as uint32, the data.
"""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmgen.errors import DataError

__all__ = ["read_idx"]

_UNSIGNED_BYTE = 8


def _contents(path: Path) -> bytes:
    """The file's bytes, unpacked if they start like gzip's, whatever the file is called."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path and its permissions") from None
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} is a damaged or truncated gzip file ({error}): download it again") from None


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array in an IDX file of unsigned bytes.

    Args:
        path: The file.
        dimensions: How many dimensions it must have (images 3, labels 1).

    Raises:
        DataError: Unreadable, not IDX, of another type or dimensionality, shorter or longer than its header says.
    """
    data = _contents(path)
    header = 4 + 4 * dimensions
    expected = f"an IDX file of unsigned bytes with {dimensions} dimension{'s' if dimensions > 1 else ''}"
    if len(data) < 4 or data[:2] != b"\0\0":
        raise DataError(f"{path} is no IDX file (it starts with {data[:4].hex() or 'nothing'}), expected {expected}")
    if data[2] != _UNSIGNED_BYTE or data[3] != dimensions:
        raise DataError(f"{path} has type code {data[2]} and {data[3]} dimensions, expected {expected}")
    if len(data) < header:
        raise DataError(f"{path} ends within its header, after {len(data)} bytes: download it again")
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    wanted = header + math.prod(shape)
    if len(data) != wanted:
        what = "truncated" if len(data) < wanted else "too long"
        raise DataError(
            f"{path} is {what}: its header says {' x '.join(map(str, shape))}, that is {wanted} bytes, "
            f"but there are {len(data)}; download it again"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)

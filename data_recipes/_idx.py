"""Reader for IDX files, the format that MNIST is published in; gzipped or not.

Big-endian: two zero bytes, a type code (8: unsigned byte), the number of dimensions, each as uint32, the data.
"""

import math
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, open_unpacked, read_unpacked

__all__ = ["read_idx"]

_UNSIGNED_BYTE = 8
_MOST_BYTES = 2**30  # the largest of the MNIST kind, EMNIST by class, has 640 MB


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an IDX file of unsigned bytes, gzipped or not, as an array with this number of dimensions.

    Raises:
        DataError: The file is missing, of another type or shape, truncated, or too long.
    """
    expected = f"an IDX file of unsigned bytes with {dimensions} dimension{'s' if dimensions > 1 else ''}"
    length = 4 + 4 * dimensions
    try:
        with open_unpacked(path) as file:
            header = read_unpacked(file, length)
            if len(header) < 4 or header[:2] != b"\0\0":
                start = header[:4].hex() or "nothing"
                raise DataError(f"{path} is no IDX file (it starts with {start}), expected {expected}")
            if header[2] != _UNSIGNED_BYTE or header[3] != dimensions:
                raise DataError(f"{path} has type code {header[2]} and {header[3]} dimensions, expected {expected}")
            if len(header) < length:
                raise DataError(f"{path} ends within its header, after {len(header)} bytes: download it again")
            shape = struct.unpack(f">{dimensions}I", header[4:])
            size = math.prod(shape)
            claim = f"its header says {' x '.join(map(str, shape))}, that is {length + size:,} bytes"
            if size > _MOST_BYTES and math.prod(struct.unpack(f"<{dimensions}I", header[4:])) <= _MOST_BYTES:
                raise DataError(
                    f"{path} has its numbers in little-endian order, expected big-endian; download it again"
                )
            if size > _MOST_BYTES:
                raise DataError(f"{path} is too large: {claim}, expected at most {_MOST_BYTES:,}")
            data = read_unpacked(file, size)
            if len(data) < size:
                raise DataError(
                    f"{path} is truncated: {claim}, but there are {length + len(data):,}; download it again"
                )
            if read_unpacked(file, 1):
                raise DataError(f"{path} is too long: {claim}, but there are more; download it again")
    except CannotReadError as error:
        raise DataError(f"cannot read {path}: {error}; check the path, or download it again") from None
    return np.frombuffer(data, np.uint8).reshape(shape)

"""Reader for the fixed binarisation of MNIST by Larochelle and Murray: three text files of zeros and ones.

References:
    The Neural Autoregressive Distribution Estimator (Larochelle, Murray, AISTATS 2011),
    https://proceedings.mlr.press/v15/larochelle11a.html
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.notation import UNKNOWN
from mmgen.core.plain_text import NotTextError, decode_text
from mmgen.data_recipes._published import compare_sha256
from mmgen.data_recipes._sources import DIGIT_SIZE, Digits

__all__ = ["read_amat"]

_PARTS = {"train": 0, "valid": 2, "test": 1}
"""Files in the order of their rows, and the codes of :attr:`Digits.part`."""

_PIXELS = DIGIT_SIZE**2
_CONTENT = "f64e3ff9ea71a42a1e78c743433fc6eef3382a45f73cd9f4a64bace7367c4d9b"
"""Hash of the published digits, as :attr:`Digits.sha256` has it."""
_MOST_BYTES = 2**27  # the largest of the three has 78.4 MB


def _read_images(path: Path) -> NDArray[np.uint8]:
    """Read images [n, 28, 28] of 0 and 255 from a file with one image a line, 784 numbers 0 or 1 between blanks."""
    try:
        text = decode_text(read_file(path, _MOST_BYTES))
    except (CannotReadError, NotTextError) as error:
        raise DataError(f"cannot read {path}: {error}; check the path, or download it again") from None
    data = np.frombuffer(text.encode(), np.uint8)
    number = (data == ord("0")) | (data == ord("1"))
    blank = np.isin(data, np.frombuffer(b" \t\r\n", np.uint8))
    expected = f"lines of {_PIXELS} numbers 0 or 1 with a blank between them"
    unexpected = np.flatnonzero(~(number | blank))
    if len(unexpected):
        line = int((data[: unexpected[0]] == ord("\n")).sum()) + 1
        raise DataError(f"{path} has '{chr(data[unexpected[0]])}' in line {line}, expected {expected}")
    if (number[1:] & number[:-1]).any():
        raise DataError(f"{path} has a number of several digits, expected {expected}")
    starts = np.append(0, np.flatnonzero(data == ord("\n")) + 1)
    starts = starts[starts < len(data)]
    counts = np.add.reduceat(number, starts, dtype=np.int64) if len(starts) else np.zeros(1, np.int64)
    wrong = (counts != _PIXELS) & ((counts != 0) | (not counts.any()))  # empty lines are nothing wrong, unless all are
    if wrong.any():
        line = int(wrong.argmax())
        raise DataError(f"{path} has {counts[line]} numbers in line {line + 1}, expected {expected}")
    return ((data[number] - ord("0")) * np.uint8(255)).reshape(-1, DIGIT_SIZE, DIGIT_SIZE)


def read_amat(folder: Path) -> Digits:
    """Read the digits of ``binarized_mnist_{train,valid,test}.amat`` in a folder, black or white, without labels.

    Raises:
        DataError: A file is missing or malformed.
    """
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}: expected one with binarized_mnist_train.amat, ..valid, ..test")
    images, parts = [], []
    for name, code in _PARTS.items():
        path = folder / f"binarized_mnist_{name}.amat"
        if not path.is_file():
            raise DataError(f"there is no {path.name} in {folder}: expected all three files in one folder")
        some = _read_images(path)
        images.append(some)
        parts.append(np.full(len(some), code, np.uint8))
    part = np.concatenate(parts)
    digits = Digits(np.concatenate(images), np.full(len(part), UNKNOWN, np.uint8), part)
    title = "the binarised MNIST of Larochelle and Murray"
    return replace(digits, content=compare_sha256(title, folder, digits.sha256, _CONTENT))

"""A small folder of files in MNIST's format, made of simple shapes."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest


def write_idx(path: Path, array: np.ndarray) -> None:
    data = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


@pytest.fixture(scope="session")
def small_mnist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """48 "training" and 12 "test" digits: rectangles whose height tells the label."""
    folder = tmp_path_factory.mktemp("mnist")
    for prefix, n in (("train", 48), ("t10k", 12)):
        labels = (np.arange(n) % 10).astype(np.uint8)
        images = np.zeros((n, 28, 28), np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[5 : 14 + label, 9:19] = 255
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", labels)
    return folder

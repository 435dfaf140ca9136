"""Sources of digits: MNIST (the user's folder, the cache or the internet) or scikit-learn's.

Fashion-MNIST is published in the same four files, and read in the same way.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.notation import UNKNOWN
from mmgen.core.plain_text import NotTextError, decode_text
from mmgen.core.progress import Work
from mmgen.core.surroundings import cache_folder
from mmgen.data_recipes._published import (
    Files,
    SourceComparison,
    compare_sha256,
    download,
    is_complete,
    read_idx,
)

Source = Literal["mnist", "digits"]

CollectionName = Literal["mnist", "digits", "fashion-mnist"]
"""Every collection of small labelled pictures that can be read here."""

DIGIT_SIZE = 28
"""Height and width of a source digit in pixels."""


@dataclass(frozen=True)
class _Collection:
    """Title, files and hashes of pictures that are published as IDX files.

    Attributes:
        title: Its name.
        files: SHA-256 and size of the published files.
        mirrors: Where they are.
        content: :attr:`Digits.sha256` of what they hold.
    """

    title: str
    files: Files
    mirrors: Sequence[str]
    content: str


_COLLECTIONS = {
    "mnist": _Collection(
        "MNIST",
        {
            "train-images-idx3-ubyte.gz": (
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                9912422,
            ),
            "train-labels-idx1-ubyte.gz": ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28881),
            "t10k-images-idx3-ubyte.gz": ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1648877),
            "t10k-labels-idx1-ubyte.gz": ("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4542),
        },
        ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
        "e10378d1a17062469c9b5ca3cad0b5d3f975efaa45465e33edba640c0fcd5e60",
    ),
    "fashion-mnist": _Collection(
        "Fashion-MNIST",
        {
            "train-images-idx3-ubyte.gz": (
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                26421880,
            ),
            "train-labels-idx1-ubyte.gz": ("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29515),
            "t10k-images-idx3-ubyte.gz": ("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4422102),
            "t10k-labels-idx1-ubyte.gz": ("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5148),
        },
        (
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        ),
        "a6273e280201b88bb63ed1b0c3b68cf57f0971e2932af67b8ce9191dc9921c90",
    ),
}


@dataclass(frozen=True)
class Digits:
    """S handwritten digits, or other small pictures of ten kinds, with labels and parts.

    Attributes:
        images: uint8 [S, 28, 28], ink bright on black.
        labels: uint8 [S], 0 to 9; 255 where the publisher tells none.
        part: uint8 [S], 0 for the publisher's training digits, 1 for the test digits, 2 for validation digits (which
            only a few publishers have).
        content: Whether they are the published ones; None for those that come with a library.
    """

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    part: NDArray[np.uint8]
    content: SourceComparison | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def sha256(self) -> str:
        """Hash of images, labels and parts: the same for gzipped and plain files."""
        digest = hashlib.sha256()
        for array in (self.images, self.labels, self.part):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


def _find_file(folder: Path, name: str, title: str) -> Path:
    """Find a published file in the folder, gzipped or not, or with a dot in its name from some unpackers."""
    dotted = name.replace("-idx", ".idx")
    for candidate in (f"{name}.gz", name, f"{dotted}.gz", dotted):
        if (folder / candidate).is_file():
            return folder / candidate
    raise DataError(
        f"there is no {name}.gz (nor {name}) in {folder}: expected {title}'s four IDX files there; name another "
        "folder, or leave --mnist out to download them"
    )


def _read_idx_files(folder: Path, collection: _Collection) -> Digits:
    """Read the 60,000 and 10,000 pictures (or as many as the files hold) in a folder of IDX files."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}: expected one with {collection.title}'s four IDX files")
    images, labels, parts = [], [], []
    for part, prefix in enumerate(("train", "t10k")):
        image_file = _find_file(folder, f"{prefix}-images-idx3-ubyte", collection.title)
        label_file = _find_file(folder, f"{prefix}-labels-idx1-ubyte", collection.title)
        file_images, file_labels = read_idx(image_file, 3), read_idx(label_file, 1)
        if file_images.shape[1:] != (DIGIT_SIZE, DIGIT_SIZE):
            raise DataError(
                f"{image_file} holds images of {file_images.shape[1]} x {file_images.shape[2]} pixels, expected "
                "28 x 28; get the published files"
            )
        if len(file_images) != len(file_labels):
            raise DataError(
                f"{image_file} holds {len(file_images)} images but {label_file} {len(file_labels)} labels; "
                "get the published files"
            )
        if len(file_images) == 0 or file_labels.max() > 9:
            raise DataError(f"{label_file} must hold at least one label and none above 9: get the published file")
        images.append(file_images)
        labels.append(file_labels)
        parts.append(np.full(len(file_images), part, np.uint8))
    digits = Digits(np.concatenate(images), np.concatenate(labels), np.concatenate(parts))
    for other in _COLLECTIONS.values():
        if other is not collection and other.content == digits.sha256:
            raise DataError(f"{folder} holds {other.title}, expected {collection.title}: name another folder")
    return replace(digits, content=compare_sha256(collection.title, folder, digits.sha256, collection.content))


def _read_bundled() -> Digits:
    """Read the 1,797 handwritten digits of scikit-learn (E. Alpaydin, C. Kaynak, UCI 1998): no download."""
    # They are 8 x 8 with 17 levels of grey and fill their box; 0 .. 16 becomes 0 .. 255, and bicubic interpolation
    # brings them to 28 x 28. So their ink is larger than MNIST's, which fills 20 x 20 of its 28 x 28.
    from PIL import Image
    from sklearn.datasets import load_digits

    bunch = load_digits()
    small = np.rint(bunch.images * (255 / 16)).astype(np.uint8)  # [S, 8, 8]
    size = (DIGIT_SIZE, DIGIT_SIZE)
    images = np.stack([np.asarray(Image.fromarray(one).resize(size, Image.Resampling.BICUBIC)) for one in small])
    return Digits(images, bunch.target.astype(np.uint8), np.zeros(len(images), np.uint8))


def check_digit_source(source: Source, mnist: Path | None) -> None:
    """Refuse a folder of MNIST together with the digits of scikit-learn; raise ValueError."""
    if mnist is not None and source == "digits":
        raise ValueError(f"--source got digits, but --mnist names a folder of MNIST, {mnist}; give one of them")


def fetch_digits(source: CollectionName, folder: Path | None) -> Work[Path] | None:
    """Return work that downloads the files for :func:`read_digits`; None if no file is missing."""
    if source == "digits" or folder is not None:
        return None
    collection, cache = _COLLECTIONS[source], cache_folder(source)
    if is_complete(cache, collection.files):
        return None
    names = ", ".join(collection.files)
    manual = f"get {collection.title}'s four files {names} some other way and name their folder with --mnist"
    return download(cache, collection.files, collection.mirrors, manual)


def read_digits(source: CollectionName, folder: Path | None) -> Digits:
    """Read the pictures of a collection.

    Args:
        source: Name of the collection.
        folder: The user's folder of IDX files; None for the cache.

    Raises:
        DataError: Files are missing, malformed, or of another collection.
    """
    if source == "digits":
        return _read_bundled()
    return _read_idx_files(folder or cache_folder(source), _COLLECTIONS[source])


_PARTS = {"train": 0, "valid": 2, "test": 1}
"""Files in the order of their rows, and the codes of :attr:`Digits.part`."""
_PIXELS = DIGIT_SIZE**2
_CONTENT = "f64e3ff9ea71a42a1e78c743433fc6eef3382a45f73cd9f4a64bace7367c4d9b"
"""Hash of the published digits, as :attr:`Digits.sha256` has it."""
_MOST_AMAT_BYTES = 2**27  # the largest of the three has 78.4 MB


def _read_images(path: Path) -> NDArray[np.uint8]:
    """Read images [n, 28, 28] of 0 and 255 from a file with one image a line, 784 numbers 0 or 1 between blanks."""
    try:
        text = decode_text(read_file(path, _MOST_AMAT_BYTES))
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

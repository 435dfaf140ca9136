"""What a dataset file says about its modalities and factors: shapes, names, vocabularies."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts.hdf5 import read_text
from mmgen.artifacts.header import parse_json, printable
from mmgen.errors import ArtifactError
from mmgen.notation import UNKNOWN

__all__ = [
    "AttributesInfo",
    "FactorInfo",
    "ImageInfo",
    "TextInfo",
    "attributes_info",
    "image_info",
    "text_info",
    "text_vocabulary",
]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,99}\Z")
LAYOUTS = ("bits", "bytes", "probabilities")
_MAX_ATTRIBUTES = 4096
MAX_WORDS = 65535  # codes are uint16, and one of them is the padding


@dataclass(frozen=True)
class ImageInfo:
    """An image modality.

    Attributes:
        name: Modality name.
        shape: (C, H, W).
        layout: "bits" (0 or 1, eight pixels to a byte), "bytes" (0 to 255), or "probabilities": bytes of which each is
            255 times the probability that its pixel is white. Such pixels are drawn anew at every sight.
    """

    name: str
    shape: tuple[int, int, int]
    layout: str

    @property
    def scale(self) -> int:
        """The stored value that stands for full intensity, or for certain white: 1 for bits, else 255."""
        return 1 if self.layout == "bits" else 255

    @property
    def pixels(self) -> int:
        """C * H * W."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of one row on disk: (ceil(C * H * W / 8),) for bits, else (C, H, W)."""
        return ((self.pixels + 7) // 8,) if self.layout == "bits" else self.shape

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """Rows as stored to uint8 [n, C, H, W] with values 0 to ``scale``."""
        if self.layout == "bits":
            stored = np.unpackbits(stored, axis=1, count=self.pixels)
        return stored.reshape(len(stored), *self.shape)

    def pack(self, images: np.ndarray) -> np.ndarray:
        """uint8 [n, C, H, W] with values 0 to ``scale`` to rows as stored; the inverse of :meth:`unpack`."""
        return np.packbits(images.reshape(len(images), -1), axis=1) if self.layout == "bits" else images


@dataclass(frozen=True)
class AttributesInfo:
    """A modality of categorical attributes.

    Attributes:
        name: Modality name.
        names: Names of the A attributes.
        values: For each attribute the names of its values; a value's code is its position.
    """

    name: str
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """V of each attribute."""
        return tuple(len(values) for values in self.values)

    def valid(self, codes: np.ndarray) -> bool:
        """Whether all codes [n, A] are values of their attribute or unknown."""
        return bool(((codes < np.array(self.sizes)) | (codes == UNKNOWN)).all())


@dataclass(frozen=True)
class TextInfo:
    """A modality of sentences.

    Attributes:
        name: Modality name.
        vocabulary: The V words; a word's code is its position.
        length: T, tokens of every row; a shorter sentence is padded at its end.
        slots: For text of a fixed form, the attribute that each position spells (length T); () for free text.
    """

    name: str
    vocabulary: tuple[str, ...]
    length: int
    slots: tuple[str, ...] = ()

    @property
    def padding(self) -> int:
        """Code of "no word": V."""
        return len(self.vocabulary)

    def words(self, codes: np.ndarray) -> str:
        """One row of codes [T] as a sentence.

        Example:
            >>> import numpy as np
            >>> TextInfo("text", ("red", "cube"), 3).words(np.array([0, 1, 2], np.uint16))
            'red cube'
        """
        return " ".join(self.vocabulary[int(code)] for code in codes if code < self.padding)

    def valid(self, codes: np.ndarray) -> bool:
        """Whether all rows [n, T] hold words, and padding only after the last word."""
        padded = codes == self.padding
        return bool((codes <= self.padding).all() and (padded[:, :-1] <= padded[:, 1:]).all())


@dataclass(frozen=True)
class FactorInfo:
    """A generative factor: one number an example, or an array of one shape (a mask).

    Attributes:
        name: Factor name.
        dtype: Number type.
        unit: Its unit ("degree", "pixel"; "" for none).
        meaning: What it is, in words.
        shape: Axes of one example's value; () for a number.
    """

    name: str
    dtype: np.dtype
    unit: str
    meaning: str
    shape: tuple[int, ...] = ()


def distinct_texts(value: Any, least: int, most: int) -> bool:
    """Whether ``value`` is a list of ``least`` to ``most`` distinct strings."""
    texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return texts and len(set(value)) == len(value) and least <= len(value) <= most


def attributes_info(name: str, text_names: str, text_values: str, element: str) -> AttributesInfo:
    """Attribute names and vocabularies out of a file, checked."""
    names, values = parse_json(text_names, f"{element}@names"), parse_json(text_values, f"{element}@values")

    if not distinct_texts(names, 1, _MAX_ATTRIBUTES) or not isinstance(values, list) or len(values) != len(names):
        raise ArtifactError(f"{element} does not name its attributes and their values; make the file again")
    if not all(distinct_texts(vocabulary, 1, UNKNOWN) for vocabulary in values):
        raise ArtifactError(f"{element} has an attribute without 1 to {UNKNOWN} distinct values; make the file again")
    return AttributesInfo(name, tuple(names), tuple(tuple(vocabulary) for vocabulary in values))


def image_info(name: str, data: Any, path: Path) -> ImageInfo:
    element = f"{path}: {data.name}"
    shape, layout = parse_json(read_text(data, "shape", path), f"{element}@shape"), read_text(data, "layout", path)
    if not (isinstance(shape, list) and len(shape) == 3 and all(type(n) is int and 0 < n < 2**20 for n in shape)):
        raise ArtifactError(f"{element} has no shape [C, H, W]; make the file again")
    if layout not in LAYOUTS:
        raise ArtifactError(
            f"{element} has layout {printable(layout, 40)!r}, expected {', '.join(LAYOUTS)}; make the file again"
        )
    return ImageInfo(name, (shape[0], shape[1], shape[2]), layout)


def text_info(name: str, data: Any, path: Path) -> TextInfo:
    """Vocabulary and form of a text modality out of a file, checked."""
    length = data.shape[1] if len(data.shape or ()) == 2 else 0
    words, slots = read_text(data, "vocabulary", path), read_text(data, "slots", path)
    return text_vocabulary(name, words, slots, length, f"{path}: {data.name}")


def text_vocabulary(name: str, vocabulary: str, spelt: str, length: int, element: str) -> TextInfo:
    """Words and form of a text out of JSON of a file, checked."""
    words, slots = parse_json(vocabulary, f"{element}@vocabulary"), parse_json(spelt, f"{element}@slots")
    if not distinct_texts(words, 1, MAX_WORDS):
        raise ArtifactError(f"{element} has no vocabulary of 1 to {MAX_WORDS} distinct words; make the file again")
    if not (slots == [] or (distinct_texts(slots, 1, _MAX_ATTRIBUTES) and len(slots) == length)):
        raise ArtifactError(f"{element} does not name one attribute for each of its {length} words; make it again")
    return TextInfo(name, tuple(words), length, tuple(slots))


def names_json(info: AttributesInfo) -> tuple[str, str]:
    """Attribute names and vocabularies as ASCII JSON."""
    return json.dumps(info.names), json.dumps(info.values)

"""CelebA-words: faces of celebrities, described by what is true of them in shuffled words.

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Section 5.2 ("CK")
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._base import Rows
from mmgen.data_recipes._celeba._recipe import CelebaRecipe, Faces
from mmgen.data_recipes._celeba._source import ALL_ATTRIBUTES, ATTRIBUTES
from mmgen.data_recipes._streams import SplitScheme, random_bits, split_by_group, stream_keys

__all__ = ["CelebaWords"]

_FEMALE = "Female"
WORDS = tuple(sorted((*ATTRIBUTES, _FEMALE)))
"""19 words; with CK's '-' for none, which is our padding, 20."""

_LENGTH = 9
_TRAIN = 180_000 / 202_599


class CelebaWords(CelebaRecipe):
    """CelebA's aligned images with a text of at most nine words: attributes that are present, in random order."""

    name: ClassVar[str] = "celeba-words"

    def add_columns(self, writer: Any) -> None:
        super().add_columns(writer)
        writer.add_text("text", WORDS, _LENGTH)
        writer.add_factor("words", np.uint8, "word", f"words that are true; more than {_LENGTH} do not fit in the text")

    def make_columns(self, faces: Faces) -> Rows:
        true = true_words(faces.lists.attributes)
        texts = shuffle_words(true, stream_keys(faces.seed, self.name, faces.indices))
        return Rows(super().make_columns(faces).columns | {"text": texts}, {"words": true.sum(1, dtype=np.uint8)})

    def further_split_schemes(self, numbers: NDArray[np.int64], seed: int) -> dict[str, SplitScheme]:
        n = len(numbers)
        parts = split_by_group(np.arange(n), n, seed, "iid-paper", train=_TRAIN, val=(1 - _TRAIN) / 2)
        meaning = "180,000 of 202,599 images for training, as published; CK's validation is halved into val and test"
        return {"iid-paper": (meaning, parts)}


def true_words(attributes: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return a mask [n, 19] of words that are true of images with attributes [n, 40]; Female is not Male."""
    columns = [ALL_ATTRIBUTES.index("Male" if word == _FEMALE else word) for word in WORDS]
    return (attributes[:, columns] > 0) ^ (np.array(WORDS) == _FEMALE)


def shuffle_words(true: NDArray[np.bool_], keys: NDArray[np.uint64]) -> NDArray[np.uint16]:
    """Return codes [n, 9] of the true words [n, 19] in random order, then padding; of more than nine a random nine."""
    draws = random_bits(keys[:, None], np.arange(len(WORDS))) >> np.uint64(1)
    order = np.argsort(np.where(true, draws, np.iinfo(np.uint64).max), axis=1, kind="stable")[:, :_LENGTH]
    filled = np.arange(_LENGTH) < true.sum(axis=1, keepdims=True)
    return np.where(filled, order, len(WORDS)).astype(np.uint16)

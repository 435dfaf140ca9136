"""Captions of scenes: relations between two objects, and the choice of a true sentence.

A caption of two objects has nine words, ``size colour material shape relation size colour material shape``; either
object may come first and either true relation may be named (Cremer & Kushman, 2018, Section 5.2, "CK"). A caption of
one object has the four words of its looks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._scenes import Scenes, Words, ground_axes
from mmgen.data_recipes._streams import Bits, random_bits, random_choices

__all__ = [
    "NO_RELATION", "RELATIONS", "Captions", "attribute_words", "caption_vocabulary", "compose_captions",
    "draw_captions", "find_relations",
]  # fmt: skip

Bytes = NDArray[np.uint8]

RELATIONS = ("right", "left", "front", "behind")
"""By code; the opposite of code r is r ^ 1. "A left B": A is to the left of B as the camera sees it."""

NO_RELATION = 255
"""Code where neither of two opposite relations holds; drawn scenes always have one."""

_THRESHOLD = 0.2  # displacement from which a relation holds

# Slots of a scene's stream, between those of draw_scenes.
_FIRST_SLOT, _RELATION_SLOT = 32, 33


@dataclass(frozen=True)
class Captions:
    """Words, relations and order of objects in the captions of n scenes.

    Attributes:
        codes: Code [n, A] of each word among the values of its place, see :func:`attribute_words`.
        horizontal: Relation [n] of the scenes' first object to the second, right or left; none for single objects.
        depth: Likewise, front or behind.
        first: Which object [n] the caption begins with, 0 or 1.
    """

    codes: Bytes
    horizontal: Bytes
    depth: Bytes
    first: Bytes

    def __getitem__(self, rows: slice) -> "Captions":
        return Captions(self.codes[rows], self.horizontal[rows], self.depth[rows], self.first[rows])

    def vocabulary_codes(self, words: Words, objects: int) -> NDArray[np.uint16]:
        """Return the words of the captions as codes [n, T] in :func:`caption_vocabulary`."""
        index = {word: code for code, word in enumerate(caption_vocabulary(words, objects))}
        tables = [np.array([index[word] for word in values]) for values in attribute_words(words, objects).values()]
        columns = [table[self.codes[:, place]] for place, table in enumerate(tables)]
        return np.stack(columns, axis=1).astype(np.uint16)


def attribute_words(words: Words, objects: int) -> dict[str, list[str]]:
    """Return the possible words at each place of a caption, by the attribute that the place states."""
    if objects == 1:
        return {name: list(values) for name, values in words.items()}
    first, second = ({f"{name}_{i}": list(values) for name, values in words.items()} for i in (1, 2))
    return first | {"relation": list(RELATIONS)} | second


def caption_vocabulary(words: Words, objects: int) -> list[str]:
    """Return all words that captions of so many objects can have, each once."""
    return [word for values in words.values() for word in values] + (list(RELATIONS) if objects == 2 else [])


def find_relations(scenes: Scenes) -> tuple[Bytes, Bytes]:
    """Return two relations [n] of each scene's first object to its second: left or right, and front or behind."""
    dx, dy = (values[:, 0].astype(np.float64) - values[:, 1] for values in (scenes.x, scenes.y))
    found = []
    for code, axis in zip((0, 2), ground_axes(scenes.camera), strict=True):
        along = dx * axis[:, 0] + dy * axis[:, 1]
        found.append(np.where(along > _THRESHOLD, code, np.where(along < -_THRESHOLD, code + 1, NO_RELATION)))
    return found[0].astype(np.uint8), found[1].astype(np.uint8)


def draw_captions(scenes: Scenes, keys: Bits) -> Captions:
    """Draw one of the true captions of each scene from the scene's random stream."""
    n, objects = scenes.x.shape
    if objects == 1:
        no_relation = np.full(n, NO_RELATION, np.uint8)
        return Captions(scenes.looks[:, 0], no_relation, no_relation, np.zeros(n, np.uint8))
    horizontal, depth = find_relations(scenes)
    first = random_choices(random_bits(keys, _FIRST_SLOT), 2)
    prefers_depth = random_choices(random_bits(keys, _RELATION_SLOT), 2) == 1
    named_relation = np.where((prefers_depth | (horizontal == NO_RELATION)) & (depth != NO_RELATION), depth, horizontal)
    return compose_captions(scenes, horizontal, depth, first, named_relation)


def compose_captions(scenes: Scenes, horizontal: Bytes, depth: Bytes, first: Bytes, named_relation: Bytes) -> Captions:
    """Compose captions of scenes of two objects from the first object and the relation that each names.

    Args:
        scenes: The n scenes.
        horizontal: Relation of object 0 to object 1, right or left [n].
        depth: Likewise, front or behind [n].
        first: Object that the caption begins with, 0 or 1 [n].
        named_relation: Relation of object 0 to object 1 that the caption names [n].
    """
    rows = np.arange(len(scenes))
    relation = (named_relation ^ first)[:, None]  # the opposite holds of the second object to the first
    codes = np.concatenate([scenes.looks[rows, first], relation, scenes.looks[rows, 1 - first]], axis=1)
    return Captions(codes.astype(np.uint8), horizontal, depth, first.astype(np.uint8))

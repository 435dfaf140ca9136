"""Whole descriptions that a page knows, and menus of words that choose among them: of attributes, slots, or captions.

A page draws pictures of whole descriptions alone. A part of a description is their mixture, which its script computes
from how many training examples have each.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.descriptions import TextVocabulary, Vocabulary, attributes_to_caption, caption_to_attributes
from mmgen.figures.session import Session
from mmgen.generation.descriptions import Descriptions, complete_descriptions

__all__ = ["OPEN", "DescriptionChoices", "Menu", "choose_descriptions"]

_MOST = 2000
"""Largest number of descriptions on a page."""
_CAPTIONS = 300
"""Largest number of whole captions in a menu."""
OPEN = -1


@dataclass(frozen=True)
class Menu:
    """Menu of a page, from which a person chooses or excludes values.

    Attributes:
        name: Name of the menu, such as an attribute.
        values: The choices.
        attribute: Position of the attribute whose values these are; -1 for none.
    """

    name: str
    values: tuple[str, ...]
    attribute: int = -1


@dataclass(frozen=True)
class DescriptionChoices:
    """Whole descriptions of a page, and the menus that choose among them.

    Attributes:
        kind: The kind of description, "attributes" or "text".
        menus: The M menus.
        rows: Choice in each menu, int [Q, M], -1 where a training description does not know it; the most frequent first.
        counts: How many training examples have each, int64 [Q]; 0 for further combinations, which come last.
        descriptions: The Q descriptions.
    """

    kind: str
    menus: tuple[Menu, ...]
    rows: np.ndarray
    counts: np.ndarray
    descriptions: Descriptions

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, count: int) -> "DescriptionChoices":
        """Return the choices with only the first ``count`` descriptions."""
        part = slice(count)
        return replace(
            self, rows=self.rows[part], counts=self.counts[part], descriptions=self.descriptions[part]
        )  # fmt: skip

    @property
    def opening(self) -> list[int]:
        """Choice in each menu with which a page opens: one word of the most frequent description, the rest open."""
        known = np.flatnonzero(self.rows[0] != OPEN)[:1]
        return [int(value) if place in known else OPEN for place, value in enumerate(self.rows[0])]

    def group_by_modality(self, session: Session, rows: range) -> list[tuple[np.ndarray, Descriptions]]:
        """Group the descriptions of ``rows`` into those that spell a caption and those that do not."""
        part = slice(rows.start, rows.stop)
        if self.descriptions.tokens is not None:
            return [(np.array(rows), self.descriptions[part])]
        codes, text, info = self.descriptions.codes[part], session.model.text, session.model.attributes
        whole = np.zeros(len(codes), bool)
        if text is not None and info is not None and text.slots:
            whole = (codes[:, [info.names.index(slot) for slot in text.slots]] != UNKNOWN).all(1)
        groups = [np.flatnonzero(part) for part in (whole, ~whole)]
        return [(group + rows.start, complete_descriptions(session.model, codes[group])) for group in groups if len(group)]


def _count_rows(rows: np.ndarray, values: Sequence[Sequence[int]], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the most frequent distinct rows int [Q, M] with their counts, then what other combinations there is room
    for.
    """
    distinct, counts = np.unique(rows[(rows != OPEN).any(1)], axis=0, return_counts=True)
    shuffled = numpy_generator(seed, "descriptions").permutation(len(distinct))  # on ties
    order = shuffled[np.argsort(-counts[shuffled], kind="stable")][:_MOST]
    distinct, counts = distinct[order], counts[order]
    if math.prod(map(len, values)) <= _MOST:
        every = np.array(list(itertools.product(*values)), np.int64).reshape(-1, len(values))
        known = {tuple(row) for row in distinct.tolist()}
        further = every[[tuple(row) not in known for row in every.tolist()]]
    else:
        generator = numpy_generator(seed, "combinations")
        number = 0 if len(distinct) else _MOST
        further = np.stack([generator.choice(each, number) for each in values], 1).astype(np.int64)
    return np.concatenate([distinct, further]), np.concatenate([counts, np.zeros(len(further), counts.dtype)])


def _choices_by_attributes(info: Vocabulary, codes: np.ndarray, seed: int) -> DescriptionChoices:
    known = np.where(codes == UNKNOWN, OPEN, codes.astype(np.int64))
    rows, counts = _count_rows(known, [range(len(words)) for words in info.values], seed)
    menus = tuple(Menu(name, tuple(words), a) for a, (name, words) in enumerate(zip(info.names, info.values, strict=True)))
    return DescriptionChoices(
        "attributes", menus, rows, counts, Descriptions(np.where(rows == OPEN, UNKNOWN, rows).astype(np.uint8))
    )


def _choices_by_slots(session: Session, text: TextVocabulary, info: Vocabulary, tokens: np.ndarray) -> DescriptionChoices:
    places = [info.names.index(slot) for slot in text.slots]
    values = [[code for code, word in enumerate(info.values[a]) if word in text.vocabulary] for a in places]
    spelled = caption_to_attributes(tokens, text, info)[:, places]
    rows, counts = _count_rows(spelled[(spelled != UNKNOWN).all(1)].astype(np.int64), values, session.seed)
    codes = np.full((len(rows), len(info.names)), UNKNOWN, np.uint8)
    codes[:, places] = rows
    menus = tuple(Menu(slot, tuple(info.values[a]), a) for slot, a in zip(text.slots, places, strict=True))
    captions = complete_descriptions(session.model, tokens=attributes_to_caption(codes, text, info))
    return DescriptionChoices("text", menus, rows, counts, captions)


def _choices_by_captions(session: Session, tokens: np.ndarray) -> DescriptionChoices:
    """Make choices with one menu of whole captions, the most frequent first."""
    captions, counts = np.unique(tokens, axis=0, return_counts=True)
    shuffled = numpy_generator(session.seed, "captions").permutation(len(captions))
    frequent = shuffled[np.argsort(-counts[shuffled], kind="stable")][:_CAPTIONS]
    descriptions = complete_descriptions(session.model, tokens=captions[frequent])
    menu = Menu("caption", tuple(descriptions.format_texts(session.model)))
    return DescriptionChoices("text", (menu,), np.arange(len(frequent))[:, None], counts[frequent], descriptions)


def choose_descriptions(session: Session, kind: str) -> DescriptionChoices | None:
    """Choose the whole descriptions of one kind ("attributes" or "text") that a page knows; None if there are none.

    They are those of training examples; of captions without slots, those of test examples. Where all combinations are
    few, the others come after them.
    """
    loaded, dataset = session.model, session.group.dataset
    text, info = loaded.text, loaded.attributes
    slots = text is not None and bool(text.slots) and info is not None and set(text.slots) <= set(info.names)
    codes = tokens = None
    if dataset is not None:
        with Dataset.open(dataset) as data:
            rows = data.split(loaded.settings.data.split, "train" if kind == "attributes" or slots else "test")
            if info is not None and kind == "attributes":
                codes = data.read_attributes(info.name, rows)
            if text is not None and kind == "text":
                tokens = data.read_text(text.name, rows)
    if kind == "attributes":
        if info is None:
            return None
        return _choices_by_attributes(info, np.zeros((0, len(info.names)), np.uint8) if codes is None else codes, session.seed)
    if text is not None and info is not None and slots:
        none = np.zeros((0, text.length), np.int64)
        return _choices_by_slots(session, text, info, none if tokens is None else tokens)
    return None if text is None or tokens is None else _choices_by_captions(session, tokens)

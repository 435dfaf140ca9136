"""Whole descriptions that a page knows, and menus of words that choose among them: of attributes, slots, or captions.

A page draws pictures of whole descriptions alone. A part of a description is their mixture, which its script computes
from how many training examples have each.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.descriptions import TextVocabulary, Vocabulary, attributes_to_caption
from mmgen.figures.session import Session
from mmgen.generation.descriptions import Descriptions, complete_descriptions

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel


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
        rows: Choice in each menu, int [Q, M], -1 where a training description does not know it; the frequent first.
        counts: How many training examples have each, int64 [Q]; 0 for further combinations, which come last.
        descriptions: The Q descriptions.
        odds: Odds of a wrong word, by which training descriptions lend others, as completions have them.
    """

    kind: str
    menus: tuple[Menu, ...]
    rows: np.ndarray
    counts: np.ndarray
    descriptions: Descriptions
    odds: float = 1.0

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
        return [
            (group + rows.start, complete_descriptions(session.model, codes[group])) for group in groups if len(group)
        ]


def _sort_rows(
    rows: np.ndarray, counts: np.ndarray, values: Sequence[Sequence[int]], seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the most frequent distinct rows int [Q, M] with their counts, then what other combinations there is room
    for.
    """
    distinct, of = np.unique(rows, axis=0, return_inverse=True)
    counts = np.bincount(of.reshape(-1), counts, len(distinct)).astype(np.int64)
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
    return np.concatenate([distinct, further]), np.concatenate([counts, np.zeros(len(further), np.int64)])


def _completions(loaded: "TrainedModel", info: Vocabulary) -> tuple[np.ndarray, np.ndarray, float]:
    """Return training descriptions int [N, A], -1 where unknown, their counts [N] and the odds of a wrong word."""
    try:
        known = loaded.completions
    except UsageError:  # the data are gone
        return np.zeros((0, len(info.names)), np.int64), np.zeros(0, np.int64), 1.0
    codes = known.rows.astype(np.int64)
    return np.where(codes == UNKNOWN, OPEN, codes), known.counts, known.odds


def _choices_by_attributes(loaded: "TrainedModel", info: Vocabulary, seed: int) -> DescriptionChoices:
    known, times, odds = _completions(loaded, info)
    rows, counts = _sort_rows(known, times, [range(len(words)) for words in info.values], seed)
    menus = tuple(
        Menu(name, tuple(words), a) for a, (name, words) in enumerate(zip(info.names, info.values, strict=True))
    )
    codes = np.where(rows == OPEN, UNKNOWN, rows).astype(np.uint8)
    return DescriptionChoices("attributes", menus, rows, counts, Descriptions(codes), odds)


def _choices_by_slots(loaded: "TrainedModel", text: TextVocabulary, info: Vocabulary, seed: int) -> DescriptionChoices:
    places = [info.names.index(slot) for slot in text.slots]
    values = [[code for code, word in enumerate(info.values[a]) if word in text.vocabulary] for a in places]
    known, times, odds = _completions(loaded, info)
    rows, counts = _sort_rows(known[:, places], times, values, seed)
    codes = np.full((len(rows), len(info.names)), UNKNOWN, np.uint8)
    codes[:, places] = rows
    menus = tuple(Menu(slot, tuple(info.values[a]), a) for slot, a in zip(text.slots, places, strict=True))
    captions = complete_descriptions(loaded, tokens=attributes_to_caption(codes, text, info))
    return DescriptionChoices("text", menus, rows, counts, captions, odds)


def _choices_by_captions(session: Session, tokens: np.ndarray) -> DescriptionChoices:
    """Make choices with one menu of whole captions, the most frequent first."""
    captions, counts = np.unique(tokens, axis=0, return_counts=True)
    shuffled = numpy_generator(session.seed, "captions").permutation(len(captions))
    frequent = shuffled[np.argsort(-counts[shuffled], kind="stable")][:_CAPTIONS]
    descriptions = complete_descriptions(session.model, tokens=captions[frequent])
    menu = Menu("caption", tuple(descriptions.format_texts(session.model)))
    return DescriptionChoices("text", (menu,), np.arange(len(frequent))[:, None], counts[frequent], descriptions)


def choose_descriptions(session: Session, loaded: "TrainedModel", kind: str) -> DescriptionChoices | None:
    """Choose the whole descriptions of one kind ("attributes" or "text") that a page knows; None if there are none.

    They are those of training examples; of captions without slots, those of test examples. Where all combinations are
    few, the others come after them.

    Args:
        session: The model's files.
        loaded: The model, with a posterior that reads such descriptions.
        kind: "attributes" or "text".
    """
    text, info = loaded.text, loaded.attributes
    if kind == "attributes":
        return None if info is None else _choices_by_attributes(loaded, info, session.seed)
    if text is not None and info is not None and text.slots and set(text.slots) <= set(info.names):
        return _choices_by_slots(loaded, text, info, session.seed)
    if text is None or session.group.dataset is None:
        return None
    with Dataset.open(session.group.dataset) as data:
        return _choices_by_captions(session, data.read_text(text.name, data.split(loaded.settings.data.split, "test")))

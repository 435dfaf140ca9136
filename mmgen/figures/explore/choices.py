"""Descriptions that a page offers, and menus that choose among them: of attributes, words, or whole captions."""

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.descriptions import TextVocabulary, Vocabulary, attributes_to_caption, caption_to_attributes
from mmgen.figures.session import Session
from mmgen.generation.descriptions import Descriptions, complete_descriptions

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel

__all__ = ["Menu", "DescriptionChoices", "descriptions_by_frequency", "captions_by_difference", "choose_descriptions"]

_ROWS = 20_000
"""Number of examples from which frequencies are counted."""
_CAPTIONS = 300
"""Largest number of whole captions in a menu."""
_STARTS = 5
"""Number of captions whose neighbours a page holds if all captions are too many."""
ANY = -1


@dataclass(frozen=True)
class Menu:
    """Menu of a page, from which a person chooses one value, such as of an attribute.

    Attributes:
        name: Name of the menu, such as an attribute.
        values: The choices.
        any: Whether the choice can be left open.
    """

    name: str
    values: tuple[str, ...]
    any: bool


@dataclass(frozen=True)
class DescriptionChoices:
    """Descriptions for which a page has pictures, and the menus that choose among them.

    Attributes:
        kind: The kind of description, "attributes" or "text".
        menus: The M menus.
        keys: Choice in each menu, int [Q, M], -1 if left open; the most important descriptions come first.
        descriptions: The Q descriptions.
        starts: Rows of ``keys`` with captions to start from; none if all combinations are there.
        total: Number of possible descriptions; 0 if unknown.
        selection: Rule by which these were chosen; "" for all.
    """

    kind: str
    menus: tuple[Menu, ...]
    keys: np.ndarray
    descriptions: Descriptions
    starts: tuple[int, ...] = ()
    total: int = 0
    selection: str = ""

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, count: int) -> "DescriptionChoices":
        """Return the choices with only the first ``count`` descriptions."""
        if count >= len(self):
            return self
        starts = tuple(start for start in self.starts if start < count)
        return replace(self, keys=self.keys[:count], descriptions=self.descriptions[:count], starts=starts)

    def group_by_completeness(self, loaded: "TrainedModel", rows: range) -> list[tuple[np.ndarray, Descriptions]]:
        """Group the descriptions of ``rows`` into complete and partial ones; complete ones can also be captions."""
        if self.descriptions.tokens is not None:
            return [(np.array(rows), self.descriptions[slice(rows.start, rows.stop)])]
        codes, text, info = self.descriptions.codes[rows.start : rows.stop], loaded.text, loaded.attributes
        whole = np.zeros(len(codes), bool)
        if text is not None and info is not None and text.slots:
            whole = (codes[:, [info.names.index(slot) for slot in text.slots]] != UNKNOWN).all(1)
        groups = [np.flatnonzero(part) for part in (whole, ~whole)]
        return [(group + rows.start, complete_descriptions(loaded, codes[group])) for group in groups if len(group)]


def descriptions_by_frequency(codes: np.ndarray, sizes: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield partial descriptions by the number of examples that match them, most first; on ties, shorter ones first.

    A description is at most as frequent as any part of it, so the next one always adds one value to an earlier one.

    Args:
        codes: Attribute codes of examples, uint8 [N, A]; 255 is unknown.
        sizes: Number of values of each attribute, [A].

    Yields:
        Codes uint8 [A], 255 where unspecified, of all possible descriptions.

    Example:
        >>> codes = np.array([[0, 0], [0, 1], [0, 1]], np.uint8)
        >>> [row.tolist() for row in itertools.islice(descriptions_by_frequency(codes, (2, 2)), 4)]
        [[255, 255], [0, 255], [255, 1], [0, 1]]
    """
    order = itertools.count()  # ties: by length, then as they were found
    all_rows = np.arange(len(codes))
    # Count, length, tie; the description, the examples of the shorter description before it, and its last word.
    heap: list[tuple[int, int, int, tuple[int, ...], np.ndarray, int]]
    heap = [(-len(all_rows), 0, next(order), (UNKNOWN,) * len(sizes), all_rows, ANY)]
    while heap:
        _, length, _, description, rows, last = heapq.heappop(heap)
        if last != ANY:
            rows = rows[codes[rows, last] == description[last]]
        yield np.array(description, np.uint8)
        for attribute in range(last + 1, len(sizes)):
            counts = np.bincount(codes[rows, attribute], minlength=256)
            for value in range(sizes[attribute]):
                longer = (*description[:attribute], value, *description[attribute + 1 :])
                heapq.heappush(heap, (-int(counts[value]), length + 1, next(order), longer, rows, attribute))


def captions_by_difference(starts: np.ndarray, values: Sequence[Sequence[int]]) -> Iterator[np.ndarray]:
    """Yield the captions ``starts``, then those that differ from one of them in one word, then in two.

    Args:
        starts: Choices of the first captions, int [n, M].
        values: Possible choices of each menu, [M].
    """
    yielded = set()
    for changes in range(3):
        for start in starts:
            for places in itertools.combinations(range(len(values)), changes):
                alternatives = [[value for value in values[place] if value != start[place]] for place in places]
                for words in itertools.product(*alternatives):
                    key = start.copy()
                    key[list(places)] = words
                    if tuple(key) not in yielded:
                        yielded.add(tuple(key))
                        yield key


def _choices_by_attributes(vocabulary: Vocabulary, codes: np.ndarray, limit: int) -> DescriptionChoices:
    sizes = [len(words) for words in vocabulary.values]
    total = int(np.prod([size + 1 for size in sizes], dtype=object))
    codes_by_frequency = np.stack(list(itertools.islice(descriptions_by_frequency(codes, sizes), limit)))
    menus = tuple(
        Menu(name, tuple(words), True) for name, words in zip(vocabulary.names, vocabulary.values, strict=True)
    )
    keys = np.where(codes_by_frequency == UNKNOWN, ANY, codes_by_frequency.astype(np.int64))
    selection = "the most frequent in the data" if len(codes) else "the shortest"
    return DescriptionChoices(
        "attributes",
        menus,
        keys,
        Descriptions(codes_by_frequency),
        total=total,
        selection=selection if total > limit else "",
    )


def _choices_by_slots(
    text: TextVocabulary, vocabulary: Vocabulary, tokens: np.ndarray, limit: int, seed: int, loaded: "TrainedModel"
) -> DescriptionChoices:
    places = [vocabulary.names.index(slot) for slot in text.slots]
    values = [[code for code, word in enumerate(vocabulary.values[a]) if word in text.vocabulary] for a in places]
    captions, counts = np.unique(caption_to_attributes(tokens, text, vocabulary)[:, places], axis=0, return_counts=True)
    whole = (captions != UNKNOWN).all(1)
    captions, counts = captions[whole].astype(np.int64), counts[whole]
    shuffled = numpy_generator(seed, "captions to start from").permutation(len(captions))
    starts = captions[shuffled[np.argsort(-counts[shuffled], kind="stable")]][:_STARTS]
    if not len(starts):
        starts = np.array([[choice[0] for choice in values]])
    total = int(np.prod([len(choice) for choice in values], dtype=object))
    selection = ""
    if total > limit:
        keys = np.stack(list(itertools.islice(captions_by_difference(starts, values), limit)))
        selection = f"those that differ from one of {len(starts)} captions of the data in at most two words"
    else:
        found = [starts[0], *(np.array(key) for key in itertools.product(*values))]
        keys = np.array(list(dict.fromkeys(tuple(int(code) for code in key) for key in found)))
    codes = np.full((len(keys), len(vocabulary.names)), UNKNOWN, np.uint8)
    codes[:, places] = keys
    menus = tuple(Menu(slot, tuple(vocabulary.values[a]), False) for slot, a in zip(text.slots, places, strict=True))
    descriptions = complete_descriptions(loaded, tokens=attributes_to_caption(codes, text, vocabulary))
    first = tuple(range(min(len(starts), len(keys)))) if selection else ()
    return DescriptionChoices("text", menus, keys, descriptions, first, total, selection)


def _choices_by_captions(tokens: np.ndarray, limit: int, seed: int, loaded: "TrainedModel") -> DescriptionChoices:
    """Make choices with one menu of whole captions, the most frequent first."""
    captions, counts = np.unique(tokens, axis=0, return_counts=True)
    shuffled = numpy_generator(seed, "captions").permutation(len(captions))
    frequent_captions = captions[shuffled[np.argsort(-counts[shuffled], kind="stable")]][: min(limit, _CAPTIONS)]
    descriptions = complete_descriptions(loaded, tokens=frequent_captions)
    menu = Menu("caption", tuple(descriptions.format_texts(loaded)), False)
    selection = "the most frequent of the test part" if len(captions) > len(frequent_captions) else ""
    return DescriptionChoices(
        "text",
        (menu,),
        np.arange(len(frequent_captions))[:, None],
        descriptions,
        total=len(captions),
        selection=selection,
    )


def choose_descriptions(session: Session, kind: str, limit: int) -> DescriptionChoices | None:
    """Choose the descriptions of one kind ("attributes" or "text") that a page offers; None if there are none.

    Args:
        session: The model.
        kind: "attributes" or "text".
        limit: Largest number of descriptions.
    """
    loaded, dataset = session.model, session.group.dataset
    text, info = loaded.text, loaded.attributes
    codes = tokens = None
    if dataset is not None:
        with Dataset.open(dataset) as data:
            rows = data.split(loaded.settings.data.split, "train" if kind == "attributes" else "test")
            if len(rows) > _ROWS:
                rows = np.sort(numpy_generator(session.seed, "frequencies").permutation(rows)[:_ROWS])
            if info is not None:
                codes = data.read_attributes(info.name, rows)
            if text is not None:
                tokens = data.read_text(text.name, rows)
    if kind == "attributes":
        if info is None:
            return None
        return _choices_by_attributes(info, np.zeros((0, len(info.names)), np.uint8) if codes is None else codes, limit)
    if text is None:
        return None
    if text.slots and info is not None and set(text.slots) <= set(info.names):
        none = np.zeros((0, text.length), np.int64)
        return _choices_by_slots(text, info, none if tokens is None else tokens, limit, session.seed, loaded)
    return None if tokens is None else _choices_by_captions(tokens, limit, session.seed, loaded)

"""Captions in free text: their vocabulary, and the codes of each picture's captions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.descriptions import split_into_words

__all__ = ["Captions", "encode_captions"]

_MOST_WORDS = 65_535  # codes are uint16, and one of them is the padding


@dataclass(frozen=True)
class Captions:
    """Captions of N pictures as codes of words, with the vocabulary; K of each at most.

    Attributes:
        vocabulary: All words, sorted.
        length: Words of the longest caption, T.
        codes: uint16 [N, T], or [N, K, T] where K > 1; the size of the vocabulary after the last word. Captions that a
            picture lacks are empty and last.
        notes: Lines for people.
    """

    vocabulary: list[str]
    length: int
    codes: NDArray[np.uint16]
    notes: list[str]

    @property
    def first(self) -> NDArray[np.uint16]:
        """The first caption of each picture, uint16 [N, T]."""
        return self.codes if self.codes.ndim == 2 else self.codes[:, 0]

    @property
    def most(self) -> int:
        """Captions of a picture at most, K."""
        return 1 if self.codes.ndim == 2 else self.codes.shape[1]


def encode_captions(name: str, texts: Sequence[Sequence[str]], max_words: int, min_count: int) -> Captions:
    """Encode the texts of each picture as captions of at most ``max_words`` words that occur ``min_count`` times.

    A text of no kept word is left out where the picture has another.

    Raises:
        DataError: There are no words, or too many different ones.
    """
    counts: Counter[str] = Counter()
    cut, longest = 0, 0
    for text in chain.from_iterable(texts):
        words = split_into_words(text)
        counts.update(words[:max_words])
        cut, longest = cut + (len(words) > max_words), max(longest, len(words))
    vocabulary = sorted(word for word, count in counts.items() if count >= min_count)
    rare = len(counts) - len(vocabulary)
    if not vocabulary:
        why = f"none occurs {min_count} times" if rare else "it holds none"
        raise DataError(f"the captions of column '{name}' have no words: {why}; name another column with --caption")
    if len(vocabulary) > _MOST_WORDS:
        raise DataError(
            f"the captions of column '{name}' have {len(vocabulary):,} different words, expected at most "
            f"{_MOST_WORDS:,}; leave out rare ones, --min-count {min_count + 1}"
        )
    code = {word: number for number, word in enumerate(vocabulary)}
    rows = [
        [
            known
            for text in each
            if (known := [code[word] for word in split_into_words(text)[:max_words] if word in code])
        ]
        for each in texts
    ]
    length = max(len(known) for row in rows for known in row)
    codes = np.full((len(rows), max(map(len, rows)), length), len(vocabulary), np.uint16)
    for row, captions in enumerate(rows):
        for place, known in enumerate(captions):
            codes[row, place, : len(known)] = known
    silent = sum(not row for row in rows)
    example = next(" ".join(vocabulary[word] for word in row[0]) for row in rows if row)
    notes = [f"captions '{name}': {len(vocabulary):,} words, at most {length} in a caption, such as \"{example}\""]
    if silent:
        notes.append(f"  {silent:,} pictures have none, which is to models a caption of no words")
    if cut:
        notes.append(
            f"  {cut:,} were cut after {max_words} words (the longest has {longest:,}); --max-words keeps more"
        )
    if rare:
        notes.append(f"  {rare:,} words that occur less than {min_count} times were left out of them")
    return Captions(vocabulary, length, codes[:, 0] if codes.shape[1] == 1 else codes, notes)

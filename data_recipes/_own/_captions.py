"""Captions in free text: their vocabulary, and the codes of each caption."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.data_recipes._own._cells import Cell
from mmgen.descriptions import split_into_words

__all__ = ["Captions", "encode_captions"]

_MOST_WORDS = 65_535  # codes are uint16, and one of them is the padding


@dataclass(frozen=True)
class Captions:
    """Captions of N pictures as codes of words, with the vocabulary.

    Attributes:
        vocabulary: All words, sorted.
        length: Words of the longest caption, T.
        codes: uint16 [N, T]; the size of the vocabulary after the last word.
        notes: Lines for people.
    """

    vocabulary: list[str]
    length: int
    codes: NDArray[np.uint16]
    notes: list[str]


def encode_captions(name: str, cells: Sequence[Cell], max_words: int, min_count: int) -> Captions:
    """Encode the texts of a column as captions of at most ``max_words`` words that occur ``min_count`` times.

    Raises:
        DataError: There are no words, or too many different ones.
    """
    counts: Counter[str] = Counter()
    cut, longest = 0, 0
    for cell in cells:
        words = split_into_words(cell or "")
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
    rows = [[code[word] for word in split_into_words(cell or "")[:max_words] if word in code] for cell in cells]
    length = max(map(len, rows))
    codes = np.full((len(rows), length), len(vocabulary), np.uint16)
    for row, known in enumerate(rows):
        codes[row, : len(known)] = known
    silent = sum(not row for row in rows)
    example = next(" ".join(vocabulary[word] for word in row) for row in rows if row)
    notes = [f"captions '{name}': {len(vocabulary):,} words, at most {length} in a caption, such as \"{example}\""]
    if silent:
        notes.append(f"  {silent:,} pictures have none, which is to models a caption of no words")
    if cut:
        notes.append(
            f"  {cut:,} were cut after {max_words} words (the longest has {longest:,}); --max-words keeps more"
        )
    if rare:
        notes.append(f"  {rare:,} words that occur less than {min_count} times were left out of them")
    return Captions(vocabulary, length, codes, notes)

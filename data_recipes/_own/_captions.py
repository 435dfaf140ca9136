"""Cells of the pictures in use without words for "unknown", and captions in free text with their vocabulary."""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError, UsageError
from mmgen.core.parsing import printable
from mmgen.core.seeding import numpy_generator
from mmgen.data_recipes._own._files import shell_quoted
from mmgen.data_recipes._own._source import Source
from mmgen.data_recipes._own._tables import Cell, Columns, Several
from mmgen.descriptions import UNSPECIFIED, split_into_words

_UNKNOWN = ("na", "n/a", "nan", "none", "null")
"""Words for an unknown value in lower case, besides those of descriptions (:data:`UNSPECIFIED`)."""

_CAPTIONS = ("text", "texts", "caption", "captions")
_NUMBERED = re.compile(r"(text|caption|sentence)s?[ _-]?\d+", re.IGNORECASE)
_MOST_WORDS = 65_535  # codes are uint16, and one of them is the padding


@dataclass
class Records:
    """Names of n pictures, and the cells of tables about them.

    Attributes:
        names: The names of the pictures [n].
        columns: Cells by column [n], None where unknown; the first of several texts.
        several: All texts of pictures with several, by column and picture.
        notes: Lines for people.
    """

    names: list[str]
    columns: Columns
    several: Several
    notes: list[str]

    def texts(self, column: str, row: int) -> tuple[str, ...]:
        """Return all texts of a column for a picture; () without any."""
        cell = self.columns[column][row]
        return self.several.get(column, {}).get(row, () if cell is None else (cell,))


@dataclass
class CaptionChoice:
    """Columns of tables that hold captions, and the captions of each picture.

    Attributes:
        name: Name for messages.
        columns: The columns.
        texts: Captions of each picture [n] in the order in which they are stored; () without any.
        several: Whether any picture has several.
        notes: Lines for people.
    """

    name: str
    columns: list[str]
    texts: list[tuple[str, ...]]
    several: bool
    notes: list[str]


def select_records(
    source: Source, rows: Sequence[int], unknown: Collection[str] | None, ignore: Collection[str]
) -> Records:
    """Return names and cells of the pictures ``rows`` of a source, without the columns ``ignore``.

    Args:
        source: The source.
        rows: Numbers of the pictures.
        unknown: Words for an unknown value besides those of descriptions, in any case; None for the usual ones.
        ignore: Columns that stay as they are.
    """
    words = _UNKNOWN if unknown is None else [" ".join(word.split()).casefold() for word in unknown]
    place = {row: number for number, row in enumerate(rows)}
    columns, replaced = {}, Counter[str]()
    for name, cells in source.columns.items():
        columns[name] = [cells[row] for row in rows]
        if name not in ignore:
            columns[name] = _replace_unknown(columns[name], {*UNSPECIFIED, *words}, replaced)
    several = {
        name: {place[row]: texts for row, texts in each.items() if row in place}
        for name, each in source.several.items()
        if name not in ignore
    }
    notes = []
    if replaced:
        listed = ", ".join(f"'{printable(word, 40)}' {count:,}" for word, count in replaced.most_common(5))
        notes.append(f"taken as unknown: {listed}; --unknown names other words")
    return Records(
        [source.names[row] for row in rows], columns, {name: each for name, each in several.items() if each}, notes
    )


def _replace_unknown(cells: Sequence[Cell], words: Collection[str], replaced: Counter[str]) -> list[Cell]:
    """Return cells with None for words that mean an unknown value; ``replaced`` counts them."""
    means = {cell: " ".join(cell.split()).casefold() in words for cell in {*cells} if cell is not None}
    replaced.update(cell for cell in cells if cell is not None and means[cell])
    return [None if cell is None or means[cell] else cell for cell in cells]


def choose_captions(
    records: Records, column: str | None, excluded: Collection[str], most: int, seed: int
) -> CaptionChoice | None:
    """Choose at most ``most`` captions of each picture, in an order drawn by the seed and the picture's name.

    Args:
        records: The pictures.
        column: The user's column of captions; None for columns with a usual name.
        excluded: Columns that hold no captions.
        most: Captions of a picture that are kept.
        seed: Seed of the dataset.
    """
    columns = [column] if column is not None else _caption_columns(records.columns, excluded)
    if not columns:
        return None
    name = columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
    chosen: list[tuple[str, ...]] = []
    counts: list[int] = []
    for row, picture in enumerate(records.names):
        texts = sorted({text for column in columns for text in records.texts(column, row)})
        order = numpy_generator(seed, "captions", picture).permutation(len(texts))[:most] if len(texts) > 1 else [0]
        chosen.append(tuple(texts[place] for place in order) if texts else ())
        counts += [len(texts)] if texts else []
    notes = []
    if max(counts, default=0) > 1:
        number = f"{max(counts)}" if max(counts) == min(counts) else f"{min(counts)} to {max(counts)}"
        kept = "" if max(counts) <= most else f", of which {most} are kept (--most-captions)"
        use = "training draws one at each sight" if most > 1 else "one of them is drawn for each, by the seed"
        notes.append(f"  {number} captions a picture, {sum(counts):,} in all{kept if most > 1 else ''}: {use}")
    return CaptionChoice(name, columns, chosen, max(counts, default=0) > 1, notes)


def _caption_columns(columns: Mapping[str, Sequence[Cell]], excluded: Collection[str]) -> list[str]:
    plain = [name for name in columns if name.casefold() in _CAPTIONS and name not in excluded]
    if len(plain) > 1:
        raise UsageError(f"the columns '{plain[0]}' and '{plain[1]}' could be captions; name one with --caption")
    stem = plain[0].casefold().rstrip("s") if plain else ""
    numbered = [name for name in columns if _NUMBERED.fullmatch(name) and name not in excluded]
    return [*plain, *(name for name in numbered if name.casefold().startswith(stem))]


def drop_multi_valued_columns(
    records: Records, caption_choice: CaptionChoice | None, needed: Collection[str]
) -> list[str]:
    """Remove columns that number the captions of a picture; refuse other columns with several values for a picture."""
    notes = []
    numbered = {
        name: all(text.isdecimal() for texts in each.values() for text in texts)
        for name, each in records.several.items()
    }
    for name, numbers in sorted(numbered.items(), key=lambda pair: pair[1]):  # texts may be the captions
        each = records.several[name]
        if caption_choice is not None and name in caption_choice.columns:
            continue
        if not (numbers and caption_choice is not None and caption_choice.several) or name in needed:
            row, texts = next(iter(each.items()))
            both = " and ".join(f"'{printable(text, 40)}'" for text in texts[:2])
            raise DataError(
                f"the column '{printable(name, 60)}' has several values for one picture, such as {both} for "
                f"'{printable(records.names[row], 80)}' ({len(each):,} pictures in all); leave it out with --ignore "
                f"{shell_quoted(name)}, or name it with --caption if they are texts"
            )
        notes.append(f"left out: column '{name}': it numbers the captions")
        del records.columns[name]
    return notes


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
    if length == 1 and all(word.lower() == word.upper() for word in vocabulary):  # letters without capitals
        notes.append("  each caption is one word; if words of its script stand without spaces, put spaces between them")
    if silent:
        notes.append(f"  {silent:,} pictures have none, which is to models a caption of no words")
    if cut:
        notes.append(
            f"  {cut:,} were cut after {max_words} words (the longest has {longest:,}); --max-words keeps more"
        )
    if rare:
        notes.append(f"  {rare:,} words that occur less than {min_count} times were left out of them")
    return Captions(vocabulary, length, codes[:, 0] if codes.shape[1] == 1 else codes, notes)

"""Cells of the pictures in use, without words for "unknown", and their captions."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mmgen.core.errors import DataError, UsageError
from mmgen.core.parsing import printable
from mmgen.core.seeding import numpy_generator
from mmgen.data_recipes._own._cells import Cell, Columns
from mmgen.data_recipes._own._files import shell_quoted
from mmgen.data_recipes._own._missing import replace_missing_words
from mmgen.data_recipes._own._source import Source
from mmgen.data_recipes._own._spellings import note_spelling_variants

__all__ = ["CaptionChoice", "Records", "choose_captions", "drop_multi_valued_columns", "select_records"]

_CAPTIONS = ("text", "texts", "caption", "captions")
_NUMBERED = re.compile(r"(text|caption|sentence)s?[ _-]?\d+", re.IGNORECASE)

Several = dict[str, dict[int, tuple[str, ...]]]


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
        unknown: Words for an unknown value; None for the usual ones.
        ignore: Columns that stay as they are.
    """
    place = {row: number for number, row in enumerate(rows)}
    columns: Columns = {}
    notes = note_spelling_variants("the names of columns", (name for name in source.columns if name not in ignore))
    for name, cells in source.columns.items():
        chosen_cells = [cells[row] for row in rows]
        if name not in ignore:
            chosen_cells, column_notes = replace_missing_words(name, chosen_cells, unknown)
            notes += column_notes
        columns[name] = chosen_cells
    several = {
        name: {place[row]: texts for row, texts in each.items() if row in place}
        for name, each in source.several.items()
        if name not in ignore
    }
    return Records(
        [source.names[row] for row in rows], columns, {name: each for name, each in several.items() if each}, notes
    )


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

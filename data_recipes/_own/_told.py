"""What is said of the pictures that are used: cells without words for "unknown", and one caption of several."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mmgen.core.errors import DataError, UsageError
from mmgen.core.parsing import printable
from mmgen.core.seeding import stream_key
from mmgen.data_recipes._own._cells import Cell, Columns
from mmgen.data_recipes._own._files import typed
from mmgen.data_recipes._own._source import Source
from mmgen.data_recipes._own._spellings import spelled_twice
from mmgen.data_recipes._own._unknown import without_unknown

__all__ = ["Chosen", "Told", "choose_captions", "leave_out_several", "told_of"]

_CAPTIONS = ("text", "texts", "caption", "captions")
_NUMBERED = re.compile(r"(text|caption|sentence)s?[ _-]?\d+", re.IGNORECASE)

Several = dict[str, dict[int, tuple[str, ...]]]


@dataclass
class Told:
    """What is said of n pictures.

    Attributes:
        names: The names of the pictures [n].
        columns: Cells by column [n], None where nothing is known; of several texts the first.
        several: All texts where there are several, by column and picture.
        said: What there is to say about it.
    """

    names: list[str]
    columns: Columns
    several: Several
    said: list[str]

    def texts(self, column: str, row: int) -> tuple[str, ...]:
        """All that a column says of a picture."""
        cell = self.columns[column][row]
        return self.several.get(column, {}).get(row, () if cell is None else (cell,))


@dataclass
class Chosen:
    """The captions.

    Attributes:
        name: What they are called.
        columns: The columns that they are from.
        cells: One of each picture [n].
        several: Whether any picture has several.
        said: What there is to say about it.
    """

    name: str
    columns: list[str]
    cells: list[Cell]
    several: bool
    said: list[str]


def told_of(source: Source, rows: Sequence[int], unknown: Collection[str] | None, ignore: Collection[str]) -> Told:
    """What a source says of some of its pictures.

    Args:
        source: The source.
        rows: Which pictures [n].
        unknown: Words of cells that say that nothing is known; None for those that are usual.
        ignore: Columns that are not looked at.
    """
    place = {row: number for number, row in enumerate(rows)}
    columns: Columns = {}
    said = spelled_twice("the names of columns", (name for name in source.columns if name not in ignore))
    for name, cells in source.columns.items():
        kept = [cells[row] for row in rows]
        if name not in ignore:
            kept, about = without_unknown(name, kept, unknown)
            said += about
        columns[name] = kept
    several = {
        name: {place[row]: texts for row, texts in each.items() if row in place}
        for name, each in source.several.items()
        if name not in ignore
    }
    return Told(
        [source.names[row] for row in rows], columns, {name: each for name, each in several.items() if each}, said
    )


def choose_captions(told: Told, named: str | None, taken: Collection[str], seed: int) -> Chosen | None:
    """The captions, one for each picture; where there are several, one is drawn by the seed and the picture's name.

    Args:
        told: What is said of the pictures.
        named: The column that somebody names; None for one called text or caption, or those called caption_0 and so on.
        taken: Columns that are something else.
        seed: Seed of the dataset.

    Raises:
        UsageError: Two columns could be captions.
    """
    columns = [named] if named is not None else _found(told.columns, taken)
    if not columns:
        return None
    name = columns[0] if len(columns) == 1 else f"{columns[0]} to {columns[-1]}"
    cells: list[Cell] = []
    most, fewest, total = 0, 2**31, 0
    for row, picture in enumerate(told.names):
        texts = sorted({text for column in columns for text in told.texts(column, row)})
        cells.append(texts[stream_key(seed, "captions", picture) % len(texts)] if texts else None)
        if texts:
            most, fewest, total = max(most, len(texts)), min(fewest, len(texts)), total + len(texts)
    said = []
    if most > 1:
        number = f"{most}" if most == fewest else f"{fewest} to {most}"
        said.append(f"  {number} captions a picture, {total:,} in all: one of them is drawn for each, by the seed")
    return Chosen(name, columns, cells, most > 1, said)


def _found(columns: Mapping[str, Sequence[Cell]], taken: Collection[str]) -> list[str]:
    found = [name for name in columns if name.casefold() in _CAPTIONS and name not in taken]
    if len(found) > 1:
        raise UsageError(f"the columns '{found[0]}' and '{found[1]}' could be captions; name one with --caption")
    stem = found[0].casefold().rstrip("s") if found else ""
    numbered = [name for name in columns if _NUMBERED.fullmatch(name) and name not in taken]
    return [*found, *(name for name in numbered if name.casefold().startswith(stem))]


def leave_out_several(told: Told, chosen: Chosen | None, needed: Collection[str]) -> list[str]:
    """Columns that say several things of a picture and are no captions: left out if they number these, else refused.

    Args:
        told: What is said of the pictures; such columns are taken out of it.
        chosen: The captions.
        needed: Columns that somebody names for something else.

    Returns:
        What is left out, and why.

    Raises:
        DataError: A column says several things of a picture.
    """
    said = []
    numbered = {
        name: all(text.isdecimal() for texts in each.values() for text in texts) for name, each in told.several.items()
    }
    for name, numbers in sorted(numbered.items(), key=lambda found: found[1]):  # texts first: they may be the captions
        each = told.several[name]
        if chosen is not None and name in chosen.columns:
            continue
        if not (numbers and chosen is not None and chosen.several) or name in needed:
            row, texts = next(iter(each.items()))
            both = " and ".join(f"'{printable(text, 40)}'" for text in texts[:2])
            raise DataError(
                f"the column '{printable(name, 60)}' says several things of one picture, such as {both} of "
                f"'{printable(told.names[row], 80)}', as it does of {len(each):,}; leave it out with --ignore "
                f"{typed(name)}, or name it with --caption if they are texts"
            )
        said.append(f"left out: column '{name}': it numbers the captions")
        del told.columns[name]
    return said

"""Words for unknown values in cells, the same for all tables, folders and datasets."""

from collections import Counter
from collections.abc import Collection, Sequence

from mmgen.core.parsing import printable
from mmgen.data_recipes._own._cells import Cell
from mmgen.descriptions import UNSPECIFIED

__all__ = ["MISSING_WORDS", "without_missing"]

MISSING_WORDS = (
    "na", "n/a", "n.a.", "#n/a", "#na", "#n/a n/a", "<na>", "nan", "-nan", "1.#qnan", "nat", "null", "<null>", "\\n",
    "#null!", "#value!", "#ref!", "#div/0!", "#name?", "#num!", "nil", "none", "missing", "<missing>", "-", "--", "---",
    ".", "..", "??", "???", "not available", "not applicable", "not known", "not specified", "unspecified",
)  # fmt: skip
"""Words that programs and people write for it, in lower case, besides those of descriptions (:data:`UNSPECIFIED`)."""


def without_missing(name: str, cells: Sequence[Cell], words: Collection[str] | None) -> tuple[list[Cell], list[str]]:
    """Replace words for an unknown value by None; return the cells of a column and lines for people.

    Args:
        name: The column, for messages.
        cells: Its cells [N].
        words: The words besides :data:`UNSPECIFIED`, in any case; by default :data:`MISSING_WORDS`.

    Example:
        >>> cells, notes = without_missing("hat", ["red", "N/A", None], None)
        >>> cells, notes[0].strip()
        (['red', None, None],
         "hat: 'N/A' 1 is taken as unknown; if it is a value, --unknown names the words that say so")
    """
    meant = {*UNSPECIFIED, *(MISSING_WORDS if words is None else (" ".join(word.split()).casefold() for word in words))}
    longest = max(map(len, meant))
    taken: Counter[str] = Counter()
    known_cells: list[Cell] = []
    for cell in cells:
        known = cell is not None and (len(cell) > 2 * longest or " ".join(cell.split()).casefold() not in meant)
        if cell is not None and not known:
            taken[cell] += 1
        known_cells.append(cell if known else None)
    fixed = {word: count for word, count in taken.items() if word.casefold() in UNSPECIFIED}
    notes = []
    for words_taken, advice in (
        ({word: count for word, count in taken.items() if word not in fixed}, "--unknown names the words that say so"),
        (fixed, "rename it"),
    ):
        if words_taken and (words is None or words_taken is fixed):  # the user knows the words that they name
            every = ", ".join(f"'{printable(word, 40)}' {count:,}" for word, count in list(words_taken.items())[:5])
            is_are, it_is = ("is", "it is a value") if len(words_taken) == 1 else ("are", "one is a value")
            notes.append(f"  {printable(name, 60)}: {every} {is_are} taken as unknown; if {it_is}, {advice}")
    return known_cells, notes

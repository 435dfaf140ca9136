"""Words for unknown values in cells, the same for all tables, folders and datasets."""

from collections import Counter
from collections.abc import Collection, Sequence

from mmgen.core.parsing import printable
from mmgen.data_recipes._own._cells import Cell
from mmgen.descriptions import UNSPECIFIED

__all__ = ["MISSING_WORDS", "replace_missing_words"]

MISSING_WORDS = (
    "na", "n/a", "n.a.", "#n/a", "#na", "#n/a n/a", "<na>", "nan", "-nan", "1.#qnan", "nat", "null", "<null>", "\\n",
    "#null!", "#value!", "#ref!", "#div/0!", "#name?", "#num!", "nil", "none", "missing", "<missing>", "-", "--", "---",
    ".", "..", "??", "???", "not available", "not applicable", "not known", "not specified", "unspecified",
)  # fmt: skip
"""Words for an unknown value in lower case, besides those of descriptions (:data:`UNSPECIFIED`)."""


def replace_missing_words(
    name: str, cells: Sequence[Cell], words: Collection[str] | None
) -> tuple[list[Cell], list[str]]:
    """Replace words that mean an unknown value by None; return the cells [N] of a column, and notes.

    Args:
        name: The column, for messages.
        cells: Its cells [N].
        words: The words besides :data:`UNSPECIFIED`, in any case; by default :data:`MISSING_WORDS`.

    Example:
        >>> cells, notes = replace_missing_words("hat", ["red", "N/A", None], None)
        >>> cells, notes[0].strip()
        (['red', None, None],
         "hat: 'N/A' 1 is taken as unknown; if it is a value, --unknown names the words that say so")
    """
    missing_words = {
        *UNSPECIFIED,
        *(MISSING_WORDS if words is None else (" ".join(word.split()).casefold() for word in words)),
    }
    longest = max(map(len, missing_words))
    replaced: Counter[str] = Counter()
    known_cells: list[Cell] = []
    for cell in cells:
        known = cell is not None and (len(cell) > 2 * longest or " ".join(cell.split()).casefold() not in missing_words)
        if cell is not None and not known:
            replaced[cell] += 1
        known_cells.append(cell if known else None)
    fixed = {word: count for word, count in replaced.items() if word.casefold() in UNSPECIFIED}
    notes = []
    for replaced_words, advice in (
        (
            {word: count for word, count in replaced.items() if word not in fixed},
            "--unknown names the words that say so",
        ),
        (fixed, "rename it"),
    ):
        if replaced_words and (words is None or replaced_words is fixed):  # the user knows the words that they name
            every = ", ".join(f"'{printable(word, 40)}' {count:,}" for word, count in list(replaced_words.items())[:5])
            is_are, it_is = ("is", "it is a value") if len(replaced_words) == 1 else ("are", "one is a value")
            notes.append(f"  {printable(name, 60)}: {every} {is_are} taken as unknown; if {it_is}, {advice}")
    return known_cells, notes

"""Words of cells that say that nothing is known: one set for all tables, folders and datasets."""

from collections import Counter
from collections.abc import Collection, Sequence

from mmgen.core.parsing import printable
from mmgen.data_recipes._own._cells import Cell
from mmgen.descriptions import UNSPECIFIED

__all__ = ["UNKNOWN_WORDS", "without_unknown"]

UNKNOWN_WORDS = (
    "na", "n/a", "n.a.", "#n/a", "#na", "#n/a n/a", "<na>", "nan", "-nan", "1.#qnan", "nat", "null", "<null>", "\\n",
    "#null!", "#value!", "#ref!", "#div/0!", "#name?", "#num!", "nil", "none", "missing", "<missing>", "-", "--", "---",
    ".", "..", "??", "???", "not available", "not applicable", "not known", "not specified", "unspecified",
)  # fmt: skip
"""What programs and people write for it, in lower case, besides what descriptions take for it (:data:`UNSPECIFIED`)."""


def without_unknown(name: str, cells: Sequence[Cell], words: Collection[str] | None) -> tuple[list[Cell], list[str]]:
    """A column's cells with None for those that say that nothing is known, and what is to be said of it.

    Args:
        name: The column, for what is said.
        cells: Its cells [N].
        words: The words besides :data:`UNSPECIFIED`, in any case; by default :data:`UNKNOWN_WORDS`.

    Example:
        >>> cells, said = without_unknown("hat", ["red", "N/A", None], None)
        >>> cells, said[0].strip()
        (['red', None, None],
         "hat: 'N/A' 1 is taken as unknown; if it is a value, --unknown names the words that say so")
    """
    meant = {*UNSPECIFIED, *(UNKNOWN_WORDS if words is None else (" ".join(word.split()).casefold() for word in words))}
    longest = max(map(len, meant))
    taken: Counter[str] = Counter()
    kept: list[Cell] = []
    for cell in cells:
        known = cell is not None and (len(cell) > 2 * longest or " ".join(cell.split()).casefold() not in meant)
        if cell is not None and not known:
            taken[cell] += 1
        kept.append(cell if known else None)
    fixed = {word: count for word, count in taken.items() if word.casefold() in UNSPECIFIED}
    said = []
    for found, advice in (
        ({word: count for word, count in taken.items() if word not in fixed}, "--unknown names the words that say so"),
        (fixed, "rename it"),
    ):
        if found and not (words is not None and found is not fixed):  # what somebody says need not be told to them
            every = ", ".join(f"'{printable(word, 40)}' {count:,}" for word, count in list(found.items())[:5])
            is_are, it_is = ("is", "it is a value") if len(found) == 1 else ("are", "one is a value")
            said.append(f"  {printable(name, 60)}: {every} {is_are} taken as unknown; if {it_is}, {advice}")
    return kept, said

"""How a table is laid out: words are never broken; what is too wide becomes a block of lines for each row."""

from collections.abc import Sequence
from typing import Any

from mmgen.parsing import shown

__all__ = ["laid_out", "plain_lines"]

_NUMBERS = ("", *"+-0123456789")  # how the cell of a number begins
_GAP = 3  # what the table adds to a column: a blank at each side and one between


def plain_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows for grep and cut: cells with a tab between, each on one line."""
    return ["\t".join(" ".join(cell.split()) for cell in row) for row in rows]


def _longest(text: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(word) for word in text.split()), default=0)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Width of each column, so that all fit and no word is broken; None where that cannot be.

    Args:
        columns: Heading and cells of each.
        room: Cells of the terminal for all of them together.
    """
    from rich.cells import cell_len

    least = [max(map(_longest, cells)) for cells in columns]
    most = [max(map(cell_len, cells)) for cells in columns]
    if sum(least) > room:
        return None
    # Numbers and names, which are short, are given all that they want first.
    left = room - sum(least)
    for place in sorted(range(len(columns)), key=lambda place: most[place] - least[place]):
        given = min(most[place] - least[place], left)
        least[place] += given
        left -= given
    return least


def laid_out(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Any:
    """Something that Rich can print: a table with numbers right-aligned and words left-aligned, or blocks of lines.

    Args:
        title: Above it, may be empty.
        columns: Headings.
        rows: Cells; nothing in them is markup.
        width: Cells of the terminal.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title, columns = shown(title), [shown(column) for column in columns]
    rows = [[shown(cell) for cell in row] for row in rows]  # cells may hold text of files
    cells = [[column, *(row[index] for row in rows)] for index, column in enumerate(columns)]
    widths = _widths(cells, width - _GAP * len(columns))
    if widths is None:
        return _blocks(title, columns, rows)
    drawn = Table(
        title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold",
        padding=(0, 1), show_edge=False,
    )  # fmt: skip
    for index, (column, size) in enumerate(zip(columns, widths, strict=True)):
        numbers = index > 0 and all(row[index][:1] in _NUMBERS for row in rows)
        drawn.add_column(Text(column), justify="right" if numbers else "left", width=size)
    for row in rows:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def _blocks(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Any:
    """Each row as lines of heading and value."""
    from rich.text import Text

    aligned = max(len(column) for column in columns)
    lines = [title] if title else []
    for row in rows:
        lines += ["", *(f"  {name:<{aligned}}  {cell}" for name, cell in zip(columns, row, strict=True) if cell)]
    return Text("\n".join(lines))

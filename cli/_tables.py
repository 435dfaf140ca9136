"""How a table is laid out: words are never broken; what is too wide becomes a block of lines for each row."""

import textwrap
from collections.abc import Sequence
from typing import Any

from mmgen.core.parsing import shown

__all__ = ["laid_out", "plain_lines"]

_NUMBERS = ("", *"+-0123456789")  # how the cell of a number begins
_GAP = 3  # what the table adds to a column: a blank at each side and one between
_TALLEST = 6  # lines of a cell, beyond which a narrow column is harder to read than a block


def plain_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows for grep and cut: cells with a tab between, each on one line."""
    return ["\t".join(" ".join(cell.split()) for cell in row) for row in rows]


def _longest(text: str) -> int:
    from rich.cells import cell_len

    if "±" in text and text[:1] in _NUMBERS:  # a number and its error are one word
        return cell_len(text)
    return max((cell_len(word) for word in text.split()), default=0)


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Width of each column, so that all fit and no word is broken; None where that cannot be, or cells become towers.

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
    tall = any(most[place] > _TALLEST * least[place] for place in range(len(columns)))
    return None if tall else least


def laid_out(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Any:
    """Something that Rich can print: a table with numbers right-aligned and words left-aligned, or blocks of lines.

    What is too wide says above the table what is the same in all rows; what is still too wide becomes blocks.

    Args:
        title: Above it, may be empty.
        columns: Headings.
        rows: Cells; nothing in them is markup.
        width: Cells of the terminal.
    """
    title, columns = shown(title), [shown(column) for column in columns]
    rows = [[shown(cell) for cell in row] for row in rows]  # cells may hold text of files
    every = list(range(len(columns)))
    differing = [place for place in every if len(rows) < 2 or len({row[place] for row in rows}) > 1]
    for kept in (every, differing):
        cells = [[columns[place], *(row[place] for row in rows)] for place in kept]
        widths = _widths(cells, width - _GAP * len(kept))
        if kept and widths is not None:
            same = "; ".join(f"{columns[place]}: {rows[0][place]}" for place in every if place not in kept)
            return _drawn("\n".join(filter(None, (title, same))), cells, widths)
    return _blocks(title, columns, rows, width)


def _drawn(title: str, columns: Sequence[Sequence[str]], widths: Sequence[int]) -> Any:
    """A table of columns, each a heading and its cells."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(
        title=Text(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold",
        padding=(0, 1), show_edge=False,
    )  # fmt: skip
    for index, ((heading, *cells), size) in enumerate(zip(columns, widths, strict=True)):
        numbers = index > 0 and all(cell[:1] in _NUMBERS for cell in cells)
        drawn.add_column(Text(heading), justify="right" if numbers else "left", width=size)
    for row in zip(*(cells[1:] for cells in columns), strict=True):
        drawn.add_row(*map(Text, row))
    return drawn


def _blocks(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Any:
    """Each row as lines of heading and value."""
    from rich.text import Text

    aligned = max(len(column) for column in columns)
    lines = [title] if title else []
    for row in rows:
        lines.append("")
        for name, cell in zip(columns, row, strict=True):
            first, indent = f"  {name:<{aligned}}  ", " " * (aligned + 4)
            lines += textwrap.wrap(
                cell, max(width, aligned + 20), initial_indent=first, subsequent_indent=indent,
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
    return Text("\n".join(lines))

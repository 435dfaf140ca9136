"""The frame of all tables of scores: long records of row, column and cell, and their arrangement.

``eval``, ``compare``, ``quickstart``, ``report`` and ``reproduce`` choose which records they show, and what names a row
and a column; what is shown of a :class:`mmgen.results.score.Score` is decided there. No table has a column without any
cell, nor two columns of one heading.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from mmgen.results.table import Cell, Table

Row = TypeVar("Row", bound=Hashable)
Column = TypeVar("Column", bound=Hashable)
Value = TypeVar("Value")


def pivot(
    records: Iterable[tuple[Row, Column, Value]], order: Iterable[Column] = ()
) -> tuple[list[Column], dict[Row, list[Value | None]]]:
    """Arrange long records in rows and columns; of several records of one cell the last counts.

    Args:
        records: Row, column and cell of each.
        order: Columns in their order, as far as they occur; others follow in the order of their first records.

    Returns:
        The columns, and the cells of each row, None where there is no record.

    Example:
        >>> pivot([("a", "x", 1), ("b", "y", 2)])
        (['x', 'y'], {'a': [1, None], 'b': [None, 2]})
    """
    cells = {(row, column): value for row, column, value in records}
    occurring = {column for _, column in cells}
    columns = [one for one in dict.fromkeys([*order, *(column for _, column in cells)]) if one in occurring]
    return columns, {row: [cells.get((row, one)) for one in columns] for row in dict.fromkeys(row for row, _ in cells)}


def table_of(title: str, rows: Sequence[Mapping[str, Cell | None]]) -> Table:
    """Make a table of rows that name their cells; columns that would be empty are left out.

    Args:
        title: Title of the table.
        rows: Cells by heading; columns have the order of the first row.
    """
    headings = dict.fromkeys(heading for row in rows for heading in row)
    used = [heading for heading in headings if any(row.get(heading) for row in rows)]
    return Table(title, used, [[row.get(heading) or "" for heading in used] for row in rows])

"""Parquet tables, whose footer is checked before any row is read."""

import io
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from mmgen.core.errors import DataError, UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.parsing import printable

__all__ = ["read_parquet"]

_NO_ARROW = f"needs pyarrow, which is not installed: {how_to_install('hub')}; or save the table as metadata.csv"
_AT_ONCE = 1024  # rows


def read_parquet(
    data: bytes, where: str, most_bytes: int, most_cells: int, ignore: Collection[str]
) -> tuple[list[str], Iterator[tuple[int, Sequence[Any]]]]:
    """Read a Parquet table: names of its columns, and an iterator over row numbers and values.

    Args:
        data: The file's bytes.
        where: Name of the file in errors.
        most_bytes: Limit of unpacked bytes.
        most_cells: Limit of cells.
        ignore: Columns that are not read, whose values are None.

    Raises:
        DataError: The file is damaged or too large.
        UsageError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UsageError(f"{where} {_NO_ARROW}") from None

    def damaged_error(error: Exception) -> DataError:
        return DataError(f"{where} is no table in Parquet, or damaged ({printable(str(error), 120)}); write it again")

    try:
        # Words by number, as they are stored: a long one that every row has would else be there for every row.
        words = [
            name for name, kind in _column_types(pyarrow, ParquetFile(io.BytesIO(data))) if name not in ignore and kind
        ]
        file = ParquetFile(io.BytesIO(data), read_dictionary=words)
        names = list(file.schema_arrow.names)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        rows, size = file.metadata.num_rows, sum(group.total_byte_size for group in groups)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise damaged_error(error) from None
    read = [name for name in names if name not in ignore]
    if rows * max(1, len(read)) > most_cells:
        raise DataError(
            f"{where} has {rows:,} rows and {len(read):,} columns that are read, expected at most {most_cells:,} "
            "cells; leave out rows, or columns with --ignore"
        )
    if size > most_bytes:
        raise DataError(f"{where} unpacks to {size:,} bytes, expected at most {most_bytes:,}; leave out columns")

    def read_rows() -> Iterator[tuple[int, Sequence[Any]]]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_AT_ONCE, columns=read):
                batch.validate(full=True)  # a damaged file may name words that are not there
                arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
                nothing = [None] * batch.num_rows
                cells = [_column_values(pyarrow, arrays[name]) if name in arrays else nothing for name in names]
                for row in zip(*cells, strict=True):
                    number += 1
                    yield number, row
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise damaged_error(error) from None

    return names, read_rows()


def _column_types(pyarrow: Any, file: Any) -> list[tuple[str, bool]]:
    """Return the columns, and whether each holds texts."""
    kinds = pyarrow.types
    return [(one.name, kinds.is_string(one.type) or kinds.is_large_string(one.type)) for one in file.schema_arrow]


def _column_values(pyarrow: Any, column: Any) -> list[Any]:
    if not pyarrow.types.is_dictionary(column.type):
        return list(column.to_pylist())
    words = column.dictionary.to_pylist()
    return [None if place is None else words[place] for place in column.indices.to_pylist()]

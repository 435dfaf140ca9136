"""Bounds of tables: memory, and damaged files."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from mmgen.core.errors import DataError
from mmgen.data_recipes._own import _tables
from mmgen.data_recipes._own._tables import read_table
from tests.own_data._tables import COLOURS, NAMES, N


def _null_rows(path: Path) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({f"c{n}": pyarrow.nulls(2**12) for n in range(17)}), path)
    return path.read_bytes()


def test_bounds_hold_before_memory_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables whose rows times columns are far more than their bytes; of a bound that is small, to be quick."""
    monkeypatch.setattr(_tables, "_MOST_CELLS", 2**16)
    wide = json.dumps({"file_name": "a", **{f"c{n}": 1 for n in range(999)}})
    bombs = {
        "t.jsonl": (wide + "\n" + "{}\n" * 2_000).encode(),
        "t.csv": b"\n" * (2**16 + 1),
        "t.parquet": _null_rows(tmp_path / "t.parquet"),
    }
    for name, data in bombs.items():
        tracemalloc.start()
        try:
            with pytest.raises(DataError, match="65,536"):
                read_table(data, name)
            assert tracemalloc.get_traced_memory()[1] < 2**22, name
        finally:
            tracemalloc.stop()


def test_a_word_that_every_row_has_is_there_once(tmp_path: Path) -> None:
    """Parquet keeps a long text by number; were it unpacked, 1,024 rows of it would take 100 MB."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    words = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 200 * N), ["x" * 100_000])
    columns = {"file_name": NAMES * 200, "x": words}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet", store_schema=False)
    tracemalloc.start()
    try:
        found = read_table((tmp_path / "t.parquet").read_bytes(), "t.parquet")
        assert tracemalloc.get_traced_memory()[1] < 2**23 and len(found.columns["x"]) == N * 200
    finally:
        tracemalloc.stop()


def test_a_damaged_table_in_parquet_is_refused_or_read(tmp_path: Path) -> None:
    """Whatever bytes are wrong: a word that is not there is not looked for."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"file_name": NAMES * 5, "x": COLOURS * 5}), tmp_path / "t.parquet")
    data = np.frombuffer((tmp_path / "t.parquet").read_bytes(), np.uint8)
    drawn, refused = np.random.default_rng(0), 0
    for _ in range(600):
        wrong = data.copy()
        wrong[drawn.integers(len(data), size=3)] = drawn.integers(256, size=3)
        try:
            read_table(wrong.tobytes(), "t.parquet")
        except DataError as error:
            refused += str(error).isprintable()
    assert refused > 300

"""One rule of rounding, and the printers of one table."""

import csv
import io

import pytest

from mmgen.results.number import Number
from mmgen.results.table import Table


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (85.94, 1.08, "85.9 ± 1.1"),
        (85.94, 0.38, "85.9 ± 0.4"),
        (85.94, 0.354, "85.94 ± 0.35"),
        (85.94, 0.355, "85.9 ± 0.4"),
        (92.345, 0.96, "92.3 ± 1.0"),
        (92.345, 0.949, "92.3 ± 0.9"),
        (92.345, 9.5, "92 ± 10"),
        (0.0999, None, "0.100"),
        (9.99, 9.96, "10 ± 10"),
        (-1234.567, 12.3, "-1,235 ± 12"),
        (-1234.567, 456.0, "-1,235 ± 456"),
        (87.0, 0.0461, "87.00 ± 0.05"),
        (2.0, 1e-8, "2.00000 ± 1e-08"),
        (100.0, 0.0, "100.00 ± 0.00"),
        (3.14159, None, "3.14"),
        (0.00123, None, "0.0012"),
        (0.0, None, "0.00"),
        (0.06, 1.3, "0.1 ± 1.3"),
        (float("nan"), 1.0, "not finite"),
        (1.0, float("inf"), "1.00"),
        (9e59, 5e-324, f"{9e59:,.5f} ± 5e-324"),
    ],
)
def test_a_number_is_rounded_by_its_error(value: float, error: float | None, text: str) -> None:
    assert str(Number(value, error)) == text


def test_counts_signs_units_intervals_and_notes() -> None:
    assert str(Number(1234567, 0.0, "parameters", whole=True)) == "1,234,567 parameters"
    assert str(Number(1.5, 0.2, "%", note=", n = 2")) == "1.50 ± 0.20 %, n = 2"
    assert str(Number(2.0, 1.1, signed=True, interval=(-0.44, 4.4))) == "+2.0 [-0.4, +4.4]"


TABLE = Table(
    "Scores_1 <b>",
    ["drawn from", "correctness|%", "n"],
    [
        ["q(z|y)", Number(85.94, 1.08, best=True), "1,000"],
        ["=1+1\x07", Number(-1234.5, signed=True, interval=(-2.0, 1.0)), ""],
    ],
    note="± is & remains.",
    label="tab:a",
)


def test_every_printer_rounds_alike() -> None:
    assert " q(z|y)                    85.9* ± 1.1   1,000" in TABLE.text().splitlines()
    assert "| q(z\\|y) | **85.9** ± 1.1 | 1,000 |" in TABLE.markdown().splitlines()
    assert r"q(z\textbar{}y) & $\mathbf{85.9} \pm 1.1$ & 1,000 \\" in TABLE.latex().splitlines()
    assert "<td>q(z|y)</td><td><b>85.9 ± 1.1</b></td>" in TABLE.html()


def test_files_get_full_precision() -> None:
    table = Table("", ["a", "b"], [["x\ty", Number(1 / 3, 1 / 7)], ["z", Number(2.0)]])
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert [(float(row["b"]), row["b: error"]) for row in rows] == [(1 / 3, str(1 / 7)), (2.0, "")]
    assert table.tab_separated() == f"x y\t{1 / 3}\t{1 / 7}\nz\t2.0\t"


def test_what_a_file_says_stays_text() -> None:
    assert "\x07" not in TABLE.text() + TABLE.markdown() + TABLE.latex() + TABLE.html()
    assert "'=1+1" in TABLE.csv()
    assert "Scores_1 &lt;b&gt;" in TABLE.html() and r"\caption{Scores\_1 \textless{}b\textgreater{}}" in TABLE.latex()
    assert "correctness\\|%" in TABLE.markdown()

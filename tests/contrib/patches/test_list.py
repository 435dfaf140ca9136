"""The list of the lecture on patches."""

from mmgen.experiments._plan import read_plan


def test_a_row_with_the_papers_numbers_alone() -> None:
    row = next(row for table in read_plan("salakhutdinov-bsds").table for row in table.row if not row.measured)
    assert row.name == "RNADE" and any(row.paper)

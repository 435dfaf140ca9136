"""The papers' numbers stand in one file, once; reports, figures and reproductions read them there."""

import re
from collections import Counter
from pathlib import Path

import pytest

import mmgen
from mmgen import experiments
from mmgen.core.errors import SettingsError
from mmgen.core.parsing import parse_toml
from mmgen.experiments._page import comparison_tables
from mmgen.experiments._plan import read_plan
from mmgen.experiments._tables import Table, TableComparison
from mmgen.figures.report.scores import _published_cells, make_score_tables
from mmgen.results.comparison import Column as ScoreColumn
from mmgen.results.conditions import Conditions
from mmgen.results.published import published_papers, published_table, published_tables
from mmgen.results.score import Score
from mmgen.settings.config import validate

ROOT = Path(mmgen.__file__).parent
TABLES = [(name, number) for name in experiments.experiment_names() for number in range(len(read_plan(name).table))]


def test_each_table_says_its_paper_and_no_cell_is_there_twice() -> None:
    tables = published_tables()
    assert max(Counter(table.source for table in tables).values()) == 1
    for table in tables:
        assert table.source.split()[0] in published_papers()
        assert re.search(r"(Table|Fig\.) \w+", table.source), table.source
        assert max(Counter(table.names).values()) == 1, f"{table.source} has two parts of one name"


@pytest.mark.parametrize(("name", "number"), TABLES)
def test_every_number_of_a_list_is_the_published_one(name: str, number: int) -> None:
    """And lists say none themselves: what they name is all there, each number of the paper stands in some cell."""
    written = parse_toml(experiments.experiment_text(name)).get("table", ())  # of a file that extends another: there
    assert not any("paper" in row for table in written for row in table["row"])
    table = read_plan(name).table[number]
    shown = [value for row in table.row for value in row.paper if value != ""]
    if not table.published:
        assert not shown and "no numbers" in read_plan(name).dataset
        return
    source = published_table(table.published)
    for row in table.row:
        for column, value in zip(table.column, row.paper, strict=False):
            found = source.number(row.published or row.name, column.published or column.name)
            assert found == (None if value == "" else value)
    whole = [value for row in source.row for value in row["values"] if value != ""]
    parts = [part for part in read_plan(name).table if part.published == table.published]  # of one published table
    cells = [value for part in parts for row in part.row for value in row.paper if value != ""]
    if not experiments.lacking_commands(name):  # whose rows are left out
        assert Counter(cells) == Counter(whole), "a number of the paper has no cell, or two"


def test_no_number_of_a_paper_is_spelled_anywhere_else() -> None:
    """Numbers of four digits and more, which nothing else happens to be."""
    numbers = {
        str(value)
        for table in published_tables()
        for row in table.row
        for value in row["values"]
        if value != "" and len(str(value).strip("-").replace(".", "")) >= 4
    }
    assert len(numbers) > 100
    for path in [*ROOT.rglob("*.toml"), *ROOT.rglob("*.py")]:
        if path.name == "published.toml":
            continue
        found = set(re.findall(r"-?\d+\.\d+", path.read_text(encoding="utf-8"))) & {n for n in numbers if "." in n}
        assert not found, f"{path.relative_to(ROOT)} repeats {found}"


def test_numbers_from_memory_say_so_wherever_they_stand() -> None:
    """In tables of mmgen reproduce and in reports; and so does whatever else is to be known of a table."""
    plan = read_plan("kim-figure")
    ours = [TableComparison(table, tuple((None,) * len(table.column) for _ in table.row)) for table in plan.table]
    assert "(published numbers from memory, not confirmed)" in comparison_tables(plan, ours)[0].title
    settings = {"recipe": "dsprites", "orientations": 40, "number": 737280}
    for metric, source in (("beta-score", "HM Table 1"), ("factor-score", "KM Fig. 4")):
        score = Score(metric, "accuracy", 70.0, 1.0, "%", "higher", 100, "image", ids={"dataset": "d", "model": "m"})
        (shown,) = make_score_tables([score], {}, data={"d": settings})
        papers = [row.posterior for row in shown.rows if row.published]
        assert papers and set(papers) == {f"{source}, dSprites (from memory)"}
        assert any("published numbers from memory" in note for note in shown.footnotes)
    assert "misprint" in published_table("GA Table 1, MNIST").remarks


COLUMN, ROW = {"name": "MVAE"}, {"name": "log p(x1)"}


def test_every_published_table_can_be_drawn_in_a_report() -> None:
    """Rows with a spread for some of their numbers too."""
    for table in published_tables():
        for row in table.row:
            conditions = Conditions(row.get("metric", ""), row["unit"], row.get("protocol", ""), "", "")
            column = ScoreColumn(row.get("given"), row.get("quantity", ""), None)
            drawn = _published_cells(table, conditions, [column])
            shown = [str(number) for *_, number in drawn]
            assert len(shown) >= sum(value != "" for value in row["values"]) or "metric" not in row


def test_a_table_may_have_models_as_rows_or_as_columns() -> None:
    for columns, rows in (([COLUMN], [ROW]), ([ROW], [COLUMN])):
        table = validate(Table, {"published": "WG Table 2, MNIST", "column": columns, "row": rows})
        assert table.row[0].paper == (-90.619,)
    own = validate(Table, {"column": [COLUMN], "row": [ROW | {"paper": [-1.5]}]})  # as lists said it before
    assert own.row[0].paper == (-1.5,)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"published": "WG Table 2, MNST", "column": [COLUMN], "row": [ROW]}, "did you mean 'WG Table 2, MNIST'"),
        ({"published": "WG Table 2, MNIST", "column": [COLUMN], "row": [{"name": "r", "published": "log p(x)"}]},
         r"unknown part of WG Table 2, MNIST 'log p\(x\)': did you mean 'log p\(x1\)'"),
        ({"published": "WG Table 2, MNIST", "column": [COLUMN], "row": [ROW | {"paper": [1.0]}]},
         "expected one of the two; leave one out"),
        ({"published": "WG Table 2, MNIST", "column": [COLUMN], "row": [{"name": "r"}]}, "none of whose numbers"),
    ],
)  # fmt: skip
def test_mistakes_are_said(values: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        validate(Table, values)

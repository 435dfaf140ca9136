"""The same score reads the same in every output: one file, one string."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mmgen.cli import _measure as eval_cli
from mmgen.cli.quickstart import final_table
from mmgen.experiments import compare_table, comparison_tables, read_plan
from mmgen.figures.report.scores import make_score_tables
from mmgen.results.comparing import compare_scores
from mmgen.results.score import Score, Scores, read_scores, tabulate_scores
from mmgen.results.table import Table

READS = "85.9 ± 1.1"


@pytest.fixture
def scores(tmp_path: Path) -> list[Score]:
    score = Score(
        "correctness", "correctness", 85.94, 1.08, "%", "higher", 6000, "aggregate", 9, "paper",
        {"digit": 90.0, "mean": 90.0}, ids={"model": "m" * 64, "judge": "j" * 64},
        run={"name": "telbo", "settings": "s", "seed": "0"}, conditions={"split": "iid", "part": "test"}, seed=0,
    )  # fmt: skip
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(one.to_json()) + "\n" for one in (score, replace(score, given=4))))
    return read_scores(path)


def test_eval(scores: list[Score], capsys: pytest.CaptureFixture[str]) -> None:
    eval_cli.show_scores(scores, as_result=False)
    assert READS in capsys.readouterr().err


def test_compare(scores: list[Score]) -> None:
    compared = compare_scores([("telbo", scores)])
    (table,) = compared.printable_tables()
    assert all(READS in text for text in (table.text(80), compared._repr_html_(), compared.markdown()))
    assert READS.replace("±", r"\pm") in compared.latex()
    assert [json.loads(line)["mean"] for line in compared.json_lines().splitlines()] == [85.94] * 2


def test_report(scores: list[Score]) -> None:
    (table,) = make_score_tables(scores, {})
    assert {str(cell) for row in table.rows for cell in row.cells if not row.published} == {READS}


def test_reproduce(scores: list[Score]) -> None:
    plan = read_plan("cremer-table1")
    (table, *_) = comparison_tables(plan, [compare_table(plan.table[0], {"scores.jsonl": scores})])
    found = [(heading, str(cell)) for row in table.rows for heading, cell in zip(table.columns, row, strict=True)]
    assert READS in [cell for heading, cell in found if "ours" in heading]


def test_model_card(scores: list[Score]) -> None:
    assert READS in tabulate_scores(scores).markdown()


def test_quickstart(scores: list[Score]) -> None:
    whole = [
        replace(score, protocol="exact", details={"all_right": 85.94, "all_right_stderr": 1.08}) for score in scores
    ]
    assert READS in Table("", *final_table(whole)).text()


def test_notebook(scores: list[Score]) -> None:
    assert READS in repr(Scores(scores)) and READS in Scores(scores)._repr_html_()


def test_files_keep_full_precision(scores: list[Score]) -> None:
    assert "85.94,1.08" in tabulate_scores(scores).csv() and "85.94\t1.08" in tabulate_scores(scores).tab_separated()
    assert scores[0].to_json()["value"] == 85.94


def test_print(scores: list[Score]) -> None:
    assert str(scores[0]) == f"correctness: {READS} %"

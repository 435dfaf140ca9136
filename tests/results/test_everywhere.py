"""The same score reads the same in every output: one file, one string."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

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


def reproduced(scores: list[Score]) -> str:
    plan = read_plan("cremer-table1")
    (table, *_) = comparison_tables(plan, [compare_table(plan.table[0], {"scores.jsonl": scores})])
    found = [(heading, str(cell)) for row in table.rows for heading, cell in zip(table.columns, row, strict=True)]
    return " ".join(cell for heading, cell in found if "ours" in heading)


def reported(scores: list[Score]) -> str:
    (table,) = make_score_tables(scores, {})
    (text,) = {str(cell) for row in table.rows for cell in row.cells if not row.published}
    return text


def quick(scores: list[Score]) -> str:
    details = {"all_right": 85.94, "all_right_stderr": 1.08}
    return Table("", *final_table([replace(score, protocol="exact", details=details) for score in scores])).text()


OUTPUTS: dict[str, Callable[[list[Score]], str]] = {
    "text": lambda scores: compare_scores([("telbo", scores)]).printable_tables()[0].text(80),
    "html": lambda scores: compare_scores([("telbo", scores)])._repr_html_(),
    "markdown": lambda scores: compare_scores([("telbo", scores)]).markdown(),
    "latex": lambda scores: compare_scores([("telbo", scores)]).latex().replace(r"\pm", "±"),
    "report": reported,
    "reproduce": reproduced,
    "model card": lambda scores: tabulate_scores(scores).markdown(),
    "quickstart": quick,
    "notebook": lambda scores: repr(Scores(scores)),
    "notebook page": lambda scores: Scores(scores)._repr_html_(),
    "print": lambda scores: str(scores[0]),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_people_read_one_string(output: str, scores: list[Score]) -> None:
    assert READS in OUTPUTS[output](scores)


def test_eval_prints_it_and_files_keep_full_precision(scores: list[Score], capsys: Any) -> None:
    eval_cli.show_scores(scores, as_result=False)
    assert READS in capsys.readouterr().err
    assert "85.94,1.08" in tabulate_scores(scores).csv() and "85.94\t1.08" in tabulate_scores(scores).tab_separated()
    lines = compare_scores([("telbo", scores)]).json_lines().splitlines()
    assert [json.loads(line)["mean"] for line in lines] == [85.94, 85.94] and scores[0].to_json()["value"] == 85.94

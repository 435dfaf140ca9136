"""Score tables: what is read, how it is arranged, which published numbers stand beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from mmgen.errors import ArtifactError
from mmgen.figures.scores import published_judges, published_papers, published_tables, read_scores, score_tables


def _read(tmp_path: Path, *lines: dict[str, Any]) -> Any:
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "\n")
    return read_scores(path)


def _correctness(value: float | None, given: int, posterior: str = "aggregate", **more: Any) -> dict[str, Any]:
    line = {"metric": "correctness", "value": value, "stderr": 0.4, "unit": "%", "better": "higher", "given": given}
    return line | {"posterior": posterior, "ids": {"aggregate": f"id-{posterior}"}} | more


def test_columns_run_from_concrete_to_abstract_and_the_best_is_marked(tmp_path: Path) -> None:
    scores = _read(
        tmp_path,
        *(_correctness(80.0 + g, g) for g in (1, 3, 4, 2)),
        *(_correctness(90.0 - 5 * g, g, "true") for g in (1, 4)),
    )
    (table,) = score_tables(scores, {"id-aggregate": "mine"})
    assert table.columns == ["4 given", "3 given", "2 given", "1 given"]
    assert [row.label for row in table.rows] == ["mine", "id-true"]
    mine, other = table.rows
    assert [cell.best if cell else None for cell in mine.cells] == [True, True, True, False]
    assert other.cells[1] is None and other.cells[3] is not None and other.cells[3].best
    assert mine.cells[0] is not None and mine.cells[0].text == "84.0 ± 0.4"


def test_published_numbers_stand_only_beside_the_same_dataset(tmp_path: Path) -> None:
    scores = _read(tmp_path, _correctness(80, 4), _correctness(80, 1))
    (table,) = score_tables(scores, {}, recipe="mnist-a")
    papers = {row.label: [cell.text if cell else None for cell in row.cells] for row in table.rows if row.published}
    assert papers == {
        "TELBO": ["82.08 ± 0.56", "83.67"],
        "JMVAE": ["85.15 ± 0.26", "81.58"],
        "BiVCCA": ["67.38 ± 0.69", "68.36"],
    }
    assert "VE Fig. 4a" in table.footnotes[0]
    (elsewhere,) = score_tables(scores, {}, recipe="mnist")
    assert not any(row.published for row in elsewhere.rows)


def test_protocols_and_splits_do_not_share_a_table(tmp_path: Path) -> None:
    scores = _read(
        tmp_path,
        _correctness(80, 3, metric="coverage", protocol="exact"),
        _correctness(80, 3, metric="coverage", protocol="paper"),
        _correctness(80, 3, metric="coverage", protocol="paper", extra={"split": "compositional"}),
    )
    tables = score_tables(scores, {}, recipe="mnist-a")
    assert [(t.protocol, t.split) for t in tables] == [("exact", ""), ("paper", ""), ("paper", "compositional")]
    assert [any(row.published for row in t.rows) for t in tables] == [False, True, True]


@pytest.mark.parametrize(
    ("differs", "heading"),
    [
        ({"extra": {"split": "iid", "part": "val"}}, "split iid, part val"),
        ({"ids": {"aggregate": "id-aggregate", "dataset": "other", "judge": "j"}}, "split iid, dataset other"),
        ({"ids": {"aggregate": "id-aggregate", "dataset": "d", "judge": "other"}}, "split iid, judge second"),
    ],
    ids=["part", "dataset", "judge"],
)
def test_what_cannot_be_compared_does_not_share_a_table(tmp_path: Path, differs: Any, heading: str) -> None:
    """Nothing is dropped, and the best is the best of one dataset and one judge."""
    shared = {
        "extra": {"split": "iid", "part": "test"},
        "ids": {"aggregate": "id-aggregate", "dataset": "d", "judge": "j"},
    }
    lines = [_correctness(value, 4, posterior, **shared) for value, posterior in ((90, "aggregate"), (80, "true"))]
    lines += [
        _correctness(value, 4, posterior, **shared | differs) for value, posterior in ((70, "aggregate"), (60, "true"))
    ]
    tables = score_tables(_read(tmp_path, *lines), {"other": "second"} if "judge" in heading else {})
    assert [[(row.cells[0].text, row.cells[0].best) for row in table.rows] for table in tables] == [
        [("90.0 ± 0.4", True), ("80.0 ± 0.4", False)],
        [("70.0 ± 0.4", True), ("60.0 ± 0.4", False)],
    ]
    assert tables[1].about == heading
    assert not any("more than once" in note for table in tables for note in table.footnotes)


def test_what_was_measured_again_is_told(tmp_path: Path) -> None:
    """The best is one of the numbers shown."""
    scores = _read(tmp_path, *(_correctness(v, 4) for v in (90, 80, 80)), _correctness(70, 4, "true"))
    (table,) = score_tables(scores, {})
    assert [(row.cells[0].text, row.cells[0].best) for row in table.rows] == [
        ("80.0 ± 0.4", True),
        ("70.0 ± 0.4", False),
    ]
    assert table.footnotes == [
        "1 number was measured more than once, with other seeds or settings; the last line is shown."
    ]


def test_the_prior_belongs_to_the_model(tmp_path: Path) -> None:
    scores = _read(tmp_path, _correctness(50, 4, "prior"))
    (table,) = score_tables(scores, {"id-model": "vae"}, models={"id-prior": "id-model"})
    assert (table.rows[0].label, table.rows[0].posterior) == ("vae", "p(z): prior")


def test_a_score_that_is_not_finite_says_so_and_never_wins(tmp_path: Path) -> None:
    (table,) = score_tables(_read(tmp_path, _correctness(None, 4), _correctness(10, 4, "true")), {})
    texts = [(row.cells[0].text, row.cells[0].best) for row in table.rows if row.cells[0]]
    assert texts == [("not finite", False), ("10.0 ± 0.4", True)]


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        '{"value": 1}',
        '{"metric": "a", "value": "b"}',
        '{"metric": "a", "value": 1, "ids": 3}',
        '{"metric": "a", "value": 1, "given": "4"}',
        "x",
    ],
)
def test_what_is_no_score_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "scores.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ArtifactError, match="line 1"):
        read_scores(path)


def test_published_tables_are_whole() -> None:
    papers = published_papers()
    for table in published_tables():
        assert table.source.split()[0] in papers
        for row in table.row:
            assert len(row["values"]) == len(table.columns)
            assert len(row.get("spread", table.columns)) == len(table.columns)
            assert row["unit"] in ("%", "nats")
    assert published_judges("mnist-a")[0][1]["digit"] == 91.18

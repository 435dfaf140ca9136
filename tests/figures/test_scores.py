"""Score tables: what is read, how it is arranged, which published numbers stand beside it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmgen.core.errors import ArtifactError
from mmgen.figures.report.scores import make_score_tables
from mmgen.results.published import published_classifiers, published_papers, published_tables
from mmgen.results.score import Score, read_scores
from tests.worlds import added_rows

VE_DATA = {"recipe": "mnist-a", "size": 64, "binarise": True, "source": "mnist", "number": 700_000}


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
    (table,) = make_score_tables(scores, {"id-aggregate": "mine"})
    assert table.columns == ["4 given", "3 given", "2 given", "1 given"]
    assert [row.label for row in table.rows] == ["mine", "id-true"]
    mine, other = table.rows
    # Of what was measured once there is no best.
    assert [cell.best if cell else None for cell in mine.cells] == [True, False, False, False]
    assert other.cells[1] is None and other.cells[3] is not None and other.cells[3].best
    assert mine.cells[0] is not None and str(mine.cells[0]) == "84.0 ± 0.4"


def test_published_numbers_stand_only_beside_the_same_dataset(tmp_path: Path) -> None:
    scores = _read(tmp_path, _correctness(80, 4), _correctness(80, 1))
    (table,) = make_score_tables(scores, {}, data={"d": VE_DATA})
    papers = {row.label: [str(cell) if cell else None for cell in row.cells] for row in table.rows if row.published}
    assert papers == {
        "TELBO": ["82.08 ± 0.56", "83.67"],
        "JMVAE": ["85.15 ± 0.26", "81.58"],
        "BiVCCA": ["67.38 ± 0.69", "68.36"],
    }
    assert "VE Fig. 4a" in table.footnotes[0]
    (elsewhere,) = make_score_tables(scores, {}, data={"d": VE_DATA | {"recipe": "mnist"}})
    assert not any(row.published for row in elsewhere.rows)


@pytest.mark.parametrize("changed", [{"size": 32}, {"binarise": False}, {"source": "digits"}])
def test_published_numbers_of_other_data_are_left_out(tmp_path: Path, changed: Any) -> None:
    ids = {"aggregate": "id-aggregate", "dataset": "d"}
    scores = _read(tmp_path, _correctness(80, 4, ids=ids), _correctness(70, 4, "true", ids=ids | {"dataset": "other"}))
    same, other = make_score_tables(scores, {}, data={"d": VE_DATA, "other": VE_DATA | changed})
    assert any(row.published for row in same.rows)
    assert not any(row.published for row in other.rows) and not other.footnotes


def test_every_published_number_says_which_data_it_is_about() -> None:
    """And each is its own data: the default settings of its recipe, but for what the paper chose otherwise."""
    from mmgen import data_recipes

    by_worlds = added_rows("CHOSEN_BY_PAPERS")
    for published in (*published_tables(), *published_classifiers()):
        assert published.settings.keys() & {"size", "network", "orientations", "side", "languages", "pictures"}
        known = data_recipes.get(published.recipe).model_fields
        chosen = {"binarise": "dynamic"} if published.source.startswith("BGS") else {}
        chosen |= {key: published.settings[key] for key in by_worlds.get(published.recipe, ())}
        assert set(published.settings) <= {*known, *chosen}
        defaults = {key: known[key].default for key in published.settings if key in known}
        own = {"recipe": published.recipe} | defaults | chosen
        assert published.differences(own) == []
        for key in published.settings:
            assert published.differences({**own, key: "another"}) != []
            assert published.differences({k: v for k, v in own.items() if k != key}) == [f"{key} not recorded"]


def test_scores_of_a_dataset_that_is_gone_have_no_papers_beside_them(tmp_path: Path) -> None:
    (table,) = make_score_tables(_read(tmp_path, _correctness(80, 4, ids={"dataset": "gone"})), {}, data={"d": VE_DATA})
    assert not any(row.published for row in table.rows)


@pytest.mark.parametrize(
    ("better", "values", "errors", "bold"),
    [
        ("higher", (80.0, 79.0, 70.0), (0.4, 0.4, 0.4), [True, True, False]),  # 2 sqrt(0.32) = 1.13
        ("higher", (80.0, 78.8, 70.0), (0.4, 0.4, 0.4), [True, False, False]),
        ("lower", (80.0, 79.0, 70.0), (0.4, 0.4, 0.4), [False, False, True]),
        ("lower", (80.0, 79.0, 70.0), (6.0, 0.4, 0.4), [True, False, True]),
        ("higher", (80.0, 80.0, 79.9), (None, None, None), [True, True, False]),
    ],
)
def test_bold_is_what_is_not_worse_by_two_standard_errors(
    tmp_path: Path, better: str, values: Any, errors: Any, bold: list[bool]
) -> None:
    lines = [
        _correctness(value, 4, f"p{i}", stderr=error, better=better)
        for i, (value, error) in enumerate(zip(values, errors, strict=True))
    ]
    (table,) = make_score_tables(_read(tmp_path, *lines), {})
    assert [cell.best for row in table.rows for cell in row.cells if cell] == bold


def test_nothing_is_bold_alone(tmp_path: Path) -> None:
    (table,) = make_score_tables(_read(tmp_path, _correctness(80, 4), _correctness(90, 3)), {})
    assert [cell.best for cell in table.rows[0].cells if cell] == [False, False]


def test_protocols_and_splits_do_not_share_a_table(tmp_path: Path) -> None:
    scores = _read(
        tmp_path,
        _correctness(80, 3, metric="coverage", protocol="exact"),
        _correctness(80, 3, metric="coverage", protocol="paper"),
        _correctness(80, 3, metric="coverage", protocol="paper", conditions={"split": "compositional"}),
    )
    tables = make_score_tables(scores, {}, data={"d": VE_DATA})
    assert [t.about for t in tables] == [
        "protocol exact, split not recorded",
        "protocol paper, split not recorded",
        "protocol paper, split compositional",
    ]
    assert [any(row.published for row in t.rows) for t in tables] == [False, True, True]


@pytest.mark.parametrize(
    ("differs", "heading"),
    [
        ({"conditions": {"split": "iid", "part": "val"}}, "split iid, part val"),
        ({"ids": {"aggregate": "id-aggregate", "dataset": "other", "judge": "j"}}, "split iid, dataset other"),
        ({"ids": {"aggregate": "id-aggregate", "dataset": "d", "judge": "other"}}, "split iid, judge second"),
        ({"conditions": {"split": "iid", "part": "test", "samples": "5"}}, "split iid, importance samples 5"),
    ],
    ids=["part", "dataset", "judge", "samples"],
)
def test_what_cannot_be_compared_does_not_share_a_table(tmp_path: Path, differs: Any, heading: str) -> None:
    """Nothing is dropped, and the best is the best of one dataset and one judge."""
    shared = {
        "conditions": {"split": "iid", "part": "test"},
        "ids": {"aggregate": "id-aggregate", "dataset": "d", "judge": "j"},
    }
    lines = [_correctness(value, 4, posterior, **shared) for value, posterior in ((90, "aggregate"), (80, "true"))]
    lines += [
        _correctness(value, 4, posterior, **shared | differs) for value, posterior in ((70, "aggregate"), (60, "true"))
    ]
    tables = make_score_tables(_read(tmp_path, *lines), {"other": "second"} if "judge" in heading else {})
    assert [[(str(row.cells[0]), row.cells[0].best) for row in table.rows] for table in tables] == [
        [("90.0 ± 0.4", True), ("80.0 ± 0.4", False)],
        [("70.0 ± 0.4", True), ("60.0 ± 0.4", False)],
    ]
    assert tables[1].about == heading
    assert not any("more than once" in note for table in tables for note in table.footnotes)


def test_what_was_measured_again_is_told(tmp_path: Path) -> None:
    """The best is one of the numbers shown."""
    scores = _read(tmp_path, *(_correctness(v, 4) for v in (90, 80, 80)), _correctness(70, 4, "true"))
    (table,) = make_score_tables(scores, {})
    assert [(str(row.cells[0]), row.cells[0].best) for row in table.rows] == [
        ("80.0 ± 0.4", True),
        ("70.0 ± 0.4", False),
    ]
    assert table.footnotes == ["id-aggregate was measured more than once with different results; the last counts"]


def test_the_prior_belongs_to_the_model(tmp_path: Path) -> None:
    scores = _read(tmp_path, _correctness(50, 4, "prior"))
    (table,) = make_score_tables(scores, {"id-model": "vae"}, models={"id-prior": "id-model"})
    assert (table.rows[0].label, table.rows[0].posterior) == ("vae", "p(z): prior")


def test_a_score_that_is_not_finite_says_so_and_never_wins(tmp_path: Path) -> None:
    (table,) = make_score_tables(_read(tmp_path, _correctness(None, 4), _correctness(10, 4, "true")), {})
    texts = [(str(row.cells[0]), row.cells[0].best) for row in table.rows if row.cells[0]]
    assert texts == [("not finite", False), ("10.0 ± 0.4", True)]


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        '{"value": 1}',
        '{"metric": "a", "value": "b"}',
        '{"metric": "a", "value": 1, "ids": 3}',
        '{"metric": "a", "value": 1, "given": "4"}',
        '{"metric": "a", "value": 1, "judge_accuracy": {"digit": 90.0}}',
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
            assert row["unit"] in (
                ("%", "nats", "factors")
                if "metric" in row
                else ("%", "nats", "nats squared", "parameters", "units", "bits")
            )
    assert published_classifiers()[0].accuracy["digit"] == 91.18


def test_what_real_halves_get_is_told_with_a_number(tmp_path: Path) -> None:
    scores = _read(
        tmp_path,
        _correctness(60.0, 4, metric="precision", details={"ceiling": 81.25}),
        _correctness(60.0, 4, metric="recall", details={"ceiling": "high"}),
    )
    precision, recall = (table.rows[0].cells[0] for table in make_score_tables(scores, {}))
    assert precision is not None and "real pictures 81.25" in precision.detail
    assert recall is not None and "real pictures" not in recall.detail


def test_accuracies_of_a_judge_are_by_name(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="line 1 is no score"):
        _read(tmp_path, _correctness(60.0, 4, judge_accuracy=[92.0]))


def test_a_table_says_what_it_is_and_what_the_judge_makes_of_real_pictures(tmp_path: Path) -> None:
    """The judge's accuracy stands below its scores, and every attribute has its numbers, not only on hovering."""
    known = {"judge_accuracy": {"digit": 90.0, "scale": 98.0, "mean": 94.0}, "protocol": "exact"}
    scores = _read(
        tmp_path,
        _correctness(80, 2, by_attribute={"digit": 70.0, "scale": 90.0}, **known),
        _correctness(75, 1, by_attribute={"digit": 65.0}, **known),
    )
    (table,) = make_score_tables(scores, {})
    assert "the judge sees in a picture" in table.explained
    assert "“2 given”: 2 attributes are asked for" in table.explained
    (fewer,) = make_score_tables(_read(tmp_path, _correctness(75, 1, **known)), {})
    assert "“1 given”: 1 attribute is asked for" in fewer.explained and "“2 given”" not in fewer.explained
    (ceiling,) = table.bounds
    assert [str(cell) if cell else None for cell in ceiling.cells] == ["94.00", "94.00"]
    assert table.by_attribute is not None and table.by_attribute.names == ["digit", "scale"]
    assert table.by_attribute.rows == [
        ("q_agg: fitted to the aggregate", "2 given", ["70.0", "90.0"]),
        ("q_agg: fitted to the aggregate", "1 given", ["65.0", "–"]),
        ("judge on real pictures", "", ["90.0", "98.0"]),
    ]


def test_without_a_judge_there_is_no_ceiling(tmp_path: Path) -> None:
    (table,) = make_score_tables(_read(tmp_path, _correctness(80, 2)), {})
    assert table.bounds == [] and table.by_attribute is None


def test_runs_that_differ_only_in_their_seed_are_one_row() -> None:
    """80, 82, 87: mean 83, sd of the sample sqrt(13); by attribute the mean too."""
    from tests.results.test_comparing import score

    names = {f"m{seed}": f"telbo-seed{seed}" for seed in range(3)} | {"other": "jmvae"}
    scores = [
        replace(
            one,
            ids=one.ids | {"model": f"m{seed}"},
            by_attribute={"digit": 60.0 + seed},
            details={"ceiling": 90.0},
        )
        for seed, one in enumerate(score("telbo", seed, value) for seed, value in enumerate((80.0, 82.0, 87.0)))
    ]
    single = score("jmvae", 0, 70.0)
    other = replace(single, ids=single.ids | {"model": "other"}, by_attribute={"digit": 50.0})
    (table,) = make_score_tables([*scores, other], names)
    assert [(row.label, row.cells[0] and str(row.cells[0])) for row in table.rows] == [
        ("telbo", "83 ± 4"), ("jmvae", "70.0 ± 0.5")
    ]  # fmt: skip
    assert table.rows[0].cells[0] and "standard deviation over 3 seeds" in table.rows[0].cells[0].detail
    assert "real pictures" not in table.rows[0].cells[0].detail, "each run has its own"
    assert table.rows[0].cells[0].best
    assert any("Rows of 3 seeds: mean ± standard deviation" in note for note in table.footnotes)
    assert table.by_attribute is not None
    title = table.rows[0].posterior
    # Rows of one posterior of several models have the models' names.
    assert [(name, cells) for name, _, cells in table.by_attribute.rows] == [
        (f"{title} (telbo)", ["61.0"]), (f"{title} (jmvae)", ["50.0"])
    ]  # fmt: skip


def test_real_pictures_stand_below_what_is_measured_of_drawn_ones() -> None:
    details = {"ceiling": 1.0, "ceiling_stderr": 0.25}
    score = Score("copies", "copies", 8.0, 1.0, "%", "lower", 500, "own", 3, "pixels", details=details)
    (table,) = make_score_tables([score], {})
    (real,) = table.bounds
    assert (real.posterior, [str(cell) for cell in real.cells]) == ("real pictures", ["1.00 ± 0.25"])


def test_chance_stands_below_what_tells_it(tmp_path: Path) -> None:
    lines = [
        {"metric": "retrieval", "quantity": f"R@{k}, text to image", "value": 50.0, "stderr": 1.0, "unit": "%",
         "better": "higher", "posterior": "own", "protocol": "evidence", "details": {"chance": k / 2, "pool": 200}}
        for k in (1, 5, 10)
    ]  # fmt: skip
    (table,) = make_score_tables(_read(tmp_path, *lines), {})
    assert table.columns == [f"R@{k}, text to image" for k in (1, 5, 10)], "in the order of the metric"
    (chance,) = table.bounds
    assert (chance.posterior, chance.label) == ("chance", "among 200")
    assert [str(cell) if cell else None for cell in chance.cells] == ["0.50", "2.50", "5.00"]

"""Runs that differ only in their seed as one row, differences by hand and by scipy, what cannot be compared apart."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from mmgen.artifacts import Header, parent_record, read_header, write_checkpoint
from mmgen.evaluation.provenance import run_of_files
from mmgen.results import groups
from mmgen.results.comparing import compare_scores
from mmgen.results.conditions import run_record
from mmgen.results.groups import contrast, group_runs, is_best, paired_difference, rank_groups
from mmgen.results.score import ExampleValues, Score
from mmgen.results.standard_errors import widen_error

HERE = {"split": "iid", "part": "test"}


def score(
    model: str, seed: int, value: float, *, values: list[float] | None = None, weights: list[float] | None = None,
    given: int | None = 4, **changed: object,
) -> Score:  # fmt: skip
    run = run_record(f"{model}-seed{seed}", [seed], [{"objective": model, "training": {"seed": seed}}], ["data"])
    made = Score(
        "correctness", "correctness", value, 0.5, "%", "higher", 100, "own", given, "exact",
        ids={"dataset": "d" * 64, "judge": "j" * 64}, conditions=dict(HERE), seed=0,
        points=None if values is None else ExampleValues(values, weights), run=run,
    )  # fmt: skip
    return replace(made, **changed)  # type: ignore[arg-type]


def of(model: str, *values: float) -> list[tuple[str, list[Score]]]:
    return [(f"{model}-seed{seed}", [score(model, seed, value)]) for seed, value in enumerate(values)]


def test_settings_but_the_seed_make_a_run() -> None:
    training = {"seed": 0, "steps": 9, "device": "cpu"}
    one = run_record("a", [0, 0], [{"training": training}, {"x": 1}], ["d"])
    two = run_record("b", [1, 2], [{"training": training | {"seed": 1, "device": "cuda"}}, {"x": 1}], ["d"])
    assert (one["seed"], two["seed"]) == ("0", "1/2")
    assert one["settings"] == two["settings"]
    others = [
        run_record("a", [0], [{"training": training | {"steps": 8}}, {"x": 1}], ["d"]),
        run_record("a", [0], [{"training": training}, {"x": 2}], ["d"]),
        run_record("a", [0], [{"training": training}, {"x": 1}], ["e"]),
    ]
    assert len({one["settings"], *(other["settings"] for other in others)}) == 4


def test_what_is_not_of_mmgen_and_what_a_run_began_with_count() -> None:
    def digest(**further: Any) -> str:
        return run_record("a", [0], [{"x": 1}], ["d"], **further)["settings"]

    first, second = ({"room": "objective", "name": "own", "sha256": one * 64} for one in "ab")
    assert len({digest(), digest(members=[first]), digest(members=[second]), digest(initial_runs=["s"])}) == 4
    assert digest(members=[], initial_runs=[]) == digest()


def test_models_that_began_with_other_seeds_of_the_same_are_seeds_of_the_same(tmp_path: Path) -> None:
    """Found beside the model their settings count, without a seed; what is gone counts by its content id."""

    def model(name: str, seed: int, steps: int, start: Path | None = None) -> tuple[Path, Header]:
        path = tmp_path / f"{name}.safetensors"
        write_checkpoint(
            path, kind="model", tensors={"w": torch.zeros(1)}, settings={"training": {"seed": seed, "steps": steps}},
            seed=seed, parents=() if start is None else (parent_record(start, "start", path),), facts={}, command="",
        )  # fmt: skip
        return path, read_header(path)

    starts = [model("s0", 0, 5), model("s1", 1, 5), model("other", 0, 6)]
    runs = [model(f"m{place}", place, 9, path) for place, (path, _) in enumerate(starts)]
    alone = run_of_files([model("alone", 0, 9)])["settings"]
    first, second, other = (run_of_files([one])["settings"] for one in runs)
    assert first == second and len({first, other, alone}) == 3
    starts[0][0].unlink()
    assert run_of_files([runs[0]])["settings"] not in (first, other, alone)


def test_means_and_deviations_by_hand() -> None:
    """80, 82, 87: mean 83, squares 9 + 1 + 16 = 26 over n - 1 = 2."""
    (row,) = compare_scores(of("telbo", 80.0, 82.0, 87.0)).tables[0].records
    cell = row.group
    assert (row.name, row.method, cell.n) == ("telbo", "q(z|y)", 3)
    assert (cell.mean, cell.n) == (83.0, 3)
    assert cell.sd == pytest.approx(math.sqrt(13))
    assert cell.stderr == pytest.approx(math.sqrt(13 / 3))
    assert not row.best, "alone it is the best of nothing"


def test_differences_are_paired_over_seeds_as_scipy_has_it() -> None:
    first, last = [70.0, 75.0, 64.0, 71.0], [72.0, 76.5, 67.0, 72.5]
    a, b = (
        [score(name, seed, value) for seed, value in enumerate(values)] for name, values in (("a", first), ("b", last))
    )
    found = contrast(group_runs(b), group_runs(a))
    expected = stats.ttest_rel(last, first).confidence_interval(0.95)
    assert (found.n, found.over) == (4, "seeds")
    assert found.value == pytest.approx(2.0)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_runs_of_other_seeds_all_count() -> None:
    """One seed in common: means 40 / 3 and 70 / 3, and the difference is theirs, not that of the pair, -10."""
    a = [score("a", seed, value, values=[value, value]) for seed, value in ((0, 10.0), (1, 10.0), (2, 20.0))]
    b = [score("b", seed, value, values=[value, value]) for seed, value in ((2, 10.0), (3, 30.0), (4, 30.0))]
    found, expected = (
        contrast(group_runs(b), group_runs(a)),
        stats.ttest_ind([10.0, 30, 30], [10.0, 10, 20], equal_var=False),
    )
    assert (found.value, found.over) == (pytest.approx(10.0), "both")
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))


def test_what_was_not_finite_is_not_paired() -> None:
    a = score("a", 0, 20.0, values=[10.0, 30.0])
    b = replace(a, points=ExampleValues([10.0, math.nan]))
    assert paired_difference(a, b) is None
    assert contrast(group_runs([b]), group_runs([a])).over == "examples"


def test_two_seeds_need_the_quantile_of_two() -> None:
    """Differences 1 and 3: 2 ± 1, twice the error, but t of one degree of freedom is 12.7."""
    (table,) = compare_scores([*of("a", 70.0, 80.0), *of("b", 71.0, 83.0)]).tables
    assert [row.best for row in table.records] == [True, True]


@pytest.mark.parametrize("better", ["higher", "lower"])
@pytest.mark.parametrize("values", [(70.0, 80.0), (70.1, 82.3, 64.7), (5.0,) * 5])
def test_equal_differences_have_no_interval_and_beat_nothing(values: tuple[float, ...], better: Any) -> None:
    """Nobody knows by how much a third seed would differ from two that differ by the same."""
    files = [*of("a", *values), *of("b", *(value + 1 for value in values))]
    (table,) = compare_scores(
        [(name, [replace(one, better=better) for one in part]) for name, part in files], "a"
    ).tables
    found = table.records[1].difference
    assert found is not None and found.value == pytest.approx(1.0)
    assert (found.stderr, found.low, found.high) == (0.0, None, None)
    assert [row.best for row in table.records] == [True, True]


@pytest.mark.parametrize("stderr", [0.0, math.nan])
def test_single_runs_without_a_spread_have_no_interval_either(stderr: float) -> None:
    """Such as counts of which every resample has the same."""
    a, b = (group_runs([score(name, 0, value, stderr=stderr)]) for name, value in (("a", 3.0), ("b", 5.0)))
    found = contrast(b, a)
    assert (found.value, found.low, found.high) == (2.0, None, None)
    assert is_best(a, rank_groups([a, b])) and is_best(b, rank_groups([a, b]))
    groups = [group_runs([score(name, seed, value) for seed in (place, place + 1)]) for place, (name, value) in
              enumerate((("a", 3.0), ("b", 5.0)))]  # fmt: skip
    assert contrast(groups[1], groups[0]).low is None, "nor do groups of other seeds, alike in themselves"


def test_the_work_grows_with_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with its square, for equal scores as for different ones; and the best are those that all others give."""

    def compared(number: int, step: float) -> int:
        count: list[int] = []
        monkeypatch.setattr(groups, "contrast", lambda *pair: count.append(1) or contrast(*pair))
        files = [(f"m{n}", [score(f"m{n}", 0, n * step)]) for n in range(number)]
        (table,) = compare_scores(files).tables
        assert [row.best for row in table.records] == [not step or n == number - 1 for n in range(number)]
        return len(count)

    for step in (0.0, 3.0):
        assert compared(40, step) <= 2.5 * compared(20, step)


def test_numbers_of_parameters_are_exact() -> None:
    files = [
        (name, [replace(one, unit="parameters", better="lower", stderr=None) for one in part])
        for name, part in [*of("a", 100.0, 100.0), *of("b", 90.0, 90.0)]
    ]
    (table,) = compare_scores(files, "a").tables
    assert [row.best for row in table.records] == [False, True]
    assert table.records[1].difference is not None and table.records[1].difference.stderr is None


def test_groups_without_a_seed_in_common_are_compared_as_welch_does() -> None:
    first, last = [70.0, 75.0, 64.0, 71.0], [72.0, 79.0, 78.0]
    a = group_runs([score("a", seed, value) for seed, value in enumerate(first)])
    b = group_runs([score("b", 10 + seed, value) for seed, value in enumerate(last)])
    found = contrast(b, a)
    expected = stats.ttest_ind(last, first, equal_var=False).confidence_interval(0.95)
    assert found.over == "both"
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_single_runs_are_paired_over_their_queries() -> None:
    """Differences 2, 4, 3: mean 3, sd 1, error 1 / sqrt(3), and of three the quantile of two degrees of freedom."""
    a = score("a", 0, 20.0, values=[10.0, 20.0, 30.0])
    b = score("b", 0, 23.0, values=[12.0, 24.0, 33.0])
    found = contrast(group_runs([b]), group_runs([a]))
    assert (found.value, found.over, found.n) == (3.0, "points", 1)
    assert found.stderr == pytest.approx(3**-0.5)
    assert found.high == pytest.approx(3 + stats.t.ppf(0.975, 2) * 3**-0.5)
    other = replace(b, seed=1)  # asked about other examples
    apart = contrast(group_runs([other]), group_runs([a]))
    assert (apart.over, apart.stderr) == ("examples", pytest.approx(math.hypot(0.5, 0.5)))


def test_queries_with_weights_are_paired_with_them() -> None:
    """As the scores' own error: of values and weights, by the same estimator as weighted_mean."""
    from mmgen.evaluation.queries import weighted_mean

    a, b, weights = [10.0, 20.0, 30.0], [12.0, 24.0, 33.0], [1.0, 2.0, 5.0]
    one, other = (
        score(name, 0, float(np.average(values, weights=weights)), values=values, weights=weights)
        for name, values in (("a", a), ("b", b))
    )
    expected = weighted_mean(np.subtract(b, a), np.array(weights), 0)
    value, error = paired_difference(one, other) or (0.0, 0.0)
    # The interval of a difference has Student's t of its own.
    assert (value, widen_error(error, 3)) == (pytest.approx(expected.value), pytest.approx(expected.stderr))
    assert paired_difference(one, replace(other, points=ExampleValues(b, [1.0, 1.0, 5.0]))) is None


def test_what_is_not_alike_is_never_in_one_column() -> None:
    plain = score("a", 0, 80.0)
    others = [
        replace(plain, ids=plain.ids | {"dataset": "e" * 64}),
        replace(plain, ids=plain.ids | {"judge": "k" * 64}),
        replace(plain, conditions=plain.conditions | {"split": "compositional"}),
        replace(plain, conditions=plain.conditions | {"part": "val"}),
        replace(plain, protocol="paper"),
        replace(plain, conditions=plain.conditions | {"pixels": "drawn"}),
        replace(plain, metric="coverage"),
    ]
    compared = compare_scores([("a", [plain, *others])])
    assert len(compared.tables) == 8
    assert all(len(table.records) == len(table.columns) == 1 for table in compared.tables)
    (note,) = [note for note in compared.notes if note.startswith("correctness is in 7 tables")]
    for said in (f"dataset ({'d' * 12}, {'e' * 12})", "split (iid, compositional)", "protocol (exact, paper)"):
        assert said in note
    guided = replace(plain, posterior="guided", base="own", guidance=3.0)
    columns = [replace(plain, given=3), guided, replace(guided, guidance_method="cfg")]
    columns.append(replace(plain, details={"share": 0.01}))
    (table,) = compare_scores([("a", [plain, *columns])]).tables
    headings = [*table.columns.values()]
    assert headings == [
        "4 given",
        "4 given, 1 % paired",
        "3 given",
    ]
    rows = ["q(z|y)", "q(z|y) guided (w = 3)", "q(z|y) guided (cfg 3)"]
    assert [*dict.fromkeys(row.method for row in table.records)] == rows


def test_a_heading_names_its_quantity_where_a_table_has_two() -> None:
    """In every output, also that of the metric's own name; alone it stands above the table."""
    one = score("a", 0, 80.0, metric="coherence", quantity="coherence")
    others = [("agreement", 1), ("coverage", 1), ("coherence", 1)]
    scores = [replace(one, given=2), *(replace(one, quantity=name, given=given) for name, given in others)]
    compared = compare_scores([("a", scores)])
    (table,) = compared.printable_tables()
    headings = table.columns[2:-1]
    assert headings == [f"{name}, {given} given" for name, given in [("coherence", 2), *others]]
    for text in (compared.markdown(), compared.latex(), compared.html()):
        assert all(heading in text for heading in headings)
    (alone,) = compare_scores([("a", [one, replace(one, given=1)])]).printable_tables()
    assert alone.columns[2:-1] == ["4 given", "1 given"]


def test_data_that_are_not_the_published_ones_say_so_above_their_scores() -> None:
    plain = score("a", 0, 80.0)
    other = replace(
        plain, ids={"dataset": "e" * 64}, conditions=plain.conditions | {"content": "not MNIST as published"}
    )
    compared = compare_scores([("a", [plain, other])])
    assert f"the dataset {'e' * 12} is not MNIST as published" in compared.notes
    tables = compared.tables
    assert ["content not MNIST as published" in table.about for table in tables] == [False, True]
    assert "content not MNIST as published" in compare_scores([("a", [other])]).tables[0].about, "alone as well"


@pytest.mark.parametrize(
    ("metric", "asked", "others"),
    [
        ("retrieval", {"pool": "100", "described": "text"}, [{"pool": "1000"}, {"described": "attributes"}]),
        ("mig", {"factors": "shape, x"}, [{"factors": "shape, y"}]),
        ("of-nobody", {"pool": "100"}, [{"pool": "1000"}]),
    ],
)
def test_what_changes_a_metrics_question_is_apart(metric: str, asked: dict[str, Any], others: list[Any]) -> None:
    """As each score names it, also one of a metric that is not installed."""
    plain = score("a", 0, 20.0, values=[10.0, 30.0], metric=metric)
    plain = replace(plain, conditions=plain.conditions | asked)
    differing = [replace(plain, conditions=plain.conditions | other) for other in others]
    tables = compare_scores([("a", [plain, *differing])]).tables
    assert len(tables) == 1 + len(others)
    assert paired_difference(plain, plain) == (0.0, 0.0)
    assert all(paired_difference(plain, other) is None for other in differing)
    if metric == "retrieval":
        assert [table.about.partition("iid, ")[2] for table in tables] == [
            "descriptions by text, pool 100", "descriptions by text, pool 1000", "descriptions by attributes, pool 100"
        ]  # fmt: skip


def test_only_what_is_not_beaten_is_marked() -> None:
    """Paired: b is above a by 1.0 ± 0.2 at every seed, though seeds differ by ten."""
    files = [*of("a", 70.0, 80.0, 60.0), *of("b", 71.0, 81.2, 60.8), *of("c", 69.0, 83.0, 61.0)]
    (table,) = compare_scores(files, "a").tables
    assert {row.name: row.best for row in table.records} == {"a": False, "b": True, "c": True}
    lower = [(file, [replace(score, better="lower") for score in scores]) for file, scores in files]
    (table,) = compare_scores(lower).tables
    assert {row.name: row.best for row in table.records} == {"a": True, "b": False, "c": True}


def test_rows_are_compared_with_the_same_posterior_of_the_base() -> None:
    files = [*of("a", 70.0, 80.0), *of("b", 71.0, 81.0)]
    files += [(file, [replace(one, posterior="prior", value=one.value / 2) for one in part]) for file, part in files]
    (table,) = compare_scores(files, "a").tables
    found = {row.row: row.difference for row in table.records}
    assert {who: one and one.value for who, one in found.items()} == {
        ("a", "q(z|y)"): None, ("b", "q(z|y)"): 1.0, ("a", "p(z)"): None, ("b", "p(z)"): 0.5
    }  # fmt: skip
    (table,) = compare_scores(files, "a, p(z)").tables
    assert [row.difference and row.difference.value for row in table.records] == [37.5, 38.5, None, 0.5]
    with pytest.raises(ValueError, match="unknown row 'A b'"):
        compare_scores(files, "A b")


def test_scores_without_a_run_stand_under_their_files_names() -> None:
    files = [(file, [replace(one, run={}) for one in part]) for file, part in of("a", 70.0, 80.0)]
    compared = compare_scores(files)
    assert [row.name for row in compared.tables[0].records] == ["a-seed0", "a-seed1"]
    assert "a-seed0, a-seed1: these scores do not name their run" in compared.notes[0]


def test_what_was_measured_twice_counts_once() -> None:
    one = score("a", 0, 70.0)
    compared = compare_scores([("x", [one]), ("y", [replace(one, value=71.0)])])
    cell = compared.tables[0].records[0].group
    assert (cell.mean, cell.n) == (71.0, 1)
    assert "a-seed0 with seed 0 was measured more than once" in compared.notes[0]


def test_what_is_not_finite_beats_nothing() -> None:
    (table,) = compare_scores([*of("a", 70.0, math.nan), *of("b", 71.0, 72.0)], "b").tables
    a, b = table.records
    assert not a.best and b.best and math.isnan(a.group.mean)


@pytest.mark.parametrize("against", ["q_true", "q_true(w = 300)"])
def test_against_the_posterior_that_tables_print(against: str) -> None:
    """Each run is compared with its own row of that posterior; which is compared with nothing."""
    kinds = {"own": {}, "true": {"text_weight": 300.0}, "aggregate": {}}
    found = [
        (f"{run}-seed{seed}", [score(run, seed, base + 10 * place + seed, posterior=kind, **more)])
        for run, base in (("a", 50.0), ("b", 60.0))
        for seed in range(3)
        for place, (kind, more) in enumerate(kinds.items())
    ]
    (table,) = compare_scores(found, against).tables
    differences = {row.row: row.difference.value if row.difference is not None else None for row in table.records}
    told = {"q(z|y)": -10.0, "q_true(w = 300)": None, "q_agg": 10.0}
    assert differences == {(run, posterior): value for run in ("a", "b") for posterior, value in told.items()}


def test_against_a_posterior_of_two_weights_is_asked_back() -> None:
    found = [
        (f"a{weight}", [score(f"a{weight}", 0, 50.0, posterior="true", text_weight=weight)]) for weight in (1.0, 300.0)
    ]
    with pytest.raises(ValueError, match=r"row 'q_true' may be 'a1.0-seed0, q_true\(w = 1\), exact' or 'a300"):
        compare_scores(found, "q_true")

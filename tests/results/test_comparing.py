"""Runs that differ only in their seed as one row, differences as scipy has them, what cannot be compared apart."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as some
from scipy import stats

from mmgen.artifacts import Header, parent_record, read_header, write_checkpoint
from mmgen.evaluation.provenance import run_of_files
from mmgen.evaluation.queries import weighted_mean
from mmgen.results import groups
from mmgen.results.comparing import compare_scores
from mmgen.results.conditions import run_record
from mmgen.results.groups import RunGroup, contrast, group_runs, paired_difference
from mmgen.results.score import ExampleValues, Score
from mmgen.results.standard_errors import add_clustered_error, clustered_error, widen_error

HERE = {"split": "iid", "part": "test"}
Files = list[tuple[str, list[Score]]]
VALUES = some.lists(some.floats(0, 100).map(lambda value: round(value, 3)), min_size=2, max_size=5)


def score(model: str = "a", seed: int = 0, value: float = 80.0, *, values: Any = None, **changed: Any) -> Score:
    """A score of a run; of single examples with ``values``, whose mean it is."""
    run = run_record(f"{model}-seed{seed}", [seed], [{"objective": model, "training": {"seed": seed}}], ["data"])
    points = None if values is None else ExampleValues([float(one) for one in values], changed.pop("weights", None))
    made = Score(
        "correctness", "correctness", value if points is None else points.mean, 0.5, "%", "higher", 100, "own", 4,
        "exact", ids={"dataset": "d" * 64, "judge": "j" * 64}, conditions=dict(HERE), seed=0, points=points, run=run,
    )  # fmt: skip
    return replace(made, **changed)


def of(model: str, *values: float, **changed: Any) -> Files:
    return [(f"{model}-seed{seed}", [score(model, seed, value, **changed)]) for seed, value in enumerate(values)]


def runs(model: str, values: Any, first: int = 0) -> RunGroup:
    return group_runs([score(model, first + place, value) for place, value in enumerate(values)])


def changed(files: Files, **others: Any) -> Files:
    return [(name, [replace(one, **others) for one in scores]) for name, scores in files]


def best(files: Files, against: str = "") -> list[bool]:
    (table,) = compare_scores(files, against).tables
    return [row.best for row in table.records]


# What a run is.


def test_settings_but_the_seed_members_data_and_what_a_run_began_with_make_a_run() -> None:
    training = {"seed": 0, "steps": 9, "device": "cpu"}
    plain = [{"training": training}, {"x": 1}]
    one = run_record("a", [0, 0], plain, ["d"])
    two = run_record("b", [1, 2], [{"training": training | {"seed": 1, "device": "cuda"}}, {"x": 1}], ["d"])
    assert (one["seed"], two["seed"]) == ("0", "1/2")
    same = run_record("a", [0], plain, ["d"], members=[], initial_runs=[])
    assert one["settings"] == two["settings"] == same["settings"]
    first, second = ({"room": "objective", "name": "own", "sha256": one * 64} for one in "ab")
    others = [
        run_record("a", [0], [{"training": training | {"steps": 8}}, {"x": 1}], ["d"]),
        run_record("a", [0], [{"training": training}, {"x": 2}], ["d"]),
        run_record("a", [0], plain, ["e"]),
        *(run_record("a", [0], plain, ["d"], members=[member]) for member in (first, second)),
        run_record("a", [0], plain, ["d"], initial_runs=["s"]),
    ]
    assert len({one["settings"], *(other["settings"] for other in others)}) == 7


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
    started = [model(f"m{place}", place, 9, path) for place, (path, _) in enumerate(starts)]
    alone = run_of_files([model("alone", 0, 9)])["settings"]
    first, second, other = (run_of_files([one])["settings"] for one in started)
    assert first == second and len({first, other, alone}) == 3
    starts[0][0].unlink()
    assert run_of_files([started[0]])["settings"] not in (first, other, alone)


# Differences.


def test_means_and_deviations_by_hand() -> None:
    """80, 82, 87: mean 83, squares 9 + 1 + 16 = 26 over n - 1 = 2."""
    (row,) = compare_scores(of("telbo", 80.0, 82.0, 87.0)).tables[0].records
    assert (row.name, row.method, row.group.n, row.group.mean) == ("telbo", "q(z|y)", 3, 83.0)
    assert (row.group.sd, row.group.stderr) == (pytest.approx(math.sqrt(13)), pytest.approx(math.sqrt(13 / 3)))
    assert not row.best, "alone it is the best of nothing"


@given(VALUES, VALUES, some.integers(0, 6))
def test_groups_of_runs_differ_as_scipy_has_it(first: list[float], last: list[float], shift: int) -> None:
    """Paired where both have the same seeds, else Welch's, also where they share some."""
    paired = len(first) == len(last) and not shift
    spreads = [np.std(np.subtract(last, first))] if paired else [np.std(first), np.std(last)]
    assume(min(spreads) > 1e-2)
    found = contrast(runs("b", last, shift), runs("a", first))
    expected = stats.ttest_rel(last, first) if paired else stats.ttest_ind(last, first, equal_var=False)
    interval = expected.confidence_interval(0.95)
    assert (found.over, found.n) == (("seeds", len(first)) if paired else ("both", 1))
    assert found.value == pytest.approx(np.mean(last) - np.mean(first))
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))


@given(VALUES, some.lists(some.floats(0.5, 9), min_size=5, max_size=5), some.integers(0, 2), some.floats(0, 3))
def test_single_runs_are_paired_over_their_examples(
    values: list[float], weights: list[float], kind: int, shared: float
) -> None:
    """As scores have it themselves: weighted, clustered, and with noise that all examples share beside it."""
    count = len(values)
    other = [value + 3 * place**2 for place, value in enumerate(values)]
    change, heavy = np.subtract(other, values), weights[:count] if kind == 1 else None
    clusters = [place // 2 for place in range(count)] if kind == 2 else None
    a, b = (score(name, 0, values=v, weights=heavy) for name, v in (("a", values), ("b", other)))
    assert a.points is not None and b.points is not None
    a, b = (
        replace(one, points=replace(one.points, clusters=clusters, shared_stderr=noise))
        for one, noise in ((a, 0.0), (b, shared))
    )
    if kind == 2 and count < 3:
        assert paired_difference(a, b) is None, "one cluster"
        return
    error = clustered_error(change, clusters, heavy)
    value, found = paired_difference(a, b) or (0.0, 0.0)
    assert (value, found) == (
        pytest.approx(np.average(change, weights=heavy)),
        pytest.approx(math.hypot(error, shared)),
    )
    if kind == 1:
        expected = weighted_mean(change, np.array(heavy), 0)
        assert widen_error(error, count) == pytest.approx(expected.stderr)
    units = (count + 1) // 2 if kind == 2 else count
    told = contrast(group_runs([b]), group_runs([a]))
    assert (told.over, told.n) == ("points", 1)
    assert told.high == pytest.approx(value + stats.t.ppf(0.975, units - 1) * found)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1}, {"given": 3}, {"protocol": "paper"}, {"metric": "coverage"}, {"unit": "nats"},
        {"ids": {"dataset": "e" * 64, "judge": "j" * 64}}, {"conditions": HERE | {"pool": "1000"}}, {"points": None},
        *({"points": one} for one in (
            ExampleValues([12.0, 24.0]), ExampleValues([12.0, 24.0, math.nan]),
            ExampleValues([12.0, 24.0, 33.0], [1.0] * 3),
            ExampleValues([12.0, 24.0, 33.0], clusters=[0, 0, 1]),
        )),
    ],
)  # fmt: skip
def test_other_examples_are_no_pairs(other: dict[str, Any]) -> None:
    """Then both errors count as if they were independent."""
    a, b = score("a", values=[10.0, 20.0, 30.0]), score("b", values=[12.0, 24.0, 33.0])
    assert paired_difference(a, b) is not None
    assert paired_difference(a, replace(b, **other)) is None
    found = contrast(group_runs([replace(b, **other)]), group_runs([a]))
    assert (found.over, found.stderr) == ("examples", pytest.approx(math.hypot(0.5, 0.5)))
    assert found.high == pytest.approx(found.value + stats.norm.ppf(0.975) * 0.5**0.5)


@pytest.mark.parametrize(
    "made_up", [{"clusters": [1, 2]}, {"clusters": [0] * 3}, {"weights": [1.0]}, {"weights": [0.0] * 3}]
)
def test_clusters_and_weights_that_a_file_makes_up_are_no_pairs(made_up: dict[str, Any]) -> None:
    a, b = (score(name, values=[1.0, 2.0, value]) for name, value in (("a", 3.0), ("b", 5.0)))
    a, b = (replace(one, points=replace(one.points, **made_up)) for one in (a, b))
    assert paired_difference(a, b) is None


@pytest.mark.parametrize("better", ["higher", "lower"])
@pytest.mark.parametrize("values", [(70.0, 80.0), (70.1, 82.3, 64.7), (5.0,) * 5])
def test_equal_differences_have_no_interval_and_beat_nothing(values: tuple[float, ...], better: Any) -> None:
    """Nobody knows by how much a third seed would differ from two that differ by the same."""
    files = changed([*of("a", *values), *of("b", *(value + 1 for value in values))], better=better)
    (table,) = compare_scores(files, "a").tables
    found = table.records[1].difference
    assert found is not None and found.value == pytest.approx(1.0)
    assert (found.stderr, found.low, found.high) == (0.0, None, None)
    assert [row.best for row in table.records] == [True, True]


@pytest.mark.parametrize("stderr", [0.0, math.nan])
def test_runs_without_a_spread_have_no_interval_either(stderr: float) -> None:
    """Such as counts of which every resample has the same; nor do groups of other seeds, alike in themselves."""
    single = [*of("a", 3.0, stderr=stderr), *of("b", 5.0, stderr=stderr)]
    (table,) = compare_scores(single, "a-seed0").tables
    found = table.records[1].difference
    assert found is not None and (found.value, found.low, found.high) == (2.0, None, None)
    assert best(single) == [True, True]
    assert contrast(runs("b", [5.0, 5.0], 1), runs("a", [3.0, 3.0])).low is None


@pytest.mark.parametrize(
    ("files", "marked"),
    [
        # Paired: b is above a by 1.0 ± 0.2 at every seed, though seeds differ by ten.
        ([*of("a", 70.0, 80.0, 60.0), *of("b", 71.0, 81.2, 60.8), *of("c", 69.0, 83.0, 61.0)], [False, True, True]),
        # Differences 1 and 3: 2 ± 1, twice the error, but t of one degree of freedom is 12.7.
        ([*of("a", 70.0, 80.0), *of("b", 71.0, 83.0)], [True, True]),
        ([*of("a", 70.0, math.nan), *of("b", 71.0, 72.0)], [False, True]),  # what is not finite beats nothing
        (changed([*of("a", 100.0, 100.0), *of("b", 101.0, 101.0)], unit="parameters", stderr=None), [False, True]),
        (changed([*of("a", 70.0), *of("b", 90.0)], better="neither"), [False, False]),
        (changed([*of("a", 70.0), *of("b", 90.0)]), [False, True]),
    ],
    ids=["paired", "two seeds", "not finite", "exact", "undirected", "single"],
)  # fmt: skip
def test_only_what_is_not_beaten_is_marked(files: Files, marked: list[bool]) -> None:
    assert best(files) == marked
    if files[0][1][0].better != "neither" and all(math.isfinite(score.value) for _, (score,) in files):
        negative = [(name, [replace(one, value=-one.value, better="lower") for one in part]) for name, part in files]
        assert best(negative) == marked


def test_the_work_grows_with_the_number_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with its square, for equal scores as for different ones; and the best are those that all others give."""

    def compared(number: int, step: float) -> int:
        count: list[int] = []
        monkeypatch.setattr(groups, "contrast", lambda *pair: count.append(1) or contrast(*pair))
        files = [(f"m{n}", [score(f"m{n}", 0, n * step)]) for n in range(number)]
        assert best(files) == [not step or n == number - 1 for n in range(number)]
        return len(count)

    for step in (0.0, 3.0):
        assert compared(40, step) <= 2.5 * compared(20, step)


# Examples that come in clusters.


@given(VALUES, some.randoms())
def test_singletons_have_the_usual_error_and_equal_clusters_that_of_their_means(
    values: list[float], random: Any
) -> None:
    names = random.sample(range(99), len(values))
    assert clustered_error(values) == pytest.approx(stats.sem(values)) == clustered_error(values, names)
    noise = np.array([-1.0, 0.5, 0.5])
    spread = (np.array(values)[:, None] + noise).ravel()
    assert clustered_error(spread, np.repeat(names, 3)) == pytest.approx(stats.sem(values))


def test_weights_have_the_ratio_estimators_error_and_none_is_told_of_one_cluster() -> None:
    values, weights = np.abs(np.random.default_rng(0).normal(size=(2, 9)))
    off = weights * (values - np.average(values, weights=weights))
    expected = np.sqrt(9 / 8 * (off**2).sum()) / weights.sum()
    assert clustered_error(values, weights=weights) == pytest.approx(expected)
    assert np.isnan(clustered_error([1.0, 2.0, 3.0], [0, 0, 1], [1.0, 1.0, 0.0])), "one cluster has all the weight"


def test_unequal_clusters_have_the_error_of_the_jackknife() -> None:
    """With clusters of very unequal sizes the mean follows the largest ones: 95 % intervals of sums hold 87 %."""
    rng, held = np.random.default_rng(0), []
    for _ in range(600):
        clusters = np.repeat(np.arange(5), rng.geometric(0.03, size=5))
        values = rng.normal(size=5)[clusters] + rng.normal(size=len(clusters))
        without = np.array([values[clusters != one].mean() for one in range(5)])
        error = clustered_error(values, clusters)
        assert error == pytest.approx(np.sqrt(4 / 5 * np.square(without - values.mean()).sum()))
        held.append(abs(values.mean()) < stats.t.ppf(0.975, 4) * error)
    assert np.mean(held) > 0.895


def test_the_error_is_how_much_means_of_other_pictures_differ() -> None:
    """20 pictures of 5 to 50 patches, of which those of one share most: plain errors are three times too small."""
    rng, means, errors, plain = np.random.default_rng(0), [], [], []
    for _ in range(400):
        sizes = rng.integers(5, 51, size=20)
        values = np.repeat(rng.normal(size=20), sizes) + 0.5 * rng.normal(size=sizes.sum())
        told = add_clustered_error(score(values=values, unit="nats"), np.repeat(np.arange(20), sizes)).stderr
        assert told is not None
        means.append(np.mean(values))
        errors.append(told)
        plain.append(stats.sem(values))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.1)
    assert np.mean(plain) < np.std(means) / 3


def test_scores_change_only_where_points_share_a_picture() -> None:
    plain = score(values=[1.0, 1.0, 3.0, 3.0], unit="nats", stderr=0.1)
    shared = np.array([5, 5, 2, 2])
    for clusters in (None, np.arange(4), np.array([0, 0, 1])):  # unknown, all apart, not of these points
        assert add_clustered_error(plain, clusters) is plain
    found = add_clustered_error(plain, shared)
    assert found.points is not None
    assert (found.stderr, found.points.clusters, found.points.units) == (1.0, [1, 1, 0, 0], 2)
    bits = add_clustered_error(replace(plain, details={"bits_per_pixel_stderr": 0.2}), shared)
    assert bits.details["bits_per_pixel_stderr"] == pytest.approx(2.0), "ten times the error, so ten times this one"
    assert add_clustered_error(plain, np.zeros(4)).stderr is None, "of one picture nothing says how much others differ"
    percent = add_clustered_error(score(values=[100.0] * 4, n=4), shared)
    assert percent.stderr is not None and percent.stderr > 10, "shares have no error of 0"


# Tables.


def test_what_is_not_alike_is_never_in_one_column() -> None:
    plain = score()
    others = [
        *({"ids": plain.ids | {role: "e" * 64}} for role in ("dataset", "judge")),
        *({"conditions": HERE | one} for one in ({"split": "compositional"}, {"part": "val"}, {"pixels": "drawn"})),
        {"protocol": "paper"}, {"metric": "coverage"},
    ]  # fmt: skip
    compared = compare_scores([("a", [plain, *(replace(plain, **other) for other in others)])])
    assert len(compared.tables) == 8
    assert all(len(table.records) == len(table.columns) == 1 for table in compared.tables)
    (note,) = [note for note in compared.notes if note.startswith("correctness is in 7 tables")]
    for said in (f"dataset ({'d' * 12}, {'e' * 12})", "split (iid, compositional)", "protocol (exact, paper)"):
        assert said in note
    guided = replace(plain, posterior="guided", base="own", guidance=3.0)
    columns = [replace(plain, given=3), guided, replace(guided, guidance_method="cfg")]
    columns.append(replace(plain, details={"share": 0.01}))
    (table,) = compare_scores([("a", [plain, *columns])]).tables
    assert [*table.columns.values()] == ["4 given", "4 given, 1 % paired", "3 given"]
    rows = ["q(z|y)", "q(z|y) guided (w = 3)", "q(z|y) guided (cfg 3)"]
    assert [*dict.fromkeys(row.method for row in table.records)] == rows


@pytest.mark.parametrize(
    ("metric", "asked", "others", "about"),
    [
        ("retrieval", {"pool": "100", "described": "text"}, [{"pool": "1000"}, {"described": "attributes"}],
         [f"descriptions by {one}" for one in ("text, pool 100", "text, pool 1000", "attributes, pool 100")]),
        ("mig", {"factors": "shape, x"}, [{"factors": "shape, y"}], ["factors shape, x", "factors shape, y"]),
        ("of-nobody", {"pool": "100"}, [{"pool": "1000"}], ["pool 100", "pool 1000"]),
    ],
)  # fmt: skip
def test_what_changes_a_metrics_question_is_apart(
    metric: str, asked: dict[str, str], others: list[dict[str, str]], about: list[str]
) -> None:
    """As each score names it, also one of a metric that is not installed."""
    scores = [score(metric=metric, conditions=HERE | asked | other) for other in [{}, *others]]
    assert [table.about.partition("iid, ")[2] for table in compare_scores([("a", scores)]).tables] == about


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
    other = score(ids={"dataset": "e" * 64}, conditions=HERE | {"content": "not MNIST as published"})
    compared = compare_scores([("a", [score(), other])])
    assert f"the dataset {'e' * 12} is not MNIST as published" in compared.notes
    assert ["content not MNIST as published" in table.about for table in compared.tables] == [False, True]
    assert "content not MNIST as published" in compare_scores([("a", [other])]).tables[0].about, "alone as well"


def test_scores_without_a_run_stand_under_their_files_names_and_what_was_measured_twice_counts_once() -> None:
    compared = compare_scores(changed(of("a", 70.0, 80.0), run={}))
    assert [row.name for row in compared.tables[0].records] == ["a-seed0", "a-seed1"]
    assert "a-seed0, a-seed1: these scores do not name their run" in compared.notes[0]
    twice = compare_scores([("x", [score(value=70.0)]), ("y", [score(value=71.0)])])
    (cell,) = twice.tables[0].records
    assert (cell.group.mean, cell.group.n) == (71.0, 1)
    assert "a-seed0 with seed 0 was measured more than once" in twice.notes[0]


KINDS: dict[str, dict[str, Any]] = {
    "q(z|y)": {}, "q_true(w = 300)": {"posterior": "true", "text_weight": 300.0}, "p(z)": {"posterior": "prior"}
}  # fmt: skip


@pytest.mark.parametrize(
    ("against", "a", "b"),
    [
        ("", [None, None, None], [None, None, None]),
        ("a", [None, None, None], [5.0, 5.0, 5.0]),
        ("b", [-5.0, -5.0, -5.0], [None, None, None]),
        ("a, p(z)", [-20.0, -10.0, None], [-15.0, -5.0, 5.0]),
        ("q_true", [-10.0, None, 10.0], [-10.0, None, 10.0]),
        ("q_true(w = 300)", [-10.0, None, 10.0], [-10.0, None, 10.0]),
        ("p(z)", [-20.0, -10.0, None], [-20.0, -10.0, None]),
    ],
)
def test_rows_are_compared_with_the_row_that_is_named(against: str, a: list[Any], b: list[Any]) -> None:
    """With the same posterior of a run, with a posterior of a run, or each run with its own of that posterior."""
    files = [
        (f"{run}-seed{seed}", [score(run, seed, base + 10 * place + seed, **kind)])
        for run, base in (("a", 50.0), ("b", 55.0))
        for seed in range(3)
        for place, kind in enumerate(KINDS.values())
    ]
    (table,) = compare_scores(files, against).tables
    found = {row.row: row.difference and row.difference.value for row in table.records}
    assert found == {(run, kind): one for run, told in zip("ab", (a, b)) for kind, one in zip(KINDS, told)}  # noqa: B905


@pytest.mark.parametrize(
    ("against", "said"),
    [
        ("A b", "unknown row 'A b'"),
        ("q_true", r"row 'q_true' may be 'a1.0-seed0, q_true\(w = 1\), exact' or 'a300"),
    ],
)  # fmt: skip
def test_rows_that_are_not_there_or_are_two_are_asked_back(against: str, said: str) -> None:
    found = [of(f"a{weight}", 50.0, posterior="true", text_weight=weight)[0] for weight in (1.0, 300.0)]
    with pytest.raises(ValueError, match=said):
        compare_scores(found, against)

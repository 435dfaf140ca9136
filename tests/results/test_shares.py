"""Errors of shares: never 0, and intervals that hold; of all metrics in percent."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen import metrics
from mmgen.artifacts import Dataset
from mmgen.classifier._training import Accuracy
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.queries import Frequencies, Queries, weighted_mean
from mmgen.evaluation.real import jensen_shannon
from mmgen.metrics._base import evaluate
from mmgen.metrics.coverage import combine_with_bias, exact_coverage
from mmgen.results.standard_errors import binomial_error, share_error
from mmgen.testing.metrics import accepts_evaluation
from tests.metrics.toy import Judge, loaded_painter, write_dataset


@pytest.mark.parametrize("n", [20, 250, 1000])
@pytest.mark.parametrize("right", [0.0, 0.05, 0.5, 1.0])
def test_binomial_error_is_that_of_agresti_and_coull(n: int, right: float) -> None:
    count = round(right * n)
    centre = (count + 2) / (n + 4)
    expected = 100 * (centre * (1 - centre) / (n + 4)) ** 0.5
    assert binomial_error(100 * count / n, n) == pytest.approx(expected)
    assert expected > 0


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.97, 0.99, 0.999, 1.0])
@pytest.mark.parametrize("n", [50, 250, 1000])
def test_intervals_of_shares_hold(n: int, truth: float) -> None:
    """At least 93 % at every truth, where value +- 1.96 plain errors has 5 to 95 %."""
    found = np.random.default_rng(0).binomial(n, truth, 4000)
    errors = {count: binomial_error(100 * count / n, n) for count in np.unique(found)}
    inside = [abs(100 * count / n - 100 * truth) <= 1.96 * errors[count] for count in found]
    assert np.mean(inside) >= 0.93


def test_a_spread_over_clusters_is_kept() -> None:
    assert share_error(93.0, 0.5, 6000) == pytest.approx(0.5, rel=0.01)
    assert share_error(93.0, 3.0, 6000) == pytest.approx(3.32, rel=0.01)  # as of 72 answers, which are few


@pytest.mark.parametrize("count", [8, 40])
@pytest.mark.parametrize("truth", [85.0, 97.0, 99.5])
@pytest.mark.parametrize("words", [1, 4])
def test_intervals_over_descriptions_hold(words: int, truth: float, count: int) -> None:
    """value +- 1.96 errors of 1,000 evaluations of 24 pictures each, whose descriptions differ (correlation 1/11).

    Of agreement (a picture counts wholly or not) and of right (the mean over its words). Near 100 % they hold too
    often, since few evaluations see a wrong picture; without Student's t and the effective number of answers they held
    81 % (97 % of 8) and 82 % (99.5 % of 40).
    """
    random, inside, errors = np.random.default_rng(count), [], []
    for _ in range(1000):
        share = random.beta(truth / 10, 10 - truth / 10, (count, words))
        values = 100 * (random.binomial(24, share) / 24).mean(1)
        mean = weighted_mean(values, np.ones(count), 0)
        errors.append(share_error(mean.value, mean.stderr, 24 * count, count))
        inside.append(abs(mean.value - truth) <= 1.96 * errors[-1])
    assert np.mean(inside) >= 0.93
    if truth == 85 and count == 40:
        assert np.mean(inside) <= 0.98
    exact = 100 * np.sqrt(truth / 100 * (1 - truth / 100) * (1 / 11 + 10 / 11 / 24) / words / count)
    assert np.median(errors) < exact * (1.25 if truth == 85 and count == 40 else 6)


@pytest.mark.slow
def test_no_score_in_percent_has_an_error_of_zero(tmp_path: Path) -> None:
    """A model that is always right: every metric in percent, over all members."""
    dataset = Dataset.open(write_dataset(tmp_path / "toy.h5"))
    settings = EvaluationSettings(draws=4, samples=5, number=10, dropped=(0, 1))
    loaded = loaded_painter(Path("m.safetensors"), split="compositional")
    names = [name for name in metrics.names() if metrics.get(name).unit == "%"]
    assert {"correctness", "coverage", "compositionality", "label-accuracy"} <= set(names)
    for open_split in ("compositional", "iid"):
        of_iid = EvaluationSettings(**{**settings.model_dump(), "split": open_split})
        asked = [name for name in names if name != "compositionality" or open_split == "compositional"]
        evaluation = Evaluation(loaded, dataset, Judge(), ("own",), of_iid)
        suited = [name for name in asked if accepts_evaluation(name, evaluation)]
        assert set(suited) >= ({"beta-score", "factor-score"} if open_split == "iid" else {"compositionality"})
        for score in evaluate(evaluation, suited).run():
            if score.unit == "%":
                assert score.stderr is None or score.stderr > 0, (score.metric, score.protocol)
                assert 0 <= score.value <= 100


def test_errors_of_a_judge() -> None:
    accuracy = Accuracy({"digit": 100, "size": 90}, {"digit": 100, "size": 100}, hints=1)
    errors = accuracy.stderr
    assert set(errors) == set(accuracy.percent)
    assert errors["digit"] == pytest.approx(binomial_error(100.0, 100))
    assert errors["mean"] == pytest.approx(np.hypot(errors["digit"], errors["size"]) / 2)
    assert errors["words"] == pytest.approx(np.hypot(errors["digit"], errors["size"]) / 3)


def coverage_inside(values: int, count: int, q: list[float], repeats: int) -> tuple[float, float]:
    """How often value +- 1.96 errors holds the truth: as reported, and of the corrected mean with its spread alone."""
    random = np.random.default_rng(values * count)
    p = np.full(values, 1 / values)
    queries = Queries(np.full((count, 1), 255, np.uint8), np.ones(count), dropped=1)
    frequencies = Frequencies(np.arange(values, dtype=np.uint8)[:, None], (values,))
    truth = 100 * (1 - float(jensen_shannon(p, np.array(q))))
    inside: list[Any] = []
    for repetition in range(repeats):
        draws = 48
        judged = random.choice(values, size=(count, 192, 1), p=q).astype(np.uint8)
        while True:  # as the metric does
            measured = exact_coverage(queries, judged[:, :draws], frequencies, repetition)
            mean, bias = weighted_mean(measured.values, queries.weights, 0), float(measured.bias.mean())
            assert mean.stderr is not None
            if abs(bias) < mean.stderr or draws == 192:
                break
            draws *= 2
        value, stderr = combine_with_bias(mean, bias, count * draws)
        assert stderr is not None
        inside.append((abs(value - truth) <= 1.96 * stderr, abs(mean.value - truth) <= 1.96 * mean.stderr))
    said, plain = np.mean(inside, 0)
    return float(said), float(plain)


@pytest.mark.slow_cases("10-24")
@pytest.mark.parametrize(("values", "count"), [(3, 24), (10, 24)])
def test_intervals_of_coverage_hold_for_a_perfect_model(values: int, count: int) -> None:
    said, plain = coverage_inside(values, count, [1 / values] * values, 120)
    assert said >= 0.95
    assert plain < 0.94


def test_intervals_of_coverage_hold_for_a_model_that_is_not() -> None:
    said, _ = coverage_inside(3, 24, [0.4, 0.35, 0.25], 120)
    assert said >= 0.92

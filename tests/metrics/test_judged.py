"""Correctness, coverage and compositionality against cases worked out by hand and by simulation."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import mmgen.metrics
from mmgen.artifacts import Dataset
from mmgen.classifier._files import build_classifier
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.queries import Frequencies, Queries, Questions, WeightedMean, weighted_mean
from mmgen.evaluation.real import jackknife_divergence, jensen_shannon, remaining_bias
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics._base import evaluate, training_images_warning
from mmgen.metrics.correctness import correctness_by_query
from mmgen.metrics.coverage import combine_with_bias, exact_coverage, query_coverage_error
from mmgen.modalities.image import ImageDescription
from mmgen.results.standard_errors import clustered_error, share_error
from tests.metrics.toy import Judge, Painter, loaded_painter, write_dataset
from tests.posteriors.stand_in import stand_ins
from tests.worlds import added


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("toy") / "toy.h5"))


def asked(dataset: Dataset, posteriors: tuple[str, ...] = ("own",), split: str = "iid", **settings: Any) -> Evaluation:
    loaded = loaded_painter(Path("m.safetensors"), split=split)
    return Evaluation(loaded, dataset, Judge(), posteriors, EvaluationSettings(**settings))


def test_correctness_by_hand() -> None:
    queries = np.array([[1, 0], [2, 255]], np.uint8)
    judged = np.array([[[1, 0], [1, 1]], [[2, 0], [0, 0]]], np.uint8)
    # First query: 2 of 2 attributes, then 1 of 2; second: 1 of 1, then 0 of 1.
    np.testing.assert_allclose(correctness_by_query(queries, judged), [0.75, 0.5])


def test_correctness_of_a_perfect_model_and_of_the_prior(dataset: Dataset) -> None:
    scores = evaluate(asked(dataset, ("prior", "own"), draws=200, dropped=(0, 1)), ["correctness"]).run()
    by_question = {(s.posterior, s.given, s.protocol): s for s in scores}
    for given in (1, 2):
        assert by_question["own", given, "exact"].value == 100
    chance = by_question["prior", 2, "exact"]  # a third of the digits, half of the sizes
    assert chance.stderr is not None
    assert chance.value == pytest.approx(100 * (1 / 3 + 1 / 2) / 2, abs=4 * chance.stderr + 1)
    assert (chance.n, chance.details["queries"], chance.judge_accuracy) == (1200, 6, Judge.accuracy)
    # The prior's pictures and words come from the same z.
    assert by_question["prior", 0, "generated-text"].value == 100


def test_examples_known_in_part_are_asked_for_where_none_is_known_whole(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Digits of some examples and sizes of the others: one of the two is given, and the other varies as it should."""
    whole = Questions._read_codes

    def half(questions: Questions, part: str) -> np.ndarray:
        codes = whole(questions, part).copy()
        codes[::2, 0] = codes[1::2, 1] = 255
        return codes

    monkeypatch.setattr(Questions, "_read_codes", half)
    assert asked(dataset).questions.dropped == (1,)
    correctness, coverage = evaluate(asked(dataset), ["correctness", "coverage"]).run()
    assert (correctness.given, correctness.value, correctness.details["queries"]) == (1, 100, 5)
    assert (coverage.given, coverage.details["queries_without_training_examples"]) == (1, 5)
    assert coverage.value is not None and coverage.value > 97
    with pytest.raises(UsageError, match="none can be described by 2"):
        evaluate(asked(dataset, dropped=(0,)), ["correctness"]).run()
    with pytest.raises(UsageError, match="all attributes known, but the part 'test' has none; use --metric corr"):
        evaluate(asked(dataset), ["compositionality"])


def test_correctness_and_coverage_share_their_pictures(dataset: Dataset) -> None:
    evaluation = asked(dataset, draws=60, dropped=(1,))
    correctness, coverage = evaluate(evaluation, ["correctness", "coverage"]).run()
    assert correctness.metric == "correctness"  # as asked for, although coverage is measured first
    assert correctness.n == coverage.n
    assert evaluation.drawn_pictures.classify_pictures(evaluation.questions.make_queries(1), "own", 5) is not None
    (codes,) = evaluation.drawn_pictures._judged.values()
    assert codes.shape[0] * codes.shape[1] == coverage.n


def test_more_pictures_are_added_to_those_drawn(dataset: Dataset) -> None:
    evaluation = asked(dataset)
    queries = evaluation.questions.make_queries(1)

    def draw(n: int) -> np.ndarray:
        return run_generator(evaluation.drawn_pictures.classify_pictures(queries, "own", n))

    few = draw(10).copy()
    many = draw(30)
    assert many.shape == (len(queries), 30, 2)
    np.testing.assert_array_equal(many[:, :10], few)
    np.testing.assert_array_equal(draw(20), many)


def test_same_seed_same_scores_other_seed_others(dataset: Dataset) -> None:
    values = [
        evaluate(asked(dataset, ("prior",), seed=seed, dropped=(0,)), ["correctness"]).run()[0].value
        for seed in (1, 1, 2)
    ]
    assert values[0] == values[1] != values[2]


def test_compositionality_is_asked_of_models_that_never_saw_the_combination(dataset: Dataset) -> None:
    (score,) = evaluate(asked(dataset, split="compositional"), ["compositionality"]).run()
    assert (score.value, score.given, score.details["queries"]) == (100, 2, 1)
    settings = EvaluationSettings(split="compositional")
    seen = Evaluation(loaded_painter(Path("m.safetensors")), dataset, Judge(), ("own",), settings)
    with pytest.raises(UsageError, match="'iid', which holds 1 of the 1 combinations"):
        evaluate(seen, ["compositionality"])


def test_divergence_is_scipys() -> None:
    random, point, other = np.random.default_rng(0), [[1.0, 0, 0, 0, 0, 0]], [[0, 0.5, 0.5, 0, 0, 0]]
    p = np.concatenate([random.dirichlet(np.ones(6), 20), point, point])
    q = np.concatenate([random.dirichlet(np.full(6, 0.3), 20), point, other])
    for base in (2.0, math.e):
        expected = [jensenshannon(a, b, base) ** 2 for a, b in zip(p, q, strict=True)]
        np.testing.assert_allclose(jensen_shannon(p, q, base), expected, atol=1e-12)


@pytest.mark.parametrize("q", [[0.25] * 4, [0.7, 0.2, 0.1, 0.0], [0.4, 0.3, 0.2, 0.1]])
def test_jackknife_removes_the_bias_and_the_rest_is_estimated(q: list[float]) -> None:
    random = np.random.default_rng(0)
    p, draws = np.full(4, 0.25), 48
    counts = random.multinomial(draws, q, size=20_000)
    truth = jensen_shannon(p, np.array(q))
    plain = jensen_shannon(p, counts / draws).mean() - truth
    corrected = jackknife_divergence(p, counts).mean() - truth
    assert plain > 0.006
    assert abs(corrected) < 0.2 * plain
    assert remaining_bias(p, counts[:500], random).mean() == pytest.approx(corrected, abs=0.003)


@pytest.mark.slow
def test_exact_coverage_has_less_bias_than_its_standard_error() -> None:
    """A ten-way attribute with known q: over many repetitions the mean error stays below the printed error, which
    without the correction it does not."""
    random = np.random.default_rng(0)
    p, q, draws, count = np.full(10, 0.1), np.array([0.2, 0.15] + [0.65 / 8] * 8), 96, 24
    queries = Queries(np.full((count, 1), 255, np.uint8), np.ones(count), dropped=1)
    frequencies = Frequencies(np.arange(10, dtype=np.uint8)[:, None], (10,))
    truth = 100 * (1 - jensen_shannon(p, q))
    errors, plain, printed, said = [], [], [], []
    for repetition in range(100):
        judged = random.choice(10, size=(count, draws, 1), p=q).astype(np.uint8)
        measured = exact_coverage(queries, judged, frequencies, seed=repetition)
        mean = weighted_mean(measured.values, queries.weights, seed=0)
        assert mean.stderr is not None
        errors.append(mean.value - truth)
        plain.append(measured.uncorrected.mean() - truth)
        printed.append(mean.stderr)
        said.append(measured.bias.mean())
    assert abs(np.mean(errors)) < np.mean(printed)
    assert abs(np.mean(plain)) > 3 * np.mean(printed)
    assert np.mean(said) == pytest.approx(np.mean(errors), abs=0.2)
    assert np.std(errors) == pytest.approx(np.mean(printed), rel=0.25)


def test_exact_coverage_draws_until_its_bias_is_below_its_error(dataset: Dataset) -> None:
    scores = evaluate(asked(dataset, ("prior", "own"), draws=10, dropped=(1, 2)), ["coverage"]).run()
    for score in scores:
        assert score.protocol == "exact"
        assert score.details["images_per_query"] >= 48
        if score.stderr is None:
            continue
        assert score.details["bias_below_stderr"]
        assert abs(score.details["bias"]) < score.stderr
        assert score.value == pytest.approx(100, abs=5 * score.stderr + 0.5)  # open attributes are drawn as in the data


def test_coverage_of_a_single_query_is_settled_by_the_error_over_its_pictures(dataset: Dataset) -> None:
    """Nothing given is one query. Pictures that are all the same have no error: then the bias is never below it."""
    (score,) = evaluate(asked(dataset, ("prior",), dropped=(2,)), ["coverage"]).run()
    assert score.stderr is None
    assert score.details["bias_below_stderr"] == (abs(score.details["bias"]) < score.details["stderr_over_pictures"])
    evaluation = asked(dataset, ("prior",), dropped=(2,))
    every = evaluation.loaded.posteriors
    evaluation.loaded.posteriors = stand_ins(every, lambda name: lambda *question: every[name].draw(*question) * 0)
    (score,) = evaluate(evaluation, ["coverage"]).run()
    assert (score.details["bias_below_stderr"], score.details["images_per_query"]) == (False, 768)


def test_error_over_pictures_is_their_spread() -> None:
    random = np.random.default_rng(0)
    queries = Queries(np.full((1, 2), 255, np.uint8), np.ones(1), dropped=2)
    frequencies = Frequencies(np.array([[0, 0], [1, 1], [2, 0]], np.uint8), (3, 2))
    values, told = [], []
    for repetition in range(100):
        judged = np.stack([random.choice(3, (1, 96), p=[0.6, 0.3, 0.1]), random.choice(2, (1, 96), p=[0.3, 0.7])], -1)
        values.append(exact_coverage(queries, judged.astype(np.uint8), frequencies, repetition).values[0])
        told.append(query_coverage_error(queries, judged.astype(np.uint8), frequencies))
    assert np.mean(told) == pytest.approx(np.std(values), rel=0.2)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("metric", ["correctness", "coverage", "compositionality"])
def test_decoders_and_judge_compute_as_they_are_told(
    dataset: Dataset, metric: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = asked(dataset, ("prior",), "compositional", precision=precision, dropped=(0, 1), draws=2)
    drawn, judged = [], []
    mean, predict = Painter.mean, Judge.predict

    def draw(self: Painter, *question: Any) -> Any:
        drawn.append("bf16-mixed" if torch.is_autocast_enabled("cpu") else "32-true")
        return mean(self, *question)

    def look(self: Judge, images: Any, hints: Any, arithmetic: str = "auto") -> Any:
        judged.append(arithmetic)
        return predict(self, images, hints)

    monkeypatch.setattr(Painter, "mean", draw)
    monkeypatch.setattr(Judge, "predict", look)
    evaluate(evaluation, [metric]).run()
    assert set(drawn) == set(judged) == {precision}


def test_a_judge_computes_as_it_is_told() -> None:
    judge = build_classifier("small", ImageDescription(shape=(1, 16, 16), layout="bytes"), ("a",), (("0", "1"),)).eval()
    seen = []
    judge.network.register_forward_hook(lambda module, given, logits: seen.append(logits[0].dtype))
    for precision in ("32-true", "bf16-mixed"):
        judge.predict(torch.zeros(1, 1, 16, 16), precision=precision)
    assert seen == [torch.float32, torch.bfloat16]


def test_images_that_were_trained_on_are_told(dataset: Dataset) -> None:
    """All but the last 10 examples without the held-out combination were trained on."""
    loaded = loaded_painter(Path("m.safetensors"), dataset.header.content_id, "compositional")
    asked_of = Evaluation(loaded, dataset, Judge(), ("own",), EvaluationSettings(split="iid", number=5, draws=1))
    trained = dataset.split("compositional", "train")
    share = np.isin(dataset.split("iid", "test"), trained).mean()
    assert 0 < share < 1
    (active, correct, *_) = evaluate(asked_of, ["active-units", "correctness"]).run()
    assert active.details["trained_share"] == share and "trained_share" not in correct.details
    told = training_images_warning(asked_of, ["correctness", "active-units"])
    assert told.startswith(f"{100 * share:.1f} % of the test part of split 'iid' are images that") and "active" in told
    assert (
        training_images_warning(asked_of, ["correctness", "parameters"]) == ""
    )  # which look at no images of the dataset
    training = Evaluation(loaded, dataset, Judge(), ("own",), EvaluationSettings(split="iid", part="train"))
    assert training.provenance.trained_share > 0 and training_images_warning(training, ["active-units"]) == "", (
        "as asked"
    )
    own = Evaluation(loaded, dataset, Judge(), ("own",), EvaluationSettings())
    assert (own.provenance.trained_share, training_images_warning(own, ["active-units"])) == (0, "")
    elsewhere = Evaluation(loaded_painter(Path("m")), dataset, Judge(), ("own",), EvaluationSettings(part="val"))
    assert (elsewhere.provenance.trained_share, training_images_warning(elsewhere, ["active-units"])) == (None, "")


def test_paper_coverage_takes_ten_pictures_and_nats(dataset: Dataset) -> None:
    (score,) = evaluate(asked(dataset, draws=99, dropped=(1,), protocol="paper"), ["coverage"]).run()
    assert (score.protocol, score.details["images_per_query"]) == ("paper", 10)
    evaluation = asked(dataset, dropped=(1,), protocol="paper")
    loaded = evaluation.loaded
    every = loaded.posteriors
    loaded.posteriors = stand_ins(every, lambda name: lambda *question: every[name].draw(*question) * 0)  # first values
    (score,) = evaluate(evaluation, ["coverage"]).run()
    two, three = (jensen_shannon(np.full(v, 1 / v), np.eye(v)[0], math.e) for v in (2, 3))
    assert score.value == pytest.approx(
        100 * (1 - (two + three) / 2)
    )  # each choice of the dropped attribute counts once


@pytest.mark.parametrize("metric", ["reconstruction"])
def test_errors_are_of_pictures_where_several_points_are_of_one(
    dataset: Dataset, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = evaluate(asked(dataset), [metric]).run()
    monkeypatch.setattr(Dataset, "read_sources", lambda self, rows: rows // 4)
    together = evaluate(asked(dataset), [metric]).run()
    for before, after in zip(plain, together, strict=True):
        rows = np.sort(dataset.split("iid", "test")) // 4
        assert (before.value, before.n) == (after.value, after.n) and before.points.clusters is None
        assert after.points.units == len(np.unique(rows)) < after.n
        spread = clustered_error(after.points.values, rows)  # 0 of a painter that is always right, and no share has 0
        assert after.stderr == pytest.approx(share_error(after.value, spread, after.n))


def test_which_metrics_have_values_of_points() -> None:
    found = {name for name, member in mmgen.metrics.import_all().items() if member.points == "averaged"}
    own = {"label-accuracy", "log-likelihood", "negative-elbo", "reconstruction"}
    assert found == own.union(*added("OF_POINTS"))


class SizeJudge(Judge):
    """A judge that is told the digit."""

    hints = ("digit",)


def measured(dataset: Dataset, judge: Judge, posterior: Any = None, **settings: Any) -> list[Any]:
    loaded = loaded_painter(Path("m.safetensors"), split="iid")
    if posterior is not None:
        loaded.model.posterior = posterior
    evaluation = Evaluation(loaded, dataset, judge, ("prior",), EvaluationSettings(number=30, **settings))
    return evaluate(evaluation, ["reconstruction"]).run()


def all_small(batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
    """Encodings that keep the digit and lose the size."""
    mean = batch.values["attributes"].float().clone()
    mean[:, 1] = 1.0
    return DiagonalGaussian(mean, torch.full_like(mean, -2.0))


def test_what_an_encoding_keeps_is_read_and_what_it_loses_is_not(dataset: Dataset) -> None:
    (whole,) = measured(dataset, Judge())
    assert (whole.value, whole.n, whole.details["real"]) == (100.0, 30, 100.0)
    assert whole.stderr == pytest.approx(share_error(100.0, 0.0, 30))  # no proof that none is ever lost
    (lossy,) = measured(dataset, Judge(), all_small)
    small = lossy.by_attribute["size"]  # right where the size was small, as about half of them are
    assert 20 < small < 80
    assert lossy.by_attribute["digit"] == 100
    assert lossy.value == pytest.approx((100 + small) / 2)
    assert lossy.details["real"] == 100


def test_words_that_the_judge_is_told_count_in_the_paper_protocol_alone(dataset: Dataset) -> None:
    paper, exact = measured(dataset, SizeJudge(), all_small)
    assert (paper.protocol, exact.protocol) == ("paper", "exact")
    assert set(exact.by_attribute) == {"size"}
    assert exact.value == pytest.approx(2 * paper.value - 100)


def test_the_bias_that_is_left_widens_the_error_and_no_coverage_is_above_100() -> None:
    assert combine_with_bias(WeightedMean(90.0, 3.0, None), -4.0, 1000) == (90.0, share_error(90.0, 5.0, 1000))
    assert combine_with_bias(WeightedMean(101.0, None, None), 1.0, 1000) == (100.0, None)

"""Ranks against every order of ties, and retrieval by a model whose every likelihood is known."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.evaluation.retrieved import Ranks
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.trace import Trace
from mmgen.metrics.retrieval import Retrieval
from mmgen.results.standard_errors import binomial_error
from mmgen.testing.linear_gaussian import draw_observations, exact_log_marginal, make_linear_gaussian
from tests.metrics.test_linear_gaussian import loaded
from tests.posteriors.stand_in import stand_ins


def test_ties_count_as_every_order_of_them() -> None:
    """Three wrong and two right ones tie below a better wrong one; another right one is worse. All 120 orders."""
    scores = np.array([[2.0, 1, 1, 1, 1, 1, 0.5, 0.0]])
    same = np.array([[False, True, True, False, False, False, True, False]])
    ranks = Ranks.from_scores(scores, same)
    first = [2 + min(order.index(0), order.index(1)) for order in itertools.permutations(range(5))]
    assert ranks.ranks.tolist() == pytest.approx([np.mean(first)])
    for k in range(1, 8):
        assert ranks.recall_at(k).tolist() == pytest.approx([np.mean([rank <= k for rank in first])]), k
    chance = ranks.chance
    everywhere = [1 + min(order) for order in itertools.combinations(range(8), 3)]
    assert chance.ranks.tolist() == pytest.approx([np.mean(everywhere)])
    assert chance.recall_at(2).tolist() == pytest.approx([np.mean([rank <= 2 for rank in everywhere])])


def test_scores_apart_by_rounding_are_ties() -> None:
    scores = np.array([[-1234.5, -1234.5 * (1 + 1e-9), -1233.0]])
    ranks = Ranks.from_scores(scores, np.array([[True, False, False]]))
    assert (ranks.better.tolist(), ranks.tied.tolist()) == ([1], [1])


def test_what_is_not_finite_is_last_and_knows_nothing() -> None:
    """All of four NaN: any order. A right one at minus infinity below two finite ones ties with the other: 3 or 4."""
    right = np.eye(4, dtype=bool)[:1]
    nothing = Ranks.from_scores(np.full((1, 4), np.nan), right)
    assert (nothing.recall_at(1).tolist(), nothing.ranks.tolist()) == ([0.25], [2.5])
    last = Ranks.from_scores(np.array([[-np.inf, -3.0, np.nan, -5.0]]), right)
    assert (last.recall_at(1).tolist(), last.recall_at(3).tolist(), last.ranks.tolist()) == ([0.0], [0.5], [3.5])
    certain = Ranks.from_scores(np.array([[np.inf, -3.0, 0.0, -np.inf]]), right)
    assert (certain.recall_at(1).tolist(), certain.ranks.tolist()) == ([1.0], [1.0])


def scores_of(
    model: Any, points: Batch, q: Any = None, dataset: Any = None, **settings: Any
) -> dict[tuple[str, str, str], Any]:
    """By protocol, posterior and quantity."""
    of = loaded(model)
    of.path = of.model_path = "m"
    of.reads = lambda posterior: () if posterior == "prior" else ("attributes",)
    if q is not None:
        of.posteriors = stand_ins(("prior", "own"), densities=lambda name: q)
        of.posteriors["own"].is_fitted = True
    evaluation = SimpleNamespace(
        loaded=of,
        settings=EvaluationSettings(**{"precision": "32-true", **settings}),
        data_points=points,
        posteriors=("prior", "own"),
        content_ids={},
        rows_of_points=np.arange(points.size),
        dataset=dataset or SimpleNamespace(path="d", texts={}),
        ignores_text=lambda name: name == "prior",
    )
    metric = Retrieval()
    metric.check(evaluation)
    return {
        (score.protocol, score.posterior, score.quantity): score for score in run_generator(metric(evaluation, "prior"))
    }


def exact_pairs(points: Batch) -> Tensor:
    """log p(x_i, y_j) - log p(x_i) - log p(y_j) [N, N] in closed form."""
    count = points.size
    first, second = torch.arange(count).repeat_interleave(count), torch.arange(count).repeat(count)
    values = {"image": points.values["image"][first], "attributes": points.values["attributes"][second]}
    joint = exact_log_marginal(Batch(values, {}), ("image", "attributes")).reshape(count, count)
    image, words = (exact_log_marginal(points, (name,)) for name in ("image", "attributes"))
    return joint - image[:, None] - words


@pytest.mark.slow
def test_ranks_are_those_of_the_closed_form() -> None:
    """With exact posteriors and many draws every score agrees with ranks by log p(y|x) and log p(x|y) - log p(x)."""
    points = draw_observations(40, seed=3)
    found = scores_of(make_linear_gaussian(), points, samples=3000)
    evidence = exact_pairs(points).numpy()
    said = evidence + exact_log_marginal(points, ("attributes",)).numpy()
    same = np.eye(40, dtype=bool)
    tables = {("text-given-image", "image"): said, ("evidence", "own"): evidence}
    for (protocol, source), table in tables.items():
        for direction, asked in (("image to text", table), ("text to image", table.T)):
            exact = Ranks.from_scores(asked, same)
            for k in (1, 5, 10):
                score = found[protocol, source, f"R@{k}, {direction}"]
                # Two neighbours may change places where their scores are as near as the noise of the draws.
                assert score.value == pytest.approx(100 * exact.recall_at(k).mean(), abs=2.6), (protocol, direction, k)
                assert score.details["chance"] == pytest.approx(100 * k / 40) and score.details["pool"] == score.n == 40
            median = found[protocol, source, f"median rank, {direction}"]
            assert (median.unit, median.better, median.details["chance"]) == ("ranks", "lower", 20.5)
            assert median.value == pytest.approx(np.median(exact.ranks), abs=1)
            assert median.points is None, "of which a median is no mean"
            ranks = np.array(median.details["ranks"])
            assert np.abs(ranks - exact.ranks).max() <= 3 and (ranks == exact.ranks).mean() > 0.7
    assert found["evidence", "own", "R@10, text to image"].value > 60


def test_a_model_that_ignores_the_text_is_at_chance() -> None:
    """Its p(y|z) and q(z|y) know nothing: all pictures tie for a description, and of descriptions each is the likeliest
    as often as it is right, once. Two examples share a description, and their pictures are right for either."""
    model, points = make_linear_gaussian(0.3, 0.2), draw_observations(20)
    model.decoders["attributes"].weight.data.zero_()
    words = points.values["attributes"].clone()
    prior = lambda z, batch: model.log_prior(z)  # noqa: E731
    found = scores_of(model, points, prior, samples=7)
    for (protocol, _, quantity), score in found.items():
        assert score.value == pytest.approx(score.details["chance"]), (protocol, quantity)
        assert score.details["shared"] == 0
    words[1] = words[0]
    twins = Batch({**points.values, "attributes": words}, points.present)
    shared = scores_of(model, twins, prior, samples=7)
    exact = (18 * 1 / 20 + 2 * 2 / 20) / 20
    for direction in ("image to text", "text to image"):
        score = shared["evidence", "own", f"R@1, {direction}"]
        assert score.details["chance"] == pytest.approx(100 * exact) == score.value
        assert score.details["shared"] == pytest.approx(10)
    assert shared["text-given-image", "image", "R@1, text to image"].value == pytest.approx(100 * exact)


class Conditional:
    """p(z) = N(0, 1), x = z + 3 y + noise of sd 0.5, so that p(x|y) = N(3 y, 1.25); q(z|x,y) is half as sharp."""

    conditional_on, latent_size, modalities = ("attributes",), 1, {"image": SimpleNamespace(is_independent=True)}

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return inputs == ("image", "attributes")

    def log_prior(self, z: Tensor) -> Tensor:
        return DiagonalGaussian.standard(1, like=z).log_prob(z)

    def posterior(self, batch: Batch, inputs: tuple[str, ...]) -> DiagonalGaussian:
        assert inputs == ()
        return DiagonalGaussian.standard(batch.size, 1)

    def trace(self, batch: Batch, inputs: tuple[str, ...], samples: int, names: tuple[str, ...]) -> Trace:
        assert inputs == ("image", "attributes")
        assert names == ("image",)
        rest = batch.values["image"].flatten(1) - 3 * batch.values["attributes"].float()
        q = DiagonalGaussian(0.8 * rest, torch.full_like(rest, math.log(0.6)))
        z = q.sample(None, (samples,))
        likelihood = DiagonalGaussian(z, torch.full_like(z, math.log(0.5))).log_prob(rest)
        return Trace(z, {"image": likelihood}, {}, {"z": self.log_prior(z) - q.log_prob(z)})


def test_pictures_of_a_conditional_model_are_ranked_by_its_likelihoods() -> None:
    """Against log p(x|y) in closed form, less the log of its mean over the pool's descriptions."""
    generator = torch.Generator().manual_seed(0)
    count = 60
    words = torch.arange(count)[:, None] % 4
    words[:40] = torch.arange(40)[:, None]  # forty descriptions, some of several pictures
    pictures = (3 * words + 1.25**0.5 * torch.randn(count, 1, generator=generator)).reshape(count, 1, 1, 1)
    points = Batch(
        {"image": pictures, "attributes": words},
        {"image": torch.ones(count, dtype=torch.bool), "attributes": torch.ones(count, 1, dtype=torch.bool)},
    )
    model = Conditional()
    found = scores_of(model, points, lambda z, batch: model.log_prior(z), samples=400, pool=count)
    assert {key[:2] for key in found} == {("pooled-evidence", "prior"), ("pooled-evidence", "own")}
    rest = pictures.flatten(1) - 3 * words[:, 0]  # [pictures, examples' descriptions]
    table = -0.5 * (rest**2 / 1.25 + math.log(2 * math.pi * 1.25))
    table = (table - table.logsumexp(1, keepdim=True) + math.log(count)).numpy()
    same = (words == words[:, 0]).numpy()
    for source in ("prior", "own"):
        for direction, exact_table in (("image to text", table), ("text to image", table.T)):
            exact = Ranks.from_scores(exact_table, same)
            for k in (1, 5, 10, 50):
                score = found["pooled-evidence", source, f"R@{k}, {direction}"]
                assert score.value == pytest.approx(100 * exact.recall_at(k).mean(), abs=3.5), (source, direction, k)
                assert (score.details["samples"], score.details["pool"]) == (400, count)
            median = found["pooled-evidence", source, f"median rank, {direction}"]
            assert median.value == pytest.approx(np.median(exact.ranks), abs=1)
    fewer = scores_of(model, points, lambda z, batch: model.log_prior(z), pool=count)
    assert fewer["pooled-evidence", "prior", "R@1, text to image"].details["samples"] == 10


def test_all_captions_of_a_picture_are_queries_and_any_is_right() -> None:
    """Thirty pictures x = z + 3 y, of which each third has no, one or two captions beside the first."""
    generator = torch.Generator().manual_seed(1)
    count = 30
    own = torch.arange(count)[:, None]
    pictures = (3 * own + 1.25**0.5 * torch.randn(count, 1, generator=generator)).reshape(count, 1, 1, 1)
    captions = np.full((count, 3, 1), 99, np.uint16)
    for row in range(count):
        captions[row, : 1 + row % 3, 0] = [row, (row + 7) % count, 40 + row][: 1 + row % 3]
    there = torch.ones(count, dtype=torch.bool)
    points = Batch({"image": pictures, "attributes": own}, {"image": there, "attributes": there})
    dataset = SimpleNamespace(
        path="d",
        texts={"attributes": SimpleNamespace(captions=3, padding=99)},
        read_captions=lambda name, rows: captions[rows],
    )
    model = Conditional()
    found = scores_of(model, points, lambda z, batch: model.log_prior(z), dataset, samples=400, pool=count)
    owner, place = np.nonzero(captions[:, :, 0] != 99)
    words = captions[owner, place, 0]
    rest = pictures.flatten(1).numpy() - 3.0 * words
    table = -0.5 * rest**2 / 1.25
    table -= np.log(np.exp(table - table.max(1, keepdims=True)).sum(1, keepdims=True)) + table.max(1, keepdims=True)
    same = np.array([[word in captions[row] for word in words] for row in range(count)])
    for direction, scores, right in (("image to text", table, same), ("text to image", table.T, same.T)):
        exact = Ranks.from_scores(scores, right)
        for k in (1, 5, 10):
            score = found["pooled-evidence", "prior", f"R@{k}, {direction}"]
            assert score.value == pytest.approx(100 * exact.recall_at(k).mean(), abs=3.5), (direction, k)
            assert (score.n, score.details["pool"]) == right.shape
            assert score.details["chance"] == pytest.approx(100 * exact.chance.recall_at(k).mean())
            assert score.stderr == pytest.approx(binomial_error(score.value, count)), "errors are over pictures"


def test_what_cannot_be_asked() -> None:
    model = make_linear_gaussian()
    model.inference.has_posterior = lambda given: given == ("image", "attributes")
    with pytest.raises(UsageError, match=r"draws from q\(z \| image\), and this model has no such posterior"):
        scores_of(model, draw_observations(4))
    one = draw_observations(1)
    with pytest.raises(UsageError, match="at least two examples"):
        scores_of(make_linear_gaussian(), one)

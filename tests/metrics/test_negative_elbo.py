"""The negative ELBO and its parts against a model in which all have closed forms."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics.negative_elbo import NegativeElbo
from mmgen.results.score import Score
from mmgen.testing.linear_gaussian import (
    NOISE,
    WEIGHTS,
    draw_observations,
    exact_log_marginal,
    exact_posterior,
    make_conditional_linear_gaussian,
    make_linear_gaussian,
)
from tests.metrics.test_linear_gaussian import loaded

POINTS = draw_observations(40)


def scores(model: Any, samples: int) -> dict[str, Score]:
    evaluation = SimpleNamespace(
        loaded=loaded(model),
        settings=EvaluationSettings(samples=samples, precision="32-true"),
        data_points=POINTS,
        content_ids={"model": "m"},
        dataset=SimpleNamespace(images={}),
    )
    member = NegativeElbo()
    member.check(evaluation)
    return {score.quantity: score for score in run_generator(member(evaluation, "prior"))}


@pytest.mark.parametrize(("mean_offset", "log_sd_offset"), [(0.0, 0.0), (0.3, 0.2)])
def test_bound_and_parts_have_their_closed_forms(mean_offset: float, log_sd_offset: float) -> None:
    """-E log p(x|z) = ((x - W m)^2 + sum_d w_d^2 s_d^2) / 2 noise^2 + constant; -ELBO = -log p(x) + KL(q, p(z|x))."""
    found = scores(make_linear_gaussian(mean_offset, log_sd_offset), 4000)
    exact, weights, x = exact_posterior(POINTS, ("image",)), WEIGHTS["image"], POINTS.values["image"]
    q = DiagonalGaussian(exact.mean + mean_offset, exact.log_sd + log_sd_offset)
    squares = (x - q.mean @ weights.T).square().sum(-1) + (q.variance * weights.square().sum(0)).sum(-1)
    error = squares / (2 * NOISE**2) + 4 * (math.log(NOISE) + 0.5 * math.log(2 * math.pi))
    cost = q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean))
    bound = -exact_log_marginal(POINTS, ("image",)) + q.kl(exact)
    assert found["KL"].value == pytest.approx(float(cost.mean()), abs=1e-9)
    assert found["reconstruction error"].value == pytest.approx(float(error.mean()), abs=0.02)
    assert found["negative ELBO"].value == pytest.approx(float(bound.mean()), abs=0.02)
    assert found["negative ELBO"].value == pytest.approx(found["KL"].value + found["reconstruction error"].value)
    values = found["negative ELBO"].points.values
    assert found["negative ELBO"].stderr == pytest.approx(float(bound.std() / math.sqrt(40)), rel=0.05)
    assert len(values) == found["negative ELBO"].n == 40
    assert {score.details["samples"] for score in found.values()} == {4000}


def test_a_conditional_model_has_no_bound_on_pictures_alone() -> None:
    with pytest.raises(UsageError, match=r"negative-elbo needs p\(image \| z\), and this model has none"):
        scores(make_conditional_linear_gaussian(), 1)

"""log p(picture given words) under densities that are integrals: their errors are named, their costs are bounded."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.densities.rectified_flow import RectifiedFlowDensity
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.evaluation.needs import check_slow_pairs, explain_slow_densities, importance_samples, text_samples
from mmgen.metrics.log_likelihood import LogLikelihood
from mmgen.results.score import Score
from mmgen.testing.linear_gaussian import draw_observations, make_linear_gaussian
from tests.densities.exact_flows import MIXTURE, exact_flow, log_mixture
from tests.metrics.test_linear_gaussian import loaded
from tests.posteriors.stand_in import StandIn

POINTS = draw_observations(200)


class Flow(StandIn):
    """A fitted q(z | y) with the density of a flow, whatever y is."""

    def __init__(
        self, density: RectifiedFlowDensity, cost: float = 0.0, reads: tuple[str, ...] = ("attributes",)
    ) -> None:
        super().__init__("aggregate", fitted=True, reads=reads)
        self.flow, self._cost = density, cost

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        return self.flow.log_prob(z, None)

    def log_density_with_error(self, z: Tensor, words: Batch) -> tuple[Tensor, Tensor | None]:
        return self.flow.log_prob_with_error(z, None)

    @property
    def log_density_cost(self) -> float:
        return self._cost


def evaluation(posterior: StandIn, **settings: Any) -> Any:
    model = loaded(make_linear_gaussian())
    model.posteriors["aggregate"] = posterior
    return SimpleNamespace(
        loaded=model,
        settings=EvaluationSettings(**settings),
        data_points=POINTS,
        posteriors=("aggregate",),
        content_ids={},
        split="iid",
        text_proposal=None,
        rows=lambda: range(POINTS.size),
        ignores_text=lambda name: not posterior.reads,
    )


def scores(posterior: StandIn, **settings: Any) -> dict[str, Score]:
    """By protocol."""
    return {
        score.protocol: score
        for score in run_generator(LogLikelihood()(evaluation(posterior, **settings), "aggregate"))
    }


@torch.no_grad()
def test_a_flow_has_the_score_of_its_closed_form() -> None:
    closed = StandIn("aggregate", density=lambda z, words: log_mixture(z), fitted=True)
    expected = scores(closed, samples=4, proposal="image")
    found = scores(Flow(exact_flow(2, **MIXTURE, density_steps=24)), samples=4, proposal="image")
    for protocol, score in found.items():
        assert score.value == pytest.approx(expected[protocol].value, abs=0.01)
        assert "density_stderr" not in score.details


@torch.no_grad()
def test_the_error_of_random_probes_is_named_and_is_in_the_standard_error() -> None:
    """Examples have probes of their own: the noise is in the spread of their values, in quadrature with the rest."""
    exact = scores(Flow(exact_flow(2, **MIXTURE, density_steps=8)), samples=6, proposal="image")
    probed = scores(Flow(exact_flow(2, **MIXTURE, density_steps=8, probes=2)), samples=6, proposal="image")
    for protocol, score in probed.items():
        error, point = score.details["density_stderr"], score.details["density_stderr_of_a_point"]
        assert point > 3 * error > 0  # errors of points average out
        assert abs(score.value - exact[protocol].value) < 4 * error
        noise = torch.tensor(score.points.values) - torch.tensor(exact[protocol].points.values)
        assert float(noise.std()) / math.sqrt(len(noise)) == pytest.approx(error, rel=0.35)
        quadrature = math.hypot(exact[protocol].stderr, error)
        assert score.stderr == pytest.approx(quadrature, rel=0.15)


def test_slow_densities_have_fewer_samples_unless_they_are_asked_for() -> None:
    flow = exact_flow(2, **MIXTURE)
    slow, fast = Flow(flow, cost=1.3e9), Flow(flow, cost=1e6)
    assert importance_samples(evaluation(slow)) == 10 and importance_samples(evaluation(fast)) == 100
    assert importance_samples(evaluation(slow, samples=30)) == 30
    assert (text_samples(evaluation(slow)), text_samples(evaluation(Flow(flow, 1.3e9, ())))) == (5000, 100)
    assert explain_slow_densities(evaluation(slow)) == ""


@pytest.mark.parametrize(
    ("cost", "settings", "hours"), [(1.3e9, {"samples": 10_000}, "14.4"), (6e11, {}, "6.7"), (6e12, {}, "66.7")]
)
def test_what_takes_hours_is_refused(cost: float, settings: Any, hours: str) -> None:
    with pytest.raises(UsageError, match=f"log-likelihood got so many draws .* about {hours} hours, .* --samples"):
        explain_slow_densities(evaluation(Flow(exact_flow(2, **MIXTURE), cost), **settings))


def test_a_slow_learned_prior_counts_its_samples_of_the_words() -> None:
    posterior = Flow(exact_flow(2, **MIXTURE), 1.3e9, ())
    with pytest.raises(UsageError, match="use fewer --samples, --text-samples"):
        explain_slow_densities(evaluation(posterior, text_samples=50_000))
    assert explain_slow_densities(evaluation(posterior)) == ""


def test_the_cost_of_a_flow_counts_every_evaluation_of_its_network() -> None:
    fast = exact_flow(2, **MIXTURE, density_steps=8)
    assert exact_flow(2, **MIXTURE, density_steps=16).log_prob_cost == 2 * fast.log_prob_cost
    assert exact_flow(2, **MIXTURE, density_steps=8, probes=5).log_prob_cost == 2 * fast.log_prob_cost


def test_pairs_of_pictures_and_words_are_bounded_too() -> None:
    posterior = Flow(exact_flow(2, **MIXTURE), 1.3e9)
    with pytest.raises(UsageError, match=r"retrieval got so many draws .* or a smaller --pool"):
        check_slow_pairs(evaluation(posterior, pool=200), ("aggregate",))
    check_slow_pairs(evaluation(posterior, pool=40), ("aggregate",))
    check_slow_pairs(evaluation(posterior, pool=200), ())


def test_a_slow_fit_is_no_proposal_for_the_words() -> None:
    """Of log p(y) under the prior: the encoder's q(z | y) and p(z) alone, where a fast fit is one of them."""
    for cost, expected in ((1.3e9, "q(z|y) + p(z)"), (0.0, "q_agg(z|y) + q(z|y) + p(z)")):
        work = evaluation(Flow(exact_flow(2, **MIXTURE, density_steps=4), cost), samples=3, text_samples=6)
        work.posteriors, work.ignores_text = ("prior",), lambda name: True
        work.loaded.fitted = work.loaded.posteriors["aggregate"]
        work.loaded.fitted._draw = lambda words, n, generator: torch.zeros(n, words.size, 2, dtype=torch.float64)
        measured = run_generator(LogLikelihood()(work, "prior"))
        found = {score.quantity: score.details["proposal"] for score in measured if score.protocol == "importance"}
        assert found["log p(y)"] == expected

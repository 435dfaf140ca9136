"""What is printed beside an estimate holds: against a model of two modes, integrated on a grid, and by simulation."""

import functools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.evaluation.importance import Estimate, summarise_weights
from mmgen.evaluation.likelihoods import estimate_text
from mmgen.evaluation.proposals import shared_error, standard_error
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.metrics.log_likelihood import LogLikelihood
from mmgen.models import USUAL_NEEDS
from mmgen.results.groups import contrast, group_runs
from mmgen.results.score import ExampleValues, Score
from tests.metrics.toy import Gaussian, PlaneOfGaussians, loaded_gaussian
from tests.posteriors.stand_in import draws_and_densities, stand_ins


class TwoModes(PlaneOfGaussians):
    r"""p(z) = N(0, I) in two dimensions, x = (z_1^2, z_2) + noise, p(y = 1 | z) = sigmoid(s z_1).

    x does not say the sign of z_1, and y says little else.

    Inference as a model of three bounds (TELBO) may end up: q(z | x) has settled on the positive of two modes, as a
    Gaussian fitted by KL(q || p) does, q(z | x, y) is at the right one, neither is exact.
    """

    latent_size, conditional_on = 2, ()
    latent, capabilities = LatentSpace.flat(2), USUAL_NEEDS
    modalities = ("image", "attributes")
    noise, steepness = 0.4, 6.0

    def __init__(self, shift: float = 0.05, widening: float = 1.2) -> None:
        self.shift, self.widening = shift, widening

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return set(inputs) <= {"image", "attributes"} and bool(inputs)

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        sign = torch.ones(batch.size, dtype=torch.float64)
        if "attributes" in given:
            sign = 2.0 * batch.values["attributes"][:, 0] - 1
        if "image" not in given:
            mean = torch.stack([0.8 * sign, torch.zeros_like(sign)], -1)
            return DiagonalGaussian(mean, torch.tensor([0.6, 1.0]).double().log().expand_as(mean))
        x = batch.values["image"].flatten(1)
        root = x[:, 0].clamp_min(0.05).sqrt()
        precision = 1 / self.noise**2
        mean = torch.stack([sign * root, x[:, 1] * precision / (1 + precision)], -1) + self.shift
        sd = torch.stack(
            [(1 + 4 * root.square() * precision).rsqrt(), torch.full_like(root, (1 + precision) ** -0.5)], -1
        )
        return DiagonalGaussian(mean, (sd * self.widening).log())

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        if name == "attributes":
            sign = 2.0 * batch.values[name][:, 0] - 1
            return torch.nn.functional.logsigmoid(sign * self.steepness * z[..., 0])
        said = torch.stack([z[..., 0].square(), z[..., 1]], -1)
        residual = (batch.values["image"].flatten(1) - said) / self.noise
        return (-0.5 * residual.square() - math.log(self.noise) - 0.5 * math.log(2 * math.pi)).sum(-1)

    def exact(self, batch: Batch) -> dict[str, Tensor]:
        """Every quantity [N], integrated on a grid of step 0.02, far finer than any density is narrow."""
        axis = torch.arange(-6.0, 6.0, 0.02, dtype=torch.float64)
        z = torch.cartesian_prod(axis, axis)[:, None]
        found: dict[str, list[Tensor]] = {"log p(x)": [], "log p(y)": [], "log p(x,y)": []}
        for row in range(batch.size):
            point = batch[row : row + 1]
            image, words = (self.log_likelihood(name, z, point) for name in self.modalities)
            prior = self.log_prior(z) + 2 * math.log(0.02)
            for quantity, weight in zip(found, (image, words, image + words), strict=True):
                found[quantity].append((weight + prior).logsumexp(0))
        whole = {quantity: torch.cat(parts) for quantity, parts in found.items()}
        whole["log p(x|y)"] = whole["log p(x,y)"] - whole["log p(y)"]
        whole["log p(y|x)"] = whole["log p(x,y)"] - whole["log p(x)"]
        return whole


def two_modes_points(count: int, seed: int = 0) -> Batch:
    """Draws of x and y from ``TwoModes``."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    said = torch.stack([z[:, 0].square(), z[:, 1]], -1)
    x = said + TwoModes.noise * torch.randn(count, 2, generator=generator, dtype=torch.float64)
    y = torch.rand(count, generator=generator).double() < torch.sigmoid(TwoModes.steepness * z[:, 0])
    known = torch.ones(count, dtype=torch.bool)
    values = {"image": x[:, None, None], "attributes": y.long()[:, None]}
    return Batch(values, {"image": known, "attributes": known[:, None]})


def loaded_two_modes(model: TwoModes) -> Any:
    """A loaded ``TwoModes``."""
    loaded = loaded_gaussian(Gaussian())
    loaded.model = model

    def density(name: str) -> Callable[[Batch], DiagonalGaussian]:
        def standard(batch: Batch) -> DiagonalGaussian:
            return DiagonalGaussian.standard(batch.size, 2, like=torch.zeros(1, dtype=torch.float64))

        return standard if name == "prior" else lambda batch: model.posterior(batch, ("attributes",))

    loaded.posteriors = stand_ins(("prior", "own"), *draws_and_densities(density))
    loaded.encoder = loaded.posteriors["own"]
    return loaded


POINTS = two_modes_points(40)


SEEDS = range(8)


@functools.cache
def exact() -> dict[str, Tensor]:
    """Every quantity of the points, integrated."""
    return TwoModes().exact(POINTS)


def scores(**settings: Any) -> dict[str, Score]:
    """Importance-weighted scores under the prior by quantity."""
    evaluation = SimpleNamespace(
        loaded=loaded_two_modes(TwoModes()),
        settings=EvaluationSettings(text_samples=5000, **settings),
        data_points=POINTS,
        posteriors=("prior",),
        content_ids={},
        text_proposal=None,
        ignores_text=lambda name: name == "prior",
    )
    return {
        score.quantity: score
        for score in run_generator(LogLikelihood()(evaluation, "prior"))
        if score.protocol == "importance"
    }


def error(score: Score) -> float:
    return score.value - float(exact()[score.quantity].mean())


@pytest.fixture(scope="module")
def mixed() -> list[dict[str, Score]]:
    """With the default proposal, seed by seed."""
    return [scores(samples=1000, seed=seed) for seed in SEEDS]


@pytest.mark.slow
def test_truth_is_integrated_finely_enough() -> None:
    """p(y) is 1/2 by symmetry, and what y says of x integrates to that of x alone."""
    torch.testing.assert_close(exact()["log p(y)"], torch.full((40,), 0.5).double().log(), rtol=0, atol=1e-6)
    other = Batch({**POINTS.values, "attributes": 1 - POINTS.values["attributes"]}, POINTS.present)[0:5]
    both = torch.stack([exact()["log p(x,y)"][:5], TwoModes().exact(other)["log p(x,y)"]]).logsumexp(0)
    torch.testing.assert_close(both, exact()["log p(x)"][:5], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_printed_errors_hold_where_a_posterior_misses_a_mode(mixed: list[dict[str, Score]]) -> None:
    """By default every quantity is within 1.96 printed errors of the truth for nearly every seed, never beyond 4."""
    inside = []
    for found in mixed:
        assert set(found) == set(exact())
        for score in found.values():
            noise = score.details["monte_carlo_stderr"]
            assert noise < 0.03
            off = abs(error(score)) - score.details["too_low_by_at_least"]
            assert off < 4 * noise, score.quantity
            inside.append(off < 1.96 * noise)
    assert sum(inside) / len(inside) >= 0.93


def test_a_proposal_that_misses_a_mode_is_told(mixed: list[dict[str, Score]]) -> None:
    """log p(x,y) of q(z|image) alone is nats too low at a printed noise of hundredths; what is printed says both."""
    for seed in SEEDS[:2]:
        found = scores(samples=1000, seed=seed, proposal="image")
        for quantity in ("log p(x,y)", "log p(x|y)", "log p(y|x)"):
            score = found[quantity]
            noise = score.details["monte_carlo_stderr"]
            assert error(score) < -2
            assert noise < 0.05
            low, high = score.details["too_low_by_at_least"], score.details.get("too_high_by_at_least", 0.0)
            assert -low - 4 * noise < error(score) < high + 4 * noise
            assert any("q(z|image) alone says 2." in text for text in score.warnings)
    for found in mixed:  # the mixture tells which of its parts would not have done, and that it is not that one
        (warning,) = found["log p(x,y)"].warnings
        assert warning.startswith("q(z|image) alone says 2.")
        assert found["log p(x,y)"].details["alone"]["q(z|image, attributes)"] == pytest.approx(
            found["log p(x,y)"].value, abs=0.1
        )


def test_proposals_that_agree_are_not_said_to_disagree() -> None:
    """A model without a second mode: x says all of z, by whichever posterior."""
    from mmgen.testing.linear_gaussian import make_linear_gaussian
    from tests.metrics.test_linear_gaussian import scores as of_linear

    for proposal in ("mixture", "image", "joint"):
        found = of_linear(make_linear_gaussian(0.1, 0.2), samples=2000, text_samples=2000, proposal=proposal)
        assert [score.quantity for score in found.values() if score.warnings] == []


def test_few_draws_that_count_are_told() -> None:
    found = scores(samples=4, proposal="description")["log p(x)"]
    assert any("few of the 4 draws count" in text for text in found.warnings)


def paired_share_inside(labels: int, points: int, repeats: int, log_variance: float, draws: int) -> float:
    """Share of 95 % intervals of the difference that hold 0, of two scores of the same truth."""
    random, inside = torch.Generator().manual_seed(labels), 0
    for _ in range(repeats):
        truths = -2.3 + 0.05 * torch.randn(labels, generator=random, dtype=torch.float64)
        rows = torch.randint(labels, (points,), generator=random) if labels < points else torch.arange(points)
        groups = []
        for _ in range(2):
            noise = torch.randn(draws, labels, generator=random, dtype=torch.float64)
            found = summarise_weights(truths + math.sqrt(log_variance) * noise - log_variance / 2)[rows]
            each = ExampleValues(found.value.tolist(), shared_stderr=shared_error(points, found.noise))
            value, error = float(found.value.mean()), standard_error(found.value, found.noise)
            groups.append(
                group_runs([Score("m", "log p(y)", value, error, "nats", "higher", points, "own", points=each)])
            )
        found_difference = contrast(*groups)
        assert (
            found_difference.over == "points" and found_difference.low is not None and found_difference.high is not None
        )
        inside += found_difference.low <= 0 <= found_difference.high
    return inside / repeats


@pytest.mark.slow_cases("150", "10")
@pytest.mark.parametrize("labels", [10, 150])
def test_intervals_of_a_difference_hold_whether_labels_repeat_or_not(labels: int) -> None:
    """150 points, K = 200, variance of log weights 1; without what points share 35 % of the intervals of ten hold."""
    assert 0.91 <= paired_share_inside(labels, 150, 300, 1.0, 200) <= 0.985


def share_inside(labels: int, points: int, repeats: int, log_variance: float, draws: int, spread: float) -> float:
    """How often value +- 1.96 standard errors holds the mean of log p(y) over the population, by simulation.

    Truths of the labels are normal around -2.3; weights are log-normal of mean 1, ``draws`` for each label.
    """
    random = torch.Generator().manual_seed(labels)
    inside = 0
    for _ in range(repeats):
        truths = -2.3 + spread * torch.randn(labels, generator=random, dtype=torch.float64)
        noise = torch.randn(draws, labels, generator=random, dtype=torch.float64)
        found = summarise_weights(truths + math.sqrt(log_variance) * noise - log_variance / 2)
        rows = torch.randint(labels, (points,), generator=random) if labels < points else torch.arange(points)
        scores_points: Estimate = found[rows]
        stderr = standard_error(scores_points.value, scores_points.noise)
        assert stderr is not None
        truth = float(truths.mean()) if labels < points else -2.3
        inside += abs(float(scores_points.value.mean()) - truth) <= 1.96 * stderr
    return inside / repeats


@pytest.mark.slow
def test_intervals_hold_where_labels_repeat() -> None:
    """Ten labels over 1,000 points, K = 2,000, variance of log weights 2."""
    assert 0.93 <= share_inside(10, 1000, 1000, 2.0, 2000, 0.05) <= 0.97


@pytest.mark.slow
def test_intervals_hold_where_no_label_repeats() -> None:
    assert 0.93 <= share_inside(200, 200, 1000, 0.5, 200, 0.7) <= 0.97


def test_intervals_of_text_hold_from_end_to_end() -> None:
    """log p(y) of the Gaussian toy, whose truth has a closed form: the two sides are equally likely, log 1/2."""
    loaded, inside = loaded_gaussian(Gaussian()), 0
    x = torch.zeros(200, 1, 1, 3, dtype=torch.float64)
    y = (torch.arange(200) % 2)[:, None]
    points = Batch({"image": x, "attributes": y}, {"image": torch.ones(200, dtype=torch.bool), "attributes": y >= 0})
    for seed in range(300):
        found = run_generator(estimate_text(loaded, points, "prior", 200, seed))
        stderr = standard_error(found.value, found.noise)
        assert stderr is not None
        inside += abs(float(found.value.mean()) - math.log(0.5)) <= 1.96 * stderr
    assert 0.93 <= inside / 300 <= 0.97


def test_standard_error_by_hand() -> None:
    """Four points of two estimates of variance 0.04 and 0.16: noise of the mean (0.04 + 0.16) / 4; the spread of the
    values less their noise's share of it is what is between the points."""
    values = torch.tensor([1.0, 1.0, 3.0, 3.0]).double()
    variances, source = torch.tensor([0.04, 0.04, 0.16, 0.16]).double(), torch.tensor([0, 0, 1, 1])
    noise = (4 * 0.04 + 4 * 0.16) / 16
    between = float(values.var()) / 4 - (0.4 - 4 * noise) / 12
    assert standard_error(values, (variances, source)) == pytest.approx(math.sqrt(between + noise))
    alone: Tensor = values + torch.tensor([0.0, 0.1, 0.2, 0.3])
    assert standard_error(alone, (variances, None)) == pytest.approx(float(alone.std()) / 2)
    assert standard_error(alone[:1], (variances[:1], None)) is None

"""Objectives for disentangling: q(z) from batches against all the data, and values against closed forms."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

import mmgen.objectives
from mmgen.artifacts import Dataset
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models._build import build_model
from mmgen.models.hierarchical_vae import HierarchicalSettings
from mmgen.objectives._aggregate_estimate import AggregateDensities, estimate_aggregate
from mmgen.objectives.beta_tcvae import BetaTcvae
from mmgen.objectives.capacity import Capacity
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.factor_vae import FactorVae
from mmgen.objectives.hfvae import Hfvae
from mmgen.settings.config import validate
from mmgen.testing.linear_gaussian import draw_observations, exact_log_marginal, make_linear_gaussian
from mmgen.testing.objectives import replace_noise
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch
from mmgen.training import model_run
from mmgen.training.settings import TrainingSettings
from mmgen.training.stage import Stage
from mmgen.training.task import BOUND, ModelTask
from tests.metrics.toy import write_dataset

BOTH: dict[str, Any] = {"modalities": ("image", "attributes"), "given": ("image", "attributes")}


def encodings(size: int, dimensions: int = 3) -> tuple[Tensor, DiagonalGaussian]:
    """Posteriors that overlap, and a draw of each, float64."""
    generator = torch.Generator().manual_seed(2)
    mean, noise, log_sd = (torch.randn(size, dimensions, generator=generator, dtype=torch.float64) for _ in range(3))
    q = DiagonalGaussian(mean, 0.3 * log_sd - 0.5)
    return q.mean + q.sd * noise, q


def exact(q: DiagonalGaussian, dimensions: slice) -> MixtureSameFamily:
    """q(z) of some dimensions: all posteriors with equal weights, by torch.distributions."""
    parts = Independent(Normal(q.mean[:, dimensions], q.sd[:, dimensions]), 1)
    return MixtureSameFamily(Categorical(torch.ones(len(q.mean), dtype=torch.float64)), parts)


def test_a_batch_that_is_all_the_data_gives_q_exactly() -> None:
    z, q = encodings(20, 5)
    found = estimate_aggregate(z, q, 20, groups=(2, 3))
    every = slice(None)
    torch.testing.assert_close(found.joint, exact(q, every).log_prob(z))
    for number, group in enumerate((slice(0, 2), slice(2, 5))):
        torch.testing.assert_close(found.groups[:, number], exact(q, group).log_prob(z[:, group]))
    for d in range(5):
        torch.testing.assert_close(found.marginals[:, d], exact(q, slice(d, d + 1)).log_prob(z[:, d : d + 1]))
    torch.testing.assert_close(found.conditional.sum(1), q.log_prob(z))
    torch.testing.assert_close(found.prior.sum(1), DiagonalGaussian.standard(20, 5, like=z).log_prob(z))
    assert torch.equal(found.joint, estimate_aggregate(z, q, None, groups=(2, 3)).joint)


def test_the_estimate_is_unbiased() -> None:
    """Every batch of 3 of 6 examples that holds the first: the mean of the estimates of q(z) there is q(z)."""
    z, q = encodings(6)
    chosen = [torch.tensor([0, *others]) for others in itertools.combinations(range(1, 6), 2)]
    found = [estimate_aggregate(z[rows], q[rows], 6) for rows in chosen]
    whole = estimate_aggregate(z, q, 6)
    for name in ("joint", "marginals"):
        mean = torch.stack([getattr(one, name)[0].exp() for one in found]).mean(0)
        torch.testing.assert_close(mean, getattr(whole, name)[0].exp())


def test_it_is_the_mean_of_stratified_weights_over_the_order_of_the_batch() -> None:
    """Chen et al., Appendix C.2, M = B - 1: 1/N for z's own, (N - M) / (N M) for one other, 1/M for the rest."""
    z, q = encodings(4)
    size, rest = 9, 3
    density = (q.log_prob(z[0])).exp()
    stratified = []
    for order in itertools.permutations((1, 2, 3)):
        weights = torch.zeros(4, dtype=torch.float64)
        weights[0], weights[order[0]] = 1 / size, (size - rest) / (size * rest)
        weights[list(order[1:])] = 1 / rest
        assert weights.sum().item() == pytest.approx(1)
        stratified.append((weights * density).sum())
    torch.testing.assert_close(estimate_aggregate(z, q, size).joint[0].exp(), torch.stack(stratified).mean())


def test_total_correlation_of_a_gaussian() -> None:
    """q(z) = N(0, S), as a mixture of narrower Gaussians: TC = (sum log S_ii - log det S) / 2, .511 at r = .8."""
    torch.manual_seed(0)
    covariance = torch.tensor([[1.0, 0.8], [0.8, 1.0]], dtype=torch.float64)
    root = torch.linalg.cholesky(covariance - 0.09 * torch.eye(2, dtype=torch.float64))
    q = DiagonalGaussian(torch.randn(1000, 2, dtype=torch.float64) @ root.T, torch.full((1000, 2), math.log(0.3)))
    found = estimate_aggregate(q.sample(), q)
    assert found.total_correlation.mean().item() == pytest.approx(0.511, abs=0.08)
    # I(x; z) is the entropy of q(z) without that of the noise.
    information = 0.5 * (torch.logdet(covariance) - 2 * math.log(0.09)).item()
    assert found.mutual_information.mean().item() == pytest.approx(information, abs=0.12)
    assert found.dimension_wise.mean().item() == pytest.approx(0, abs=0.05)


def test_the_parts_add_up_and_groups_nest() -> None:
    z, q = encodings(8, 4)

    def parts(groups: tuple[int, ...]) -> AggregateDensities:
        return estimate_aggregate(z, q, 100, groups)

    whole = q.log_prob(z) - DiagonalGaussian.standard(8, 4, like=z).log_prob(z)
    for groups in ((), (1, 3), (4,)):
        found = parts(groups)
        torch.testing.assert_close(found.mutual_information + found.total_correlation + found.dimension_wise, whole)
        torch.testing.assert_close(found.between_groups + found.within_groups, found.total_correlation)
    zero = torch.zeros(8, dtype=torch.float64)
    torch.testing.assert_close(parts(()).within_groups, zero)
    torch.testing.assert_close(parts((4,)).between_groups, zero)


def test_densities_are_single_precision_at_least() -> None:
    z, q = encodings(3)
    assert estimate_aggregate(z, q).joint.dtype == torch.float64
    half = DiagonalGaussian(q.mean.bfloat16(), q.log_sd.bfloat16())
    assert estimate_aggregate(z.bfloat16(), half).joint.dtype == torch.float32
    alone = estimate_aggregate(z[:1], q[:1], 100)
    torch.testing.assert_close(alone.mutual_information, torch.zeros(1, dtype=torch.float64))


@pytest.mark.parametrize(
    "objective",
    [BetaTcvae(beta=1.0, **BOTH), Hfvae(beta=1.0, gamma=1.0, groups=(1, 1), **BOTH), Hfvae(beta=1, gamma=1, **BOTH)],
)
def test_with_weights_of_one_the_exact_posterior_gives_the_likelihood(objective: Any) -> None:
    """log p(x|z) - log q(z|x) + log p(z) = log p(x) at every draw, whatever is estimated of q(z)."""
    batch = draw_observations(20)
    bound = objective.for_training_size(1000)(make_linear_gaussian(), batch)
    torch.testing.assert_close(bound.value, exact_log_marginal(batch, ("image", "attributes")))
    assert bound.is_bound


def test_values_are_weighed_parts() -> None:
    model, batch = make_linear_gaussian(0.2, -0.3), draw_observations(9)
    torch.manual_seed(4)
    one = BetaTcvae(alpha=0.5, beta=3.0, gamma=2.0, examples=50)(model, batch)
    torch.manual_seed(4)
    two = Hfvae(alpha=0.5, beta=3.0, groups=(1, 1), examples=50)(model, batch)
    likely, information, correlation, single = one.terms.values()
    torch.testing.assert_close(one.value, likely - 0.5 * information - 3 * correlation - 2 * single)
    torch.testing.assert_close(two.value, one.value + single)
    torch.testing.assert_close(two.terms["total correlation between groups"], correlation)
    assert not one.is_bound and not two.is_bound
    weights = [BetaTcvae(alpha=2.0, beta=2.0, gamma=2.0), BetaTcvae(), Hfvae(beta=1.0, gamma=1.0), Hfvae()]
    assert [each.training_weight("image") for each in weights] == [0.5, None, 1.0, None]


def test_groups_have_all_dimensions() -> None:
    with pytest.raises(
        SettingsError, match=r"got 2, 1, 3 dimensions together, expected .* the 2 of model\.latent_size"
    ):
        Hfvae(groups=(2, 1))(make_linear_gaussian(), draw_observations(3))


def test_capacity_holds_the_divergence() -> None:
    """Against the means of elbo's terms: gamma times the distance of the batch's mean divergence from C."""
    model, batch = make_linear_gaussian(0.3), draw_observations(6)
    with replace_noise() as copies:
        several = batch.repeat(copies)
        terms = Elbo(modalities=("image",))(model, several).terms
        likely, kl = (terms[name].mean().item() for name in ("log p(image|z)", "kl"))
        member = Capacity(gamma=10.0, capacity=25.0, capacity_steps=100)
        for step, capacity in ((0, 0.0), (50, 12.5), (100, 25.0), (1000, 25.0), (None, 25.0)):
            found = member(model, several, step).value.mean().item()
            assert found == pytest.approx(likely - 10 * abs(kl - capacity)), step
        held = Capacity(capacity=kl)(model, several)
        assert held.value.mean().item() == pytest.approx(likely) and not held.is_bound
        torch.testing.assert_close(Capacity(gamma=1.0, capacity=0.0)(model, several).value.mean().item(), likely - kl)
    weights = [each.training_weight("image") for each in (Capacity(), Capacity(gamma=4.0, capacity=0.0))]
    assert weights == [None, 0.25]


def test_training_tells_how_many_examples_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """N is what batches are drawn from, unless settings say another."""
    path = write_dataset(tmp_path / "toy.h5")
    stages: list[Stage] = []
    monkeypatch.setattr(model_run, "run_stage", lambda stage, out, resume: stages.append(stage))
    with Dataset.open(path) as dataset:
        count = len(dataset.split("iid", "train"))
        for settings in ({}, {"examples": 7}):
            values = {
                "objective": {"name": "beta-tcvae", **settings},
                "model": {"image_network": {"name": "mlp"}},
                "training": {"batch": 7},
            }
            model_run.train_model(path, model_run.complete_settings(values, dataset), tmp_path / "m.safetensors")
    found = [stage.build(torch.device("cpu")).task for stage in stages]
    assert [task.objective.examples for task in found] == [count, 7]  # type: ignore[attr-defined]  # tasks of models
    assert [stage.settings["objective"]["examples"] for stage in stages] == [None, 7]
    assert mmgen.objectives.get("elbo")().for_training_size(5) == Elbo()


@pytest.mark.parametrize("objective", [BetaTcvae(), Hfvae()])
def test_layers_of_z_are_refused_where_one_gaussian_is_needed(objective: Any) -> None:
    ladder = HierarchicalSettings(latent_sizes=(3, 2), hidden=(4,), image_network={"name": "mlp", "hidden": (8,)})
    with pytest.raises(SettingsError, match="model 'hierarchical-vae' has no posterior that is one Gaussian"):
        build_model(ladder, objective.demands, SMALL_DATA)
    bound = Capacity()(build_model(ladder, Capacity().demands, SMALL_DATA), small_batch())
    assert {"kl of z1", "kl of z2"} <= bound.terms.keys() and bound.value.isfinite().all()


def test_noise_of_a_capacity_does_not_choose_weights() -> None:
    """The distance is one number of a batch; its terms are of examples, and by them nothing is selected."""
    task = ModelTask(build_model(SMALL_MODEL, Capacity().demands, SMALL_DATA), Capacity())
    assert task.selects is None
    found = task.validate(small_batch())
    assert found["kl"].std() > 0 and found[BOUND].shape == (5,)
    assert ModelTask(build_model(SMALL_MODEL, Elbo().demands, SMALL_DATA), Elbo()).selects == BOUND


@pytest.mark.parametrize(
    ("room", "values", "complaint"),
    [
        (Hfvae, {"gamma": 2}, "gamma got 2, but no group has several dimensions"),
        (Hfvae, {"groups": [1, 1], "gamma": 2}, "gamma got 2, but no group has several dimensions"),
        (Hfvae, {"groups": [10]}, "one group of 10"),
        (Hfvae, {"beta": math.inf}, "finite"),
        (BetaTcvae, {"beta": math.inf}, "finite"),
        (Capacity, {"gamma": math.inf}, "finite"),
        (Capacity, {"capacity": math.inf}, "finite"),
        (FactorVae, {"gamma": math.inf}, "finite"),
    ],
)
def test_weights_without_effect_and_without_end_are_refused(
    room: type[Any], values: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(SettingsError, match=complaint):
        validate(room, values, "objective")


def test_runs_in_which_an_objective_would_be_another_are_refused() -> None:
    for objective in (Capacity(), BetaTcvae(), Hfvae()):
        with pytest.raises(
            SettingsError,
            match=r"training\.devices got 2, expected 1 for .*, which compares all examples of a batch",
        ):
            objective.check_run(TrainingSettings(devices=2))
    for few in (BetaTcvae(examples=99), Hfvae(examples=99)):
        with pytest.raises(SettingsError, match=r"examples got 99, expected at least the 128 examples of a batch"):
            few.check_run(TrainingSettings(batch=128))
        assert few.check_run(TrainingSettings(batch=99)) == ""


def test_a_capacity_that_a_run_does_not_reach_is_told() -> None:
    member = Capacity(capacity=25.0, capacity_steps=1000)
    assert "the run has 100: it ends at 2.5 of 25 nats" in member.check_run(TrainingSettings(steps=100))
    assert member.check_run(TrainingSettings(steps=1000)) == ""

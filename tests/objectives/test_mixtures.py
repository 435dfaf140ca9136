"""Mixtures as posteriors, ways of pooling experts, and objectives over them, against closed forms and integration."""

import math
import re
from unittest import mock

import pytest
import torch
from torch import Tensor

import mmgen.inference
import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.mixture import GaussianMixture
from mmgen.latent.space import LatentSpace
from mmgen.models import build_model
from mmgen.testing.linear_gaussian import draw_observations, exact_log_marginal, exact_posterior, make_linear_gaussian
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, inference_parts, small_batch

NAMES = ("image", "attributes")
GRID = torch.linspace(-12, 12, 4001, dtype=torch.float64)
STEP = float(GRID[1] - GRID[0])


def gaussians(*shape: int, seed: int = 0) -> DiagonalGaussian:
    generator = torch.Generator().manual_seed(seed)
    mean, log_sd = (torch.randn(*shape, generator=generator, dtype=torch.float64) for _ in range(2))
    return DiagonalGaussian(mean, 0.3 * log_sd - 0.3)


def make_model(name: str, **settings: object):
    torch.manual_seed(0)
    objective = mmgen.objectives.get(name)(**settings)
    return build_model(SMALL_MODEL, objective.demands, SMALL_DATA).eval(), objective


def test_a_mixture_has_the_density_of_the_parts_that_are_held() -> None:
    held = torch.tensor([[True, True], [True, False], [False, True]])
    mixture = GaussianMixture.even(gaussians(3, 2, 1), held)
    density = mixture.log_prob(GRID[:, None, None].expand(-1, 2, 1)).exp()
    torch.testing.assert_close(density.sum(0) * STEP, torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close((density * GRID[:, None]).sum(0) * STEP, mixture.mean[:, 0])
    parts = gaussians(3, 2, 1).log_prob(GRID[:, None, None, None].expand(-1, 3, 2, 1)).exp()
    torch.testing.assert_close(density[:, 0], parts[:, :2, 0].mean(1))
    torch.testing.assert_close(density[:, 1], parts[:, [0, 2], 1].mean(1))


def test_draws_of_a_mixture_follow_its_density_and_pass_gradients() -> None:
    parts = gaussians(3, 2, 1)
    parts = DiagonalGaussian(parts.mean.requires_grad_(), parts.log_sd)
    mixture = GaussianMixture.even(parts, torch.tensor([[True, True], [True, False], [True, True]]))
    z = mixture.sample(torch.Generator().manual_seed(1), (20_000,))
    assert z.shape == (20_000, 2, 1)
    for point in (-0.5, 0.0, 0.7):
        below = mixture.log_prob(GRID[point > GRID][:, None, None].expand(-1, 2, 1)).exp().sum(0) * STEP
        assert ((z[..., 0] < point).double().mean(0) - below).abs().max() < 4 * 0.5 / math.sqrt(20_000) + STEP
    z.sum().backward()
    assert parts.mean.grad is not None and (parts.mean.grad[:, 0] > 6_000).all() and parts.mean.grad[1, 1] == 0


@pytest.mark.parametrize(("name", "count"), [("mmvae", 2), ("mopoe", 3)])
def test_the_posterior_of_several_modalities_mixes_those_of_subsets(name: str, count: int) -> None:
    model, _ = make_model(name)
    batch, both = small_batch(), ("image", "attributes")
    mixture = model.posterior(batch, both)
    assert isinstance(mixture, GaussianMixture) and mixture.parts.mean.shape == (count, 5, 3)
    torch.testing.assert_close(mixture.parts.mean[0], model.posterior(batch, ("image",)).mean)
    torch.testing.assert_close(mixture.parts.mean[1], model.posterior(batch, ("attributes",)).mean)
    torch.testing.assert_close(model.means(batch, both), mixture.mean)
    # Encodings are those of the largest parts, each as often as any other.
    q = [model.encode(batch, both, torch.Generator().manual_seed(seed)).mean for seed in range(300)]
    parts = (torch.stack(q).unsqueeze(1) - mixture.parts.mean).abs().sum(-1) < 1e-6
    expected = torch.tensor([0.5, 0.5] if name == "mmvae" else [0.0, 0.0, 1.0], dtype=torch.float64)
    assert (parts.double().mean((0, 2)) - expected).abs().max() < 5 * 0.5 / math.sqrt(1500)


def test_parts_whose_modality_is_missing_are_left_out() -> None:
    model, _ = make_model("mopoe")
    batch = small_batch()
    batch.present["attributes"][0] = False
    mixture = model.posterior(batch, ("image", "attributes"))
    assert mixture.log_weights[:, 0].exp().tolist() == [1.0, 0.0, 0.0]
    torch.testing.assert_close(mixture.log_weights[:, 1].exp(), torch.full((3,), 1 / 3))
    encoded, alone, together = model.encode(batch, ("image", "attributes")).mean, *mixture.parts.mean[[0, 2]]
    torch.testing.assert_close(encoded, torch.cat([alone[:1], together[1:]]))


@pytest.mark.parametrize("objective", ["elbo", "jmvae", "mvae", "mvtcae", "crmvae", "mmvae", "mopoe", "mmvm"])
def test_an_inference_that_does_not_suit_is_refused_and_those_advised_do(objective: str) -> None:
    demands, refusals = mmgen.objectives.get(objective)().demands, []

    def build(inference: str) -> None:
        build_model(SMALL_MODEL.model_copy(update={"inference": inference}), demands, SMALL_DATA)

    for inference in mmgen.inference.names():
        try:
            build(inference)
        except SettingsError as refusal:
            refusals.append((inference, str(refusal)))
    assert len(refusals) >= 2
    for inference, said in refusals:
        assert f"'{inference}'" in said or f"model.inference got {inference}, but the objective needs" in said
        for name in re.findall(r"[a-z-]+", said.rpartition("use ")[2].removeprefix("one of ")):
            build(name)


def pooled(name: str, experts: DiagonalGaussian, present: Tensor | None = None) -> DiagonalGaussian:
    """Return what an inference makes of E experts [E, B, D]."""
    inference = mmgen.inference.get(name)(inference_parts(), frozenset())
    there = torch.ones_like(experts.mean, dtype=torch.bool) if present is None else present
    return inference.combine(experts, there, torch.ones(1, len(experts.mean), dtype=torch.float64))[0]


def test_a_product_without_prior_is_the_product_of_densities() -> None:
    experts = gaussians(3, 2, 1)
    found = pooled("product-without-prior", experts)
    density = experts.log_prob(GRID[:, None, None, None].expand(-1, 3, 2, 1)).sum(1).exp()
    density = density / density.sum(0) / STEP
    torch.testing.assert_close(density, found.log_prob(GRID[:, None, None].expand(-1, 2, 1)).exp())


def test_the_consensus_is_the_estimate_of_least_variance_from_correlated_errors() -> None:
    experts = gaussians(4, 2, 3)
    found = pooled("consensus", experts)
    sd = experts.sd[:, 1, 2]
    correlation = torch.full((4, 4), 0.4, dtype=torch.float64).fill_diagonal_(1.0)
    inverse = torch.linalg.inv(sd[:, None] * correlation * sd)
    torch.testing.assert_close(found.variance[1, 2], 1 / inverse.sum())
    torch.testing.assert_close(found.mean[1, 2], (inverse @ experts.mean[:, 1, 2]).sum() / inverse.sum())


def test_the_barycentre_is_nearest_to_all_experts_by_optimal_transport() -> None:
    experts = gaussians(3, 2, 1)
    found = pooled("wasserstein-barycentre", experts)

    def distance(mean: Tensor, sd: Tensor) -> Tensor:
        return ((mean - experts.mean).square() + (sd - experts.sd).square()).sum(0)

    least = distance(found.mean, found.sd)
    for mean, sd in ((1e-2, 0.0), (-1e-2, 0.0), (0.0, 1e-2), (0.0, -1e-2)):
        assert (distance(found.mean + mean, found.sd + sd) > least).all()


def test_hellinger_moments_are_those_of_the_pool() -> None:
    """In two dimensions, whose overlaps multiply."""
    experts = gaussians(3, 2, 2)
    found = pooled("hellinger-moments", experts)
    axis = torch.linspace(-8, 8, 321, dtype=torch.float64)
    z = torch.cartesian_prod(axis, axis)[:, None, None].expand(-1, 3, 2, 2)
    density = (0.5 * experts.log_prob(z)).exp().sum(1).square()
    density = (density / density.sum(0)).unsqueeze(-1)
    mean = (density * z[:, 0]).sum(0)
    torch.testing.assert_close(found.mean, mean)
    torch.testing.assert_close(found.variance, (density * (z[:, 0] - mean).square()).sum(0))


@pytest.mark.parametrize("name", ["product-without-prior", "consensus", "wasserstein-barycentre", "hellinger-moments"])
def test_an_expert_that_says_nothing_counts_for_nothing(name: str) -> None:
    experts = gaussians(3, 2, 4)
    present = torch.ones(3, 2, 4, dtype=torch.bool)
    present[0, 1] = False  # one expert of one example
    present[:, 0] = False  # all of another
    found, fewer = pooled(name, experts, present), pooled(name, experts[1:])
    torch.testing.assert_close(found.mean[1], fewer.mean[1])
    torch.testing.assert_close(found.log_sd[1], fewer.log_sd[1])
    assert found.mean[0].tolist() == [0.0] * 4 and found.log_sd[0].tolist() == [0.0] * 4  # p(z)


def test_private_layers_are_inferred_and_read_by_their_modality_alone() -> None:
    objective = mmgen.objectives.get("mmvae-plus")()
    settings = SMALL_MODEL.model_copy(update={"private_sizes": {"image": 2, "attributes": 1}})
    torch.manual_seed(0)
    model = build_model(settings, objective.demands, SMALL_DATA).eval()
    assert model.latent.layers == {"z": 3, "z of attributes": 1, "z of image": 2}
    model.inference.absent["z of attributes"].data.fill_(0.7)
    q = model.posterior(small_batch(), ("image",))
    assert (q.mean[:, 3] == 0).all() and torch.allclose(q.log_sd[:, 3], torch.tensor(0.7))
    assert (q.mean[:, [0, 1, 2, 4, 5]] != 0).all()
    z = torch.randn(4, 6)
    moved = z.clone()
    moved[:, 3] += 1
    torch.testing.assert_close(model.decode("image", z), model.decode("image", moved))
    assert not torch.allclose(model.decode("attributes", z), model.decode("attributes", moved))


def test_private_layers_have_one_order_however_they_are_named() -> None:
    sizes = {"image": 2, "attributes": 1}
    for order in (sizes, dict(reversed(sizes.items()))):
        assert [*LatentSpace.flat(3).with_private(order).layers] == ["z", "z of attributes", "z of image"]


@pytest.mark.parametrize(
    ("size", "private", "objective", "said"),
    [
        (3, {"smell": 2}, "mmvae-plus", "private_sizes got smell"),
        ((2, 2, 2), {"image": 2}, "mmvae-plus", "latent_size got a grid"),
        (0, {"image": 2}, "mvae", r"attributes has no z of its own; set model\.private_sizes\.attributes"),
        (0, {}, "mvae", "image has no z of its own"),
        (0, {"image": 2, "attributes": 1}, "mmvae-plus", "give it 1 or more"),
    ],
)
def test_private_layers_that_cannot_be_are_refused(
    size: int | tuple[int, ...], private: dict[str, int], objective: str, said: str
) -> None:
    settings = SMALL_MODEL.model_copy(update={"private_sizes": private, "latent_size": size})
    with pytest.raises(SettingsError, match=said):
        build_model(settings, mmgen.objectives.get(objective)().demands, SMALL_DATA)


@pytest.mark.parametrize("name", ["mopoe", "mmvae", "mvtcae", "mmvm", "crmvae"])
def test_an_objective_over_one_modality_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="got image alone, expected at least two"):
        _ = mmgen.objectives.get(name)(modalities=("image",)).demands


def bound_of(name: str, model, batch: Batch, copies: int, **settings: object) -> Tensor:
    """Return the mean of an objective over copies of each of 6 examples [6]."""
    torch.manual_seed(0)
    with torch.no_grad():
        return mmgen.objectives.get(name)(**settings)(model, batch.repeat(copies)).value.reshape(6, -1).mean(1)


def test_mmvae_rises_with_its_draws_to_the_log_likelihood_where_experts_agree() -> None:
    model, batch = make_linear_gaussian(), draw_observations(6)
    exact = exact_log_marginal(batch, ("image", "attributes"))

    def blurred(batch: Batch, units: object, membership: list[list[bool]]) -> DiagonalGaussian:
        q = exact_posterior(batch, ("image", "attributes"))
        return DiagonalGaussian(*(torch.stack([part] * len(membership)) for part in (q.mean + 0.2, q.log_sd + 0.2)))

    with mock.patch.object(model, "subset_posteriors", blurred):
        one, ten, thousand = (bound_of("mmvae", model, batch, 4_000 // k, draws=k) for k in (1, 10, 1_000))
    assert (one < ten).all() and (ten < thousand + 0.01).all() and (one < exact - 0.05).all()
    torch.testing.assert_close(thousand, exact, atol=0.02, rtol=0)


def test_mmvae_of_different_experts_stays_below_the_log_likelihood_by_what_an_expert_misses() -> None:
    """For K to infinity it is the mean over experts of log p(X) + log E_{p(z|X)}[q_m / q], by integration over z."""
    model, batch = make_linear_gaussian(), draw_observations(6)
    experts = [exact_posterior(batch, (name,)) for name in ("image", "attributes")]
    axis = torch.linspace(-6, 6, 241, dtype=torch.float64)
    z = torch.cartesian_prod(axis, axis)[:, None]  # [G, 1, 2]
    each = torch.stack([q.log_prob(z) for q in experts])
    posterior = exact_posterior(batch, ("image", "attributes")).log_prob(z)
    share = (posterior + each - (each.logsumexp(0) - math.log(2))).logsumexp(1) + 2 * math.log(float(axis[1] - axis[0]))
    limit = exact_log_marginal(batch, ("image", "attributes")) + share.mean(0)
    found = bound_of("mmvae", model, batch, 40, draws=1_000)
    torch.testing.assert_close(found, limit, atol=0.02, rtol=0)


@pytest.mark.parametrize(("name", "settings"), [("mopoe", {}), ("mvtcae", {"alpha": 0.0})])
def test_bounds_over_subsets_are_below_the_log_likelihood(name: str, settings: dict[str, float]) -> None:
    batch = draw_observations(6)
    exact = exact_log_marginal(batch, ("image", "attributes"))
    found = bound_of(name, make_linear_gaussian(), batch, 4_000, **settings)
    assert (found < exact + 0.02).all()
    if name == "mvtcae":  # its joint posterior is exact here
        torch.testing.assert_close(found, exact, atol=0.02, rtol=0)


def test_the_divergence_of_mmvm_is_that_to_the_mixture() -> None:
    model, batch = make_linear_gaussian(), draw_observations(6)
    experts = [exact_posterior(batch, (name,)) for name in ("image", "attributes")]
    axis = torch.linspace(-6, 6, 241, dtype=torch.float64)
    z = torch.cartesian_prod(axis, axis)[:, None]
    each = torch.stack([q.log_prob(z) for q in experts])
    mixture = each.logsumexp(0) - math.log(2)
    expected = (each.exp() * (each - mixture)).sum(1) * float(axis[1] - axis[0]) ** 2
    torch.manual_seed(0)
    terms = mmgen.objectives.get("mmvm")()(model, batch.repeat(4_000)).terms
    for name, exact in zip(("image", "attributes"), expected, strict=True):
        found = terms[f"kl of q(z|{name}) to the mixture"].reshape(6, -1)
        error = found.std(1) / math.sqrt(4_000)
        assert ((found.mean(1) - exact).abs() < 5 * error).all()


def test_mopoe_is_the_mean_of_the_exact_bounds_of_all_subsets() -> None:
    """Each subset's bound is the expected log-likelihood of a linear model, in closed form, minus its divergence."""
    model, batch = make_linear_gaussian(), draw_observations(6)
    bounds = []
    for known in (("image",), ("attributes",), ("image", "attributes")):
        q = exact_posterior(batch, known)
        z = q.sample(torch.Generator().manual_seed(0), (20_000,))
        likely = sum(model.log_likelihood(name, z, batch).mean(0) for name in ("image", "attributes"))
        bounds.append(likely - 2.0 * q.kl(DiagonalGaussian.standard(6, 2, like=q.mean)))
    found = bound_of("mopoe", model, batch, 20_000, beta=2.0)
    torch.testing.assert_close(found, torch.stack(bounds).mean(0), atol=0.15, rtol=0)


def test_beta_weighs_every_draw_of_mmvae() -> None:
    model, batch = make_linear_gaussian(), draw_observations(6)
    torch.manual_seed(0)
    z = torch.stack([exact_posterior(batch, (name,)).mean for name in ("image", "attributes")])
    sharp = DiagonalGaussian(z, torch.full_like(z, -3.0))
    with mock.patch.object(model, "subset_posteriors", return_value=sharp):
        torch.manual_seed(1)
        found = mmgen.objectives.get("mmvae")(draws=5, beta=0.3)(model, batch).value
    torch.manual_seed(1)
    drawn = sharp.sample(shape=(5,))
    ratio = model.log_prior(drawn) - GaussianMixture.even(sharp, torch.ones(2, 6, dtype=torch.bool)).log_prob(drawn)
    likely = sum(model.log_likelihood(name, drawn.flatten(0, 1), batch).reshape(5, 2, 6) for name in NAMES)
    torch.testing.assert_close(found, ((likely + 0.3 * ratio).logsumexp(0) - math.log(5)).mean(0))


@pytest.mark.parametrize("name", ["mvtcae", "crmvae", "mmvm", "mmvae"])
def test_a_missing_modality_has_no_term(name: str) -> None:
    """The value of an example without attributes is that of a model whose posterior of attributes is another one."""
    model, batch = make_linear_gaussian(), draw_observations(6)
    batch.present["attributes"] = torch.zeros(6, dtype=torch.bool)
    image, prior = exact_posterior(batch, ("image",)), DiagonalGaussian.standard(6, 2, like=batch.values["image"])
    likelihood = model.log_likelihood

    def known(name: str, z: Tensor, batch: Batch) -> Tensor:
        return likelihood(name, z, batch) * (name == "image")

    def value(other: DiagonalGaussian) -> Tensor:
        def posteriors(_: Batch, units: object, rows: list[list[bool]]) -> DiagonalGaussian:
            each = [other if row == [False, True] else image for row in rows]
            return DiagonalGaussian(*(torch.stack([getattr(q, part) for q in each]) for part in ("mean", "log_sd")))

        with mock.patch.multiple(model, subset_posteriors=posteriors, log_likelihood=known):
            torch.manual_seed(0)
            found: Tensor = mmgen.objectives.get(name)()(model, batch).value
            return found

    torch.testing.assert_close(value(prior), value(DiagonalGaussian(prior.mean + 3, prior.log_sd - 1)))

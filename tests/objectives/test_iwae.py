"""IWAE against the linear-Gaussian model, where its bound is an integral in one dimension and its gradient is known."""

import itertools
import math

import numpy as np
import pytest
import torch

import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.text import TextDescription
from mmgen.models._build import build_model
from mmgen.models._settings import DataSettings, MultimodalSettings
from mmgen.settings.config import build_member
from mmgen.testing.linear_gaussian import (
    NOISE,
    draw_observations,
    exact_log_marginal,
    exact_posterior,
    make_linear_gaussian,
)
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch

BOTH = ("image", "attributes")


def objective(samples: int, **settings: object):
    return mmgen.objectives.get("iwae")(**{"samples": samples, "given": BOTH, **settings})


def test_two_draws_give_the_bound_that_quadrature_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    r"""A posterior of the right width, moved by d, has log w = log p(x) + a'e - |a|^2 / 2 with a = -d / sd, e noise.

    So L_2 = log p(x) - |a|^2 / 2 + E log cosh(|a| v / sqrt 2), v ~ N(0, 1), since e_1 - e_2 along a is N(0, 2). The
    objective's own expectation is over four numbers, by Gauss and Hermite.
    """
    offset, batch = 0.3, draw_observations(3)
    nodes, weights = np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    grid = torch.tensor(list(itertools.product(nodes, repeat=4)), dtype=torch.float64).reshape(-1, 2, 2)
    shares = torch.tensor([math.prod(four) for four in itertools.product(weights, repeat=4)], dtype=torch.float64)

    def sample(self: DiagonalGaussian, generator: object = None, shape: tuple[int, ...] = ()) -> torch.Tensor:
        assert shape == (2,)
        return self.mean + self.sd * grid.transpose(0, 1).repeat(1, 3, 1)

    monkeypatch.setattr(DiagonalGaussian, "sample", sample)
    copies = Batch(
        {n: v.repeat_interleave(len(grid), 0) for n, v in batch.values.items()}, batch.repeat(len(grid)).present
    )
    with torch.no_grad():
        found = (objective(2)(make_linear_gaussian(offset), copies).value.reshape(3, -1) * shares).sum(1)
    length = (offset / exact_posterior(batch, BOTH).sd).square().sum(-1).sqrt().numpy()  # |a|
    v, share = np.polynomial.hermite_e.hermegauss(60)
    mean = (np.log(np.cosh(length[:, None] * v / math.sqrt(2))) * share / share.sum()).sum(1)
    expected = exact_log_marginal(batch, BOTH) + torch.from_numpy(mean - length**2 / 2)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)


@pytest.mark.slow
def test_the_bound_rises_with_every_draw_towards_the_exact_log_likelihood() -> None:
    """L_1 <= L_2 <= ... <= log p(x, y), L_1 = log p(x, y) - KL(q || p(z|x,y)); means over 20 examples, 1,000 times."""
    model, batch = make_linear_gaussian(0.3, -0.2), draw_observations(20)
    exact = exact_log_marginal(batch, BOTH)
    means = []
    for samples in (1, 2, 5, 20):
        torch.manual_seed(0)
        with torch.no_grad():
            bound = objective(samples)(model, batch.repeat(4_000))
        assert bound.is_bound
        means.append(float(bound.value.mean()))
    assert means == sorted(means)
    assert means[-1] < float(exact.mean())
    posterior = exact_posterior(batch, BOTH)
    q = model.posterior(batch, BOTH)
    assert means[0] == pytest.approx(float((exact - q.kl(posterior)).detach().mean()), abs=0.03)
    assert float(exact.mean()) - means[-1] < 0.25 * (float(exact.mean()) - means[0])


@pytest.mark.parametrize("samples", [1, 3])
def test_the_bound_is_tight_at_the_true_posterior_whatever_is_drawn(samples: int) -> None:
    """Then every weight is p(x, y) itself; with one draw the divergence is a mean, and only the mean is tight."""
    batch = draw_observations(20)
    value = objective(samples)(make_linear_gaussian(), batch.repeat(1_000)).value.reshape(20, -1)
    exact = exact_log_marginal(batch, BOTH)
    if samples > 1:
        torch.testing.assert_close(value, exact[:, None].expand_as(value))
    torch.testing.assert_close(value.mean(1), exact, rtol=0, atol=0.2)


@pytest.mark.parametrize("weights", [{}, {"attributes_weight": 50.0, "image_weight": 0.5}])
def test_one_draw_is_the_elbo(weights: dict[str, float]) -> None:
    model, batch = make_linear_gaussian(0.3, -0.2), draw_observations(6)
    values = []
    for member in ("elbo", "iwae"):
        settings = {"given": BOTH, **weights} | ({"samples": 1} if member == "iwae" else {})
        torch.manual_seed(7)
        values.append(mmgen.objectives.get(member)(**settings)(model, batch))
    assert values[0].value.equal(values[1].value)
    assert values[0].is_bound == values[1].is_bound == (not weights)


def test_the_gradient_is_that_of_the_log_weights_by_their_normalised_weights() -> None:
    """Burda Eq. 14 and 15, for the decoder: sum_i w_i (x - W z_i) z_i' / s^2, the w_i adding up to one."""
    model, batch = make_linear_gaussian(0.3, -0.2), draw_observations(6)
    q = model.posterior(batch, BOTH)
    torch.manual_seed(3)
    z = q.sample(shape=(4,)).detach()
    torch.manual_seed(3)
    objective(4)(model, batch).value.sum().backward()
    log_weights = sum(
        torch.distributions.Normal(z @ decoder.weight.detach().T, NOISE).log_prob(batch.values[name]).sum(-1)
        for name, decoder in model.decoders.items()
    )
    standard = torch.distributions.Normal(0.0, 1.0)
    density = torch.distributions.Normal(q.mean.detach(), q.sd.detach())
    log_weights = log_weights + standard.log_prob(z).sum(-1) - density.log_prob(z).sum(-1)
    share = log_weights.softmax(0)  # [K, B]
    for name, decoder in model.decoders.items():
        residual = batch.values[name] - z @ decoder.weight.detach().T
        by_hand = torch.einsum("kb,kbx,kbd->xd", share, residual, z) / NOISE**2
        torch.testing.assert_close(decoder.weight.grad, by_hand)


def test_an_example_is_encoded_once_however_often_z_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch, seen = make_linear_gaussian(), draw_observations(6), []
    infer = model.inference.infer
    monkeypatch.setattr(model.inference, "infer", lambda part, given: seen.append(part.size) or infer(part, given))
    objective(50)(model, batch)
    assert seen == [6]


def test_weights_make_it_no_bound_and_are_said_to_aggregates() -> None:
    member = objective(5, attributes_weight=50.0)
    assert not member(make_linear_gaussian(), draw_observations(4)).is_bound
    assert (member.training_weight("attributes"), member.training_weight("text")) == (50.0, 1.0)


def test_annealing_is_refused_as_no_setting_of_it() -> None:
    with pytest.raises(SettingsError, match=r"kl_warmup_steps"):
        build_member(mmgen.objectives, {"name": "iwae", "kl_warmup_steps": 10}, "objective")
    with pytest.raises(SettingsError, match="greater than or equal to 1"):
        build_member(mmgen.objectives, {"name": "iwae", "samples": 0}, "objective")


def test_images_alone_and_images_with_sentences() -> None:
    """The paper's model, and one whose decoder speaks: one value an example, finite, gradients everywhere."""
    words = TextDescription(vocabulary=("big", "red", "cube"), length=3)
    data = DataSettings.from_descriptions(*SMALL_DATA.modalities.values(), words)
    small = MultimodalSettings(
        **SMALL_MODEL.model_dump(exclude={"text_network"}), text_network={"hidden": 8, "head": 8}
    )
    batch = small_batch()
    words = torch.tensor([[0, 1, 2]] * 5)
    batch = Batch(batch.values | {"text": words}, batch.present | {"text": torch.ones(5, dtype=torch.bool)})
    for modalities in (("image",), ("image", "text")):
        member = mmgen.objectives.get("iwae")(samples=3, modalities=modalities)
        torch.manual_seed(0)
        model = build_model(small, member.demands, data)
        bound = member(model, batch)
        assert bound.value.shape == (5,)
        assert bound.value.isfinite().all()
        assert set(bound.terms) == {*(f"log p({name}|z)" for name in modalities), "kl"}
        bound.value.mean().backward()
        assert all(p.grad is not None for p in model.parameters())


def test_elbo_averages_over_its_draws() -> None:
    """With one it is what it always was, bit for bit; with five the mean of five, and the same divergence."""
    model, batch = make_linear_gaussian(0.3, -0.2), draw_observations(6)
    q = model.posterior(batch, BOTH)
    kl = q.kl(DiagonalGaussian.standard(6, 2, like=q.mean))
    for samples, shape in ((1, ()), (5, (5,))):
        torch.manual_seed(1)
        bound = mmgen.objectives.get("elbo")(given=BOTH, samples=samples)(model, batch)
        torch.manual_seed(1)
        z = q.sample(shape=shape)
        terms = [model.log_likelihood(name, z, batch) for name in BOTH]
        terms = terms if samples == 1 else [term.mean(0) for term in terms]
        assert bound.value.equal(-1.0 * kl + 1.0 * terms[0] + 1.0 * terms[1])
        assert bound.is_bound

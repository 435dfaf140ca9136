"""Importance-weighted likelihoods against a model in which all of them have closed forms, in float64."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.core.progress import run_generator
from mmgen.evaluation.importance import Component, Estimate, Terms, compute_terms, summarise_weights
from mmgen.evaluation.likelihoods import (
    compute_image_terms,
    estimate_text,
    estimate_text_by_posterior,
    image_log_likelihood,
    infer_proposal,
    quantities_under_prior,
)
from mmgen.evaluation.proposals import diagnostics
from tests.metrics.toy import LEARNED, TEXT_SD, Gaussian, gaussian_points, loaded_gaussian, text_posterior
from tests.posteriors.stand_in import StandIn

POINTS = gaussian_points(40)
X, Y = POINTS.values["image"], POINTS.values["attributes"][:, 0]


def terms(model: Gaussian, samples: int, seed: int = 0, wanted: str = "image") -> Terms:
    return run_generator(
        compute_image_terms(loaded_gaussian(model), POINTS, ("prior", "own"), samples, seed, proposal=wanted)
    )


def close(found: Estimate, expected: Tensor, errors: float = 5) -> None:
    """Each point within a few standard deviations of its own noise."""
    allowed = errors * found.relative_variance.sqrt() + 1e-9
    assert ((found.value - expected).abs() < allowed).all()


def test_weights_of_the_exact_posterior_are_all_the_same() -> None:
    """With orthogonal columns the posterior is diagonal and the proposal exact: one sample gives the truth."""
    model = Gaussian()
    model.weights = torch.tensor([[1.0, 0.5], [1.0, -0.5], [0.0, 0.3]], dtype=torch.float64)
    found = quantities_under_prior(terms(model, samples=7), "prior")["log p(x)"]
    torch.testing.assert_close(found.value, model.log_image(X), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.bound, model.log_image(X), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.ess, torch.full((40,), 7.0).double())
    assert float(found.log_variance.max()) < 1e-18


def test_all_quantities_converge_to_the_truth() -> None:
    model = Gaussian(widening=1.5, shift=0.1)
    parts = terms(model, samples=3000)
    under = quantities_under_prior(parts, "prior")
    close(under["log p(x)"], model.log_image(X))
    conditional = model.log_text_given_image(X, Y)
    close(under["log p(x,y)"], model.log_image(X) + conditional)
    difference = under["log p(x,y)"].value - under["log p(x)"].value
    torch.testing.assert_close(difference, conditional, rtol=0, atol=0.1)
    text = run_generator(estimate_text(loaded_gaussian(model), POINTS, "prior", 5000, seed=0))
    close(text, torch.full((40,), 0.5).double().log())
    torch.testing.assert_close(text.value, torch.full((40,), 0.5).double().log(), rtol=0, atol=0.05)


def test_image_given_text_under_a_posterior_of_the_text() -> None:
    """CK Eq. 6 tends to the log of the integral of p(x|z) q(z|y), which is Gaussian here, and is below it."""
    model = Gaussian(widening=1.5)
    parts = terms(model, samples=3000)
    found = parts.weigh(parts["image"] + parts["own"])
    exact = model.log_image(X, text_posterior(POINTS).mean, TEXT_SD**2 * torch.eye(2).double())
    close(found, exact)
    assert (found.bound < exact + 1e-9).all()


def test_each_distinct_description_is_estimated_once() -> None:
    text = run_generator(estimate_text(loaded_gaussian(Gaussian()), POINTS, "prior", 100, seed=0))
    assert len(text.value) == 40
    assert len(text.value.unique()) == 2


def test_unknown_text_has_probability_one() -> None:
    points = gaussian_points(6)
    points.present["attributes"][:3] = False
    text = run_generator(estimate_text(loaded_gaussian(Gaussian()), points, "prior", 200, seed=0))
    torch.testing.assert_close(text.value[:3], torch.zeros(3).double(), rtol=0, atol=0.2)
    assert (text.value[3:] < -0.5).all()


def test_estimate_rises_with_the_number_of_samples_and_stays_below_the_truth() -> None:
    """E[L_1] <= E[L_4] <= E[L_16] <= ... <= log p(x) (Burda et al., Theorem 1)."""
    model = Gaussian(widening=0.6, shift=0.3)
    weights = terms(model, samples=64 * 64)
    log_weights = weights["image"] + weights["prior"] - weights.proposal
    exact = model.log_image(X).mean()
    means, errors = [], []
    for samples in (1, 4, 16, 64):
        grouped = log_weights.reshape(samples, -1, 40).logsumexp(0) - torch.tensor(samples).log()
        means.append(float(grouped.mean()))
        errors.append(float(grouped.mean(1).std() / grouped.shape[0] ** 0.5))
    assert all(low < high for low, high in pairwise(means))
    assert means[-1] < float(exact) + 3 * errors[-1]
    assert means[0] == pytest.approx(float(summarise_weights(log_weights).bound.mean()))


def test_noise_and_bias_of_an_estimate_are_told() -> None:
    model = Gaussian(widening=1.6)
    repeated = [quantities_under_prior(terms(model, 50, seed), "prior")["log p(x)"] for seed in range(100)]
    values = torch.stack([found.value for found in repeated])
    told = torch.stack([found.relative_variance for found in repeated]).mean(0)
    ratio = values.var(0) / told
    assert float(ratio.mean()) == pytest.approx(1, abs=0.3)


def test_points_with_the_same_description_share_the_noise_of_its_estimate() -> None:
    """log p(y) of 40 points is two estimates: its mean is as noisy over seeds as its printed error says."""
    loaded = loaded_gaussian(Gaussian(), own_text=False)
    found = [run_generator(estimate_text(loaded, POINTS, "prior", 50, seed)) for seed in range(60)]
    spread = torch.stack([one.value.mean() for one in found]).std()
    told = torch.tensor([diagnostics(one)["monte_carlo_stderr"] for one in found]).mean()
    assert float(spread / told) == pytest.approx(1.0, abs=0.2)
    rows = torch.arange(0, 40, 2)  # rows of rows still know which estimate they have
    few = found[0][rows]
    assert few.monte_carlo_stderr > 3 * float(few.relative_variance.sum().sqrt() / len(rows))


@pytest.mark.slow
def test_passes_do_not_matter() -> None:
    """Samples drawn in pieces are as good as samples drawn at once."""
    model = Gaussian(widening=1.3)
    loaded = loaded_gaussian(model)
    proposal, given = infer_proposal(loaded, POINTS)
    assert given == ("image",)
    assert proposal.mean.dtype == torch.float64
    densities = {
        "image": lambda z, batch: model.log_likelihood("image", z, batch),
        "prior": lambda z, batch: model.log_prior(z),
    }
    for at_once in (3, 100, 10**6):
        components = [Component.from_posterior("q(z|image)", proposal)]
        parts = run_generator(
            compute_terms(components, POINTS, 400, densities, at_once, torch.Generator().manual_seed(0))
        )
        assert parts["image"].shape == (400, 40)
        assert parts["image"].isfinite().all()
        close(parts.weigh(parts["image"] + parts["prior"]), model.log_image(X))


def test_estimate_by_hand() -> None:
    found = summarise_weights(torch.tensor([[1.0, 2.0, 3.0]]).log().T)
    assert float(found.value) == pytest.approx(np.log(2))
    assert float(found.bound) == pytest.approx(np.log(6) / 3)
    assert float(found.ess) == pytest.approx(36 / 14)
    assert float(found.log_variance) == pytest.approx(np.var(np.log([1, 2, 3]), ddof=1))


def test_huge_log_weights_do_not_overflow() -> None:
    found = summarise_weights(torch.tensor([[75000.0], [75001.0]]))
    assert float(found.value) == pytest.approx(75000 + np.log((1 + np.e) / 2))
    assert 1 < float(found.ess) < 2


def test_of_images_alone_from_python() -> None:
    model = Gaussian()
    loaded = loaded_gaussian(model)
    score = image_log_likelihood(loaded, X, samples=500, seed=0)
    assert score.value == pytest.approx(float(model.log_image(X).mean()), abs=0.1)
    assert score.n == len(score.points.values) == 40


def test_a_sentence_is_as_likely_as_the_attribute_that_it_spells() -> None:
    """CK Eq. 6 and log p(x, y) with text against those with attributes: the same density under another name."""
    found = []
    for words in ("attributes", "text"):
        model = Gaussian(widening=1.5, words=words)
        parts = terms(model, samples=50)
        text = run_generator(estimate_text(loaded_gaussian(model), POINTS, "prior", 200, seed=0))
        found.append([parts["words"], parts.weigh(parts["image"] + parts["own"]).bound, text.value])
    for of_attributes, of_text in zip(*found, strict=True):
        torch.testing.assert_close(of_attributes, of_text)


def test_likelihoods_under_a_learned_prior() -> None:
    """CK Table 2: q(z) in place of p(z), where log p(x) and log p(y) have closed forms; CK's bounds are below them."""
    model = Gaussian(widening=1.4, words="text")
    loaded = loaded_gaussian(model, own_text=False)
    parts = run_generator(compute_image_terms(loaded, POINTS, ("prior", "aggregate"), 4000, seed=0))
    for name, mean, covariance in (
        ("prior", torch.zeros(2).double(), torch.eye(2).double()),
        ("aggregate", LEARNED[0], LEARNED[1].square().diag()),
    ):
        under = quantities_under_prior(parts, name)
        image, text = model.log_image(X, mean, covariance), model.log_text(Y, mean, covariance)
        close(under["log p(x)"], image)
        noise = (under["log p(x)"].log_variance / under["log p(x)"].samples).sqrt()
        assert (under["log p(x)"].bound < image + 4 * noise).all()
        weighted = run_generator(estimate_text(loaded, POINTS, name, 4000, seed=0))
        torch.testing.assert_close(weighted.value, text.double(), rtol=0, atol=0.06)


def test_text_through_a_fitted_posterior_of_another_file() -> None:
    """CK Table 2: log p(y), z from q(z|y): ten weights are nearly there, many are, under p(z) and q(z) alike; and
    it gains by q(z) what log p(y) gains, not what log p(x) does."""
    model = Gaussian(widening=1.4, words="text")
    loaded, fitted = loaded_gaussian(model, own_text=False), loaded_gaussian(model)
    assert run_generator(estimate_text_by_posterior(loaded, POINTS, "prior", 10, seed=0)) is None
    own = fitted.posteriors["own"]
    fitted.fitted, fitted.given = StandIn("aggregate", own.draw, own.log_density, fitted=True, reads=("text",)), "text"
    fitted.posteriors["aggregate"] = fitted.fitted
    truths, gains = [], []
    for name, mean, covariance in (
        ("prior", torch.zeros(2).double(), torch.eye(2).double()),
        ("aggregate", LEARNED[0], LEARNED[1].square().diag()),
    ):
        exact = model.log_text(Y, mean, covariance)
        many = run_generator(estimate_text_by_posterior(loaded, POINTS, name, 20_000, seed=0, text_proposal=fitted))
        assert many.names == ("q_agg(z|y)",)
        torch.testing.assert_close(many.value, exact.double(), rtol=0, atol=0.1)
        ten = torch.stack(
            [
                run_generator(
                    estimate_text_by_posterior(loaded, POINTS, name, 10, seed, text_proposal=fitted)
                ).value.mean()
                for seed in range(40)
            ]
        )
        assert float(exact.mean()) - 0.5 < float(ten.mean()) < float(exact.mean()) + 0.02  # below: Burda et al.
        mixed = run_generator(estimate_text(loaded, POINTS, name, 4000, seed=0, text_proposal=fitted))
        assert mixed.names == ("q_agg(z|y)", "p(z)" if name == "prior" else "q(z)")
        torch.testing.assert_close(mixed.value, exact.double(), rtol=0, atol=0.06)
        truths.append(float(exact.mean()))
        gains.append(float(many.value.mean()))
    assert gains[1] - gains[0] == pytest.approx(truths[1] - truths[0], abs=0.1)


def test_without_a_posterior_of_the_text_that_of_an_image_helps_the_prior() -> None:
    """A sentence that the prior hardly ever says: few draws find it through an image that is described so."""
    model = Gaussian(words="text")
    model.slope = torch.tensor([0.0, 40.0], dtype=torch.float64)
    rare = gaussian_points(1)
    rare.values["image"][:] = 6.0 * model.weights[:, 1]  # z is near (0, 6)
    rare.values["text"][:] = 1
    loaded = loaded_gaussian(model, own_text=False)
    prior = loaded.posteriors["prior"]
    loaded.posteriors["prior"] = StandIn(
        "prior", lambda batch, n, generator: torch.full((n, 1, 2), -3.0).double(), prior.log_density
    )
    found = run_generator(estimate_text(loaded, rare, "prior", 20, seed=0))
    assert float(found.value) > -30  # from the prior's draws alone: log p(y|z) = -7,200


def test_images_alone_have_a_likelihood_under_a_model_of_sentences() -> None:
    loaded = loaded_gaussian(Gaussian(words="text"))
    score = image_log_likelihood(loaded, X.float(), samples=20, seed=0)
    assert (score.quantity, score.n) == ("log p(x)", 40)

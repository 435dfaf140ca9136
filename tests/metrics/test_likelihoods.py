"""Importance-weighted likelihoods against a model in which all of them have closed forms, in float64."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.metrics._importance import Estimate, estimate, log_terms
from mmgen.metrics._likelihoods import (
    image_log_likelihood,
    image_terms,
    proposal_of,
    text_estimate,
    under_prior,
)
from tests.metrics.toy import TEXT_SD, Gaussian, gaussian_points, loaded_gaussian, text_posterior

POINTS = gaussian_points(40)
X, Y = POINTS.values["image"], POINTS.values["attributes"][:, 0]


def finish(work: Any) -> Any:
    while True:
        try:
            next(work)
        except StopIteration as stop:
            return stop.value


def terms(model: Gaussian, samples: int, seed: int = 0) -> dict[str, Tensor]:
    return finish(image_terms(loaded_gaussian(model), POINTS, ("prior", "text"), samples, seed))  # type: ignore[no-any-return]


def close(found: Estimate, expected: Tensor, errors: float = 5) -> None:
    """Each point within a few standard deviations of its own noise."""
    allowed = errors * found.relative_variance.sqrt() + 1e-9
    assert ((found.value - expected).abs() < allowed).all()


def test_weights_of_the_exact_posterior_are_all_the_same() -> None:
    """With orthogonal columns the posterior is diagonal and the proposal exact: one sample gives the truth."""
    model = Gaussian()
    model.weights = torch.tensor([[1.0, 0.5], [1.0, -0.5], [0.0, 0.3]], dtype=torch.float64)
    found = under_prior(terms(model, samples=7), "prior")["log p(x)"]
    torch.testing.assert_close(found.value, model.log_image(X), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.bound, model.log_image(X), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.ess, torch.full((40,), 7.0).double())
    assert float(found.log_variance.max()) < 1e-18


def test_all_quantities_converge_to_the_truth() -> None:
    model = Gaussian(widening=1.5, shift=0.1)
    parts = terms(model, samples=3000)
    under = under_prior(parts, "prior")
    close(under["log p(x)"], model.log_image(X))
    conditional = model.log_text_given_image(X, Y)
    close(under["log p(x,y)"], model.log_image(X) + conditional)
    difference = under["log p(x,y)"].value - under["log p(x)"].value
    torch.testing.assert_close(difference, conditional, rtol=0, atol=0.1)
    text = finish(text_estimate(loaded_gaussian(model), POINTS, "prior", 5000, seed=0))
    close(text, torch.full((40,), 0.5).double().log())
    torch.testing.assert_close(text.value, torch.full((40,), 0.5).double().log(), rtol=0, atol=0.05)


def test_image_given_text_under_a_posterior_of_the_text() -> None:
    """CK Eq. 6 tends to the log of the integral of p(x|z) q(z|y), which is Gaussian here, and is below it."""
    model = Gaussian(widening=1.5)
    parts = terms(model, samples=3000)
    found = estimate(parts["image"] + parts["text"] - parts["proposal"])
    exact = model.log_image(X, text_posterior(POINTS).mean, TEXT_SD**2 * torch.eye(2).double())
    close(found, exact)
    assert (found.bound < exact + 1e-9).all()


def test_each_distinct_description_is_estimated_once() -> None:
    text = finish(text_estimate(loaded_gaussian(Gaussian()), POINTS, "prior", 100, seed=0))
    assert len(text.value) == 40
    assert len(text.value.unique()) == 2


def test_unknown_text_has_probability_one() -> None:
    points = gaussian_points(6)
    points.present["attributes"][:3] = False
    text = finish(text_estimate(loaded_gaussian(Gaussian()), points, "prior", 200, seed=0))
    torch.testing.assert_close(text.value[:3], torch.zeros(3).double(), rtol=0, atol=0.2)
    assert (text.value[3:] < -0.5).all()


def test_estimate_rises_with_the_number_of_samples_and_stays_below_the_truth() -> None:
    """E[L_1] <= E[L_4] <= E[L_16] <= ... <= log p(x) (Burda et al., Theorem 1)."""
    model = Gaussian(widening=0.6, shift=0.3)
    weights = terms(model, samples=64 * 64)
    log_weights = weights["image"] + weights["prior"] - weights["proposal"]
    exact = model.log_image(X).mean()
    means, errors = [], []
    for samples in (1, 4, 16, 64):
        grouped = log_weights.reshape(samples, -1, 40).logsumexp(0) - torch.tensor(samples).log()
        means.append(float(grouped.mean()))
        errors.append(float(grouped.mean(1).std() / grouped.shape[0] ** 0.5))
    assert all(low < high for low, high in pairwise(means))
    assert means[-1] < float(exact) + 3 * errors[-1]
    assert means[0] == pytest.approx(float(estimate(log_weights).bound.mean()))


def test_noise_and_bias_of_an_estimate_are_told() -> None:
    model = Gaussian(widening=1.6)
    repeated = [under_prior(terms(model, 50, seed), "prior")["log p(x)"] for seed in range(100)]
    values = torch.stack([found.value for found in repeated])
    told = torch.stack([found.relative_variance for found in repeated]).mean(0)
    ratio = values.var(0) / told
    assert float(ratio.mean()) == pytest.approx(1, abs=0.3)


def test_passes_do_not_matter() -> None:
    """Samples drawn in pieces are as good as samples drawn at once."""
    model = Gaussian(widening=1.3)
    loaded = loaded_gaussian(model)
    proposal, given = proposal_of(loaded, POINTS)
    assert given == ("image",)
    assert proposal.mean.dtype == torch.float64
    densities = {
        "image": lambda z, batch: model.log_likelihood("image", z, batch),
        "prior": lambda z, batch: model.log_prior(z),
    }
    for at_once in (3, 100, 10**6):
        parts = finish(log_terms(proposal, POINTS, 400, densities, at_once, torch.Generator().manual_seed(0)))
        assert parts["image"].shape == (400, 40)
        assert parts["image"].isfinite().all()
        close(estimate(parts["image"] + parts["prior"] - parts["proposal"]), model.log_image(X))


def test_estimate_by_hand() -> None:
    found = estimate(torch.tensor([[1.0, 2.0, 3.0]]).log().T)
    assert float(found.value) == pytest.approx(np.log(2))
    assert float(found.bound) == pytest.approx(np.log(6) / 3)
    assert float(found.ess) == pytest.approx(36 / 14)
    assert float(found.log_variance) == pytest.approx(np.var(np.log([1, 2, 3]), ddof=1))


def test_huge_log_weights_do_not_overflow() -> None:
    found = estimate(torch.tensor([[75000.0], [75001.0]]))
    assert float(found.value) == pytest.approx(75000 + np.log((1 + np.e) / 2))
    assert 1 < float(found.ess) < 2


def test_of_images_alone_from_python() -> None:
    model = Gaussian()
    loaded = loaded_gaussian(model)
    score = image_log_likelihood(loaded, X, samples=500, seed=0)
    assert score.value == pytest.approx(float(model.log_image(X).mean()), abs=0.1)
    assert score.n == len(score.extra["values"]) == 40

"""What WG's published code does beyond their Eq. 5: against closed forms of a linear-Gaussian model."""

import pytest
import torch

from mmgen.objectives import mvae
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.mvae import Mvae
from mmgen.settings.extends import load_preset
from mmgen.testing.linear_gaussian import NOISE
from tests.objectives.test_mvae import FOUR, LOADINGS, exact_log_marginal, four_modalities, four_observations
from tests.objectives.test_objectives import replace_noise

__all__ = ["replace_noise"]


def test_weights_may_be_for_the_joint_term_alone(replace_noise: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As published for MVAE19: in the terms of one modality and of a random subset every likelihood counts 1."""
    monkeypatch.setattr(mvae, "draw_subset", lambda count, law: (True, True, True, False))
    model, batch = four_modalities("product-of-experts"), four_observations(4).repeat(replace_noise)
    plain = Mvae(modalities=FOUR, weights={}, subsets=1)(model, batch)
    joint = Mvae(modalities=FOUR, weights={"two": 3.0}, subsets=1, weigh="joint", subset_law="sizes")(model, batch)
    torch.testing.assert_close(joint.value, plain.value + 2 * plain.terms["log p(two|z)"])


def test_transformed_images_are_trained_as_published(replace_noise: int) -> None:
    """Every posterior, of all modalities and of each, explains all of them; likelihoods are divided by their number.

    Closed form: E_q[log N(x; Wz, s^2)] = log N(x; Wm, s^2) - tr(W S W^T) / 2 s^2 for q = N(m, S).
    """
    settings = load_preset("wu/transforms")["objective"]
    names = dict(zip(settings["modalities"], [*FOUR, "", ""], strict=True))
    predicts = {names[a]: tuple(names[b] for b in others if names[b]) for a, others in settings["predicts"].items()}
    del predicts[""]
    objective = Mvae(
        modalities=FOUR,
        weights=settings["weights"],
        subsets=settings["subsets"],
        mean_of_modalities=settings["mean_of_modalities"],
        predicts=predicts,
    )
    batch = four_observations(3)
    value = objective(four_modalities("product-of-experts"), batch.repeat(replace_noise)).value
    expected = torch.zeros(3, dtype=torch.float64)
    eye = torch.eye(2, dtype=torch.float64)
    for given in (FOUR, *((name,) for name in FOUR)):
        loading = torch.cat([LOADINGS[name] for name in given])
        covariance = torch.linalg.inv(eye + loading.T @ loading / NOISE**2)
        mean = torch.cat([batch.values[name] for name in given], -1) @ loading @ covariance / NOISE**2
        for name, other in LOADINGS.items():
            density = torch.distributions.Normal(mean @ other.T, NOISE).log_prob(batch.values[name]).sum(-1)
            expected += (density - (other @ covariance @ other.T).trace() / (2 * NOISE**2)) / 4
        expected -= 0.5 * (covariance.trace() + mean.square().sum(-1) - 2 - torch.logdet(covariance))
    torch.testing.assert_close(value.reshape(3, -1).mean(1), expected)


def test_the_mean_is_of_what_a_posterior_explains(replace_noise: int) -> None:
    """A modality alone that explains itself alone has its whole likelihood against its divergence, as in Eq. 2."""
    batch = four_observations(3)
    model = four_modalities("product-of-experts")
    value = Mvae(modalities=FOUR, weights={}, mean_of_modalities=True)(model, batch.repeat(replace_noise)).value
    joint = Elbo(modalities=FOUR, given=FOUR, beta=4.0)(model, batch.repeat(replace_noise)).value / 4
    alone = torch.stack([exact_log_marginal(batch, [name]) for name in FOUR]).sum(0)
    torch.testing.assert_close(value.reshape(3, -1).mean(1), joint.reshape(3, -1).mean(1) + alone)

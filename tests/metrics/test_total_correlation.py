"""The decomposition of the divergence against closed forms: Gaussian q(z), and mixtures by torch.distributions."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from mmgen import metrics
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics import total_correlation
from mmgen.metrics._base import evaluate
from mmgen.metrics.total_correlation import mixture_log_densities
from mmgen.testing.metrics import small_evaluation


def densities(z: Tensor, q: DiagonalGaussian) -> tuple[Tensor, Tensor]:
    parts = [found for _, found in mixture_log_densities(z, q)]
    return torch.cat([joint for joint, _ in parts]), torch.cat([marginals for _, marginals in parts])


def test_densities_are_those_of_the_mixture() -> None:
    torch.manual_seed(0)
    q = DiagonalGaussian(torch.randn(700, 4).double(), 0.3 * torch.randn(700, 4).double() - 1)
    z = q.sample()
    joint, marginals = densities(z, q)
    even = Categorical(torch.ones(700, dtype=torch.float64))
    whole = MixtureSameFamily(even, Independent(Normal(q.mean, q.sd), 1))
    torch.testing.assert_close(joint, whole.log_prob(z))
    for d in range(4):
        one = MixtureSameFamily(even, Normal(q.mean[:, d], q.sd[:, d]))
        torch.testing.assert_close(marginals[:, d], one.log_prob(z[:, d]))
    # In single precision with narrow posteriors far out, as trained models have them.
    narrow = DiagonalGaussian(3 * q.mean, q.log_sd - 3)
    z = narrow.sample()
    exact, found = (
        densities(z, narrow),
        densities(z.float(), DiagonalGaussian(narrow.mean.float(), narrow.log_sd.float())),
    )
    for one, other in zip(exact, found, strict=True):
        torch.testing.assert_close(other.double(), one, atol=2e-3, rtol=1e-4)


def test_a_gaussian_aggregate() -> None:
    """q(z) = N(0, S) with r = .8: TC = .511 nats; the other parts in closed form too."""
    torch.manual_seed(0)
    covariance = torch.tensor([[1.0, 0.8], [0.8, 1.0]])
    root = torch.linalg.cholesky(covariance - 0.09 * torch.eye(2))
    count = 2000
    q = DiagonalGaussian(torch.randn(count, 2) @ root.T, torch.full((count, 2), math.log(0.3)))
    z = q.sample()
    joint, marginals = densities(z, q)
    assert (joint - marginals.sum(1)).mean().item() == pytest.approx(-0.5 * math.log(1 - 0.64), abs=0.05)
    information = 0.5 * (torch.logdet(covariance) - 2 * math.log(0.09)).item()
    assert (q.log_prob(z) - joint).mean().item() == pytest.approx(information, abs=0.06)


def test_information_is_bounded_by_the_number_of_examples() -> None:
    """Posteriors far apart: z names its example, and every term of the mean is log N."""
    q = DiagonalGaussian(10 * torch.arange(50.0)[:, None].expand(50, 3), torch.zeros(50, 3))
    z = q.sample(torch.Generator().manual_seed(0))
    joint, _ = densities(z, q)
    torch.testing.assert_close(q.log_prob(z) - joint, torch.full((50,), math.log(50)), atol=1e-4, rtol=0)


@pytest.mark.slow
def test_z_is_drawn_where_its_posterior_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator of another device than the encodings would be refused: with a model on a GPU there was no score."""
    evaluation, asked = small_evaluation(tmp_path), []

    def generator(seed: int, *name: str, device: torch.device | str = "cpu") -> torch.Generator:
        asked.append((name, torch.device(device)))
        return torch.Generator()  # which the device "meta" takes

    q = DiagonalGaussian(torch.zeros(4, 2, device="meta"), torch.zeros(4, 2, device="meta"))
    monkeypatch.setattr(total_correlation, "torch_generator", generator)
    monkeypatch.setattr(total_correlation, "_encode_images", lambda _: q)
    next(total_correlation.TotalCorrelation()(evaluation, "own"))
    assert asked == [(("total correlation",), torch.device("meta"))]


@pytest.mark.slow
def test_parts_add_up_to_the_divergence(tmp_path: Path) -> None:
    evaluation = small_evaluation(tmp_path)
    scores = {score.quantity: score for score in evaluate(evaluation, ["total-correlation"]).run()}
    whole = scores.pop("kl of q(z|x) to p(z)")
    error = math.hypot(*(score.stderr or 0 for score in scores.values()), whole.stderr or 0)
    assert sum(score.value for score in scores.values()) == pytest.approx(whole.value, abs=4 * error)
    information = scores["mutual information"]
    assert information.details["log_examples"] == math.log(information.n) >= information.value
    assert "total-correlation" in metrics.names()


@pytest.mark.slow
def test_a_factorising_aggregate_warns_where_examples_are_too_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """q(z) of ten independent dimensions has no total correlation; 500 narrow posteriors of it cannot show that."""
    evaluation = small_evaluation(tmp_path)
    generator = torch.Generator().manual_seed(0)
    for sd, warned in ((0.1, True), (0.9, False)):
        mean = math.sqrt(1 - sd**2) * torch.randn(500, 10, generator=generator)
        q = DiagonalGaussian(mean, torch.full((500, 10), math.log(sd)))
        monkeypatch.setattr(total_correlation, "_encode_images", lambda _, q=q: q)
        scores = {score.quantity: score for score in evaluate(evaluation, ["total-correlation"]).run()}
        correlation, information = scores["total correlation"], scores["mutual information"]
        assert (correlation.value > 5) == warned
        for score, bound in ((correlation, "at most"), (information, "at least")):
            said = score.warnings
            assert [text.startswith(bound) for text in said] == ([True] if warned else [])
            assert score.details["log_examples"] == math.log(500)
            assert score.protocol == "mixture of 500" and score.better == "neither"

"""Fitted densities: they integrate to one, they sample what they score, and they recover what they are fitted to."""

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from scipy import stats

import mmgen.densities
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.densities._flow import CouplingFlow
from mmgen.latent.space import LatentSpace
from mmgen.modalities.attributes import Attributes
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.posteriors import Aggregate
from mmgen.posteriors._base import DensityTask, drop_attributes
from mmgen.posteriors.aggregate import AggregatedTask
from mmgen.posteriors.true import ExactTask
from mmgen.testing import densities
from mmgen.testing.densities import ATTRIBUTES, CONDITION, make_random_density
from mmgen.testing.linear_gaussian import make_linear_gaussian
from mmgen.training.batches import Rows
from mmgen.training.loop import train
from mmgen.training.settings import TrainingSettings

FAMILIES = mmgen.densities.names()
FLOWS = [
    name
    for name in FAMILIES
    if isinstance(mmgen.densities.get(name)().build_density(LatentSpace.flat(2), 0), CouplingFlow)
]
SEVERAL_MODES = [name for name in FAMILIES if name not in ("gaussian", "full-gaussian", "scan")]


@pytest.mark.slow_cases(
    "rectified-flow-given attributes",
    "nsf-given attributes",
    "realnvp-given attributes",
    "rectified-flow-given nothing",
)
@pytest.mark.parametrize("attributes", [ATTRIBUTES, None], ids=["given attributes", "given nothing"])
@pytest.mark.parametrize("name", FAMILIES)
def test_density_integrates_to_one_in_two_dimensions(name: str, attributes: Attributes | None) -> None:
    densities.check_integral(name, attributes)


@pytest.mark.slow_cases("rectified-flow", "realnvp", "nsf")
@pytest.mark.parametrize("name", FAMILIES)
def test_samples_follow_the_density(name: str) -> None:
    densities.check_samples(name)


@pytest.mark.parametrize("latent", [LatentSpace.flat(4), LatentSpace.grid(1, 2, 2)], ids=["vector", "grid"])
@pytest.mark.parametrize("name", FAMILIES)
def test_contract(name: str, latent: LatentSpace) -> None:
    densities.check_draws(name, latent)


@pytest.mark.parametrize("given", [ATTRIBUTES, None], ids=["attributes", "nothing"])
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_come_with_their_density(name: str, given: Attributes | None) -> None:
    """sample_with_log_prob agrees with log_prob about its draws, and gives the gradients that both calls would."""
    aggregate = make_random_density(name, LatentSpace.flat(4), given)
    condition = CONDITION if given else None
    torch.manual_seed(2)
    z, weights, log_q = aggregate.sample_with_log_prob(condition, 3)
    torch.testing.assert_close(log_q, aggregate.log_prob(z, condition))
    value = (weights * (log_q - z.square().sum(-1))).sum()
    read = [
        p for name, p in aggregate.named_parameters() if "decoder" not in name
    ]  # what generates words is no part of q
    found = torch.autograd.grad(value, read)
    torch.manual_seed(2)
    z, weights = aggregate.sample_reparameterised(condition, 3)
    value = (weights * (aggregate.log_prob(z, condition) - z.square().sum(-1))).sum()
    torch.testing.assert_close(found, torch.autograd.grad(value, read))


@pytest.mark.parametrize("name", FAMILIES)
def test_densities_stay_in_full_precision_under_autocast(name: str) -> None:
    densities.check_precision(name)


@pytest.mark.parametrize("name", FLOWS)
def test_flows_invert(name: str) -> None:
    aggregate = make_random_density(name, LatentSpace.flat(5), ATTRIBUTES)
    assert isinstance(aggregate.density, CouplingFlow)
    transform = aggregate.density.flow(
        ATTRIBUTES.describe(*(d["attributes"] for d in (CONDITION.values, CONDITION.present))).double()
    ).transform
    u = torch.randn(100, 3, 5, dtype=torch.float64)
    torch.testing.assert_close(transform.inv(transform(u)), u, atol=1e-8, rtol=0)


def test_coupling_flows_refuse_one_dimension() -> None:
    with pytest.raises(SettingsError, match="gaussian or mixture"):
        Aggregate(LatentSpace.flat(1), None, mmgen.densities.get("realnvp")())


def test_dropping_keeps_the_right_shares() -> None:
    count = 60_000
    batch = Batch(
        {"attributes": torch.ones(count, 2, dtype=torch.int64)},
        {"attributes": torch.tensor([[True, True], [False, True]]).repeat(count // 2, 1)},
    )
    torch.manual_seed(0)
    dropped = drop_attributes(batch, "attributes", keep_all=0.4)
    present = dropped.present["attributes"]
    assert not present[1::2, 0].any(), "what is unknown stays unknown"
    kept = present[0::2].sum(1)
    # whole: 0.4 + 0.6 / 3; one left, none left: 0.6 / 3 each
    for number, share in ((2, 0.6), (1, 0.2), (0, 0.2)):
        assert (kept == number).double().mean().item() == pytest.approx(share, abs=0.01)
    one = present[0::2][kept == 1]
    assert one[:, 0].double().mean().item() == pytest.approx(0.5, abs=0.02)
    assert (dropped.values["attributes"][~present] == 0).all()


class Encodings(Rows):
    """Encodings of a mixture that depends on an attribute: red at (-2, 0), blue at (+2, 0) and (+2, 3)."""

    means: ClassVar = {0: [(-2.0, 0.0)], 1: [(2.0, 0.0), (2.0, 3.0)]}
    spread, noise = 0.4, 0.3

    def __init__(self, size: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.code = generator.integers(0, 2, size)
        centres = np.array([self.means[c][generator.integers(len(self.means[c]))] for c in self.code])
        self.mean = torch.from_numpy(centres + self.spread * generator.normal(size=(size, 2))).float()

    def __len__(self) -> int:
        return len(self.code)

    def batch(self, indices: torch.Tensor) -> Batch:
        codes = torch.from_numpy(self.code)[indices]
        values = {
            "mean": self.mean[indices],
            "log_sd": torch.full((len(indices), 2), math.log(self.noise)),
            "attributes": torch.stack([codes, torch.zeros_like(codes)], 1),
        }
        present = {"attributes": torch.tensor([[True, False]]).expand(len(indices), 2)}
        return Batch(values, present)

    def log_density(self, z: np.ndarray, code: int) -> np.ndarray:
        sd = math.hypot(self.spread, self.noise)
        parts = [stats.norm.logpdf(z, m, sd).sum(-1) for m in self.means[code]]
        return np.logaddexp.reduce(parts, axis=0) - math.log(len(parts))


def fit(tmp_path: Path, family: str, target: str, model: MultimodalVAE, steps: int, **settings: Any) -> Aggregate:
    rows = Encodings(20_000, 0)
    torch.manual_seed(0)
    attributes = settings.pop("attributes", ATTRIBUTES)
    aggregate = Aggregate(LatentSpace.flat(2), attributes, mmgen.densities.get(family)(**settings))
    task: DensityTask = ExactTask(aggregate, model, keep_all=0.5)
    if target == "aggregate":
        aggregate.standardise(rows.mean, rows.batch(torch.arange(len(rows))).values["log_sd"])
        task = AggregatedTask(aggregate, keep_all=0.5)
    training = TrainingSettings(
        steps=steps, batch=256, learning_rate=5e-3, schedule="cosine", precision="32-true", device="cpu"
    )

    def save(path: Path, facts: dict[str, Any]) -> None:
        path.touch()

    train(task, rows, Encodings(1_000, 1), training, tmp_path / "a.safetensors", save, {}).run()
    return aggregate.eval()


@pytest.mark.parametrize(
    "family", [pytest.param(name, marks=pytest.mark.slow if name != "mixture" else ()) for name in SEVERAL_MODES]
)
def test_the_aggregate_of_a_known_mixture_is_recovered(family: str, tmp_path: Path) -> None:
    """Mean difference of log densities under draws from the truth is KL(truth || fit), estimated: close to zero."""
    aggregate = fit(tmp_path, family, "aggregate", make_linear_gaussian(), steps=450 if family == "mixture" else 700)
    rows = Encodings(4_000, 2)
    z = rows.mean + rows.noise * torch.randn(rows.mean.shape, generator=torch.Generator().manual_seed(1))
    batch = rows.batch(torch.arange(len(rows)))
    with torch.no_grad():
        fitted = aggregate.log_prob(z, batch).numpy()
    truth = np.where(rows.code == 0, rows.log_density(z.numpy(), 0), rows.log_density(z.numpy(), 1))
    assert np.mean(truth - fitted) < 0.06
    # Unknown colour: the mixture over both.
    nothing = Batch(batch.values, {"attributes": torch.zeros_like(batch.present["attributes"])})
    with torch.no_grad():
        marginal = aggregate.log_prob(z, nothing).numpy()
    both = np.logaddexp(rows.log_density(z.numpy(), 0), rows.log_density(z.numpy(), 1)) - math.log(2)
    # Affine couplings leave bridges between three places; the best single Gaussian is 1.2 nats away.
    assert np.mean(both - marginal) < (0.4 if family == "realnvp" else 0.06)


@pytest.mark.slow
def test_target_true_finds_the_posterior_of_the_text(tmp_path: Path) -> None:
    """Given nothing the true posterior is the prior: a fitted Gaussian must become N(0, I)."""
    aggregate = fit(tmp_path, "gaussian", "true", make_linear_gaussian(), steps=250, attributes=None)
    z = aggregate.sample(None, 20_000, torch.Generator().manual_seed(0)).squeeze(1)
    torch.testing.assert_close(z.mean(0), torch.zeros(2), atol=0.06, rtol=0)
    torch.testing.assert_close(z.std(0), torch.ones(2), atol=0.06, rtol=0)


def test_the_bound_of_target_true_is_tight_at_the_true_posterior() -> None:
    """One latent-dependent attribute: E_q[log p(y|z) + log p(z) - log q] <= log p(y), by quadrature over z."""

    class Logits(torch.nn.Module):
        def forward(self, z: torch.Tensor) -> torch.Tensor:
            zero = torch.zeros_like(z[:, :1])
            return torch.cat([2 * z[:, :1], zero, zero, zero, zero], -1)

    model = make_linear_gaussian()
    model.decoders["attributes"] = Logits()
    model.modalities["attributes"] = ATTRIBUTES
    torch.manual_seed(0)
    aggregate = Aggregate(LatentSpace.flat(2), ATTRIBUTES, mmgen.densities.get("gaussian")()).double()
    batch = Batch(
        {"attributes": torch.tensor([[0, 0]]).expand(4_000, 2)},
        {"attributes": torch.tensor([[True, False]]).expand(4_000, 2)},
    )
    bound = ExactTask(aggregate, model, keep_all=1.0)(batch, None)
    assert bound.is_bound
    # p(colour = red) = E_N(0,1)[sigmoid(2 z)] = 1/2 by symmetry.
    error = bound.value.std().item() / math.sqrt(4_000)
    assert bound.value.mean().item() < math.log(0.5) + 3 * error

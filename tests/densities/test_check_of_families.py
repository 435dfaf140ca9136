"""The check of a family accepts a density with an edge, and refuses one whose constant is wrong."""

import math
from pathlib import Path

import pytest
import torch

from mmgen import testing
from mmgen.core.batch import Batch
from mmgen.posteriors import Aggregate
from mmgen.testing import densities

LAPLACIAN = '''"""A Laplace density per description."""

import math

from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.densities import Density, Family
from mmgen.latent import LatentSpace
from mmgen.likelihoods import full_precision
from mmgen.networks import dense_layers
from mmgen.objectives import CONFIG

__all__ = ["NAME"]


class _Density(Density):
    def __init__(self, latent_size: int, context_size: int) -> None:
        super().__init__()
        self.noise_size = latent_size
        self.network = dense_layers([max(1, context_size), 8, 2 * latent_size], nn.SiLU)

    def _read(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        seen = context if context is not None else next(self.parameters()).new_ones(batch, 1)
        mean, log_width = full_precision(self.network(seen)).chunk(2, -1)
        return mean, log_width.clamp(-1, 1).exp()

    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        mean, width = self._read(context, 1 if context is None else len(context))
        return (-(u - mean).abs() / width - CONSTANT - width.log()).sum(-1)

    def carry_noise(self, noise: Tensor, context: Tensor | None) -> Tensor:
        mean, width = self._read(context, noise.shape[-2])
        below = 0.5 * (1 + (noise / math.sqrt(2)).erf())
        shifted = below.clamp(1e-12, 1 - 1e-12) - 0.5
        return mean - width * shifted.sign() * (1 - 2 * shifted.abs()).log()

    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        u = self.sample(context, 1, batch, None)
        return u, u.new_ones(1, batch)


@dataclass(frozen=True, config=CONFIG)
class NAME(Family):
    """Laplace densities."""

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        return _Density(latent.size, context_size)
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "constant", "failure"),
    [
        ("Laplacian", "math.log(2)", ""),
        ("TooHigh", "math.log(1.99)", "integrates to 1.01"),
        ("Unnormalised", "0", "integrates to 4.0"),
    ],
)
def test_a_laplace_density(name: str, constant: str, failure: str, tmp_path: Path) -> None:
    file = tmp_path / f"{name.lower()}.py"
    file.write_text(LAPLACIAN.replace("NAME", name).replace("CONSTANT", constant))
    (outcome,) = testing.check_file(file)
    assert outcome.has_checks and failure in outcome.failure and bool(outcome.failure) == bool(failure), outcome


def test_the_grid_holds_the_tails_of_a_cauchy_density() -> None:
    grid, areas = densities._make_grid()
    density = (1 / (math.pi * (1 + grid.square()))).prod(-1)
    assert (density * areas).sum().item() == pytest.approx(1, abs=2e-3)


def test_weighted_draws_of_another_spread_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Aggregate.sample_reparameterised

    def wide(self: Aggregate, condition: Batch | None, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        z, weights = right(self, condition, batch)
        return self.shift + 1.5 * (z - self.shift), weights

    monkeypatch.setattr(Aggregate, "sample_reparameterised", wide)
    with pytest.raises(AssertionError, match="weighted draws have another"):
        densities.check_samples("gaussian")

"""One diagonal Gaussian per description: the baseline that shows what flexibility buys."""

from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.aggregates._base import Density, Family
from mmgen.gaussian import DiagonalGaussian
from mmgen.networks._base import mlp
from mmgen.objectives._base import CONFIG

__all__ = ["Gaussian"]


class ConditionalGaussian(Density):
    """A network from the description to mean and log standard deviation."""

    def __init__(self, latent_size: int, context_size: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        # Without a context the network sees a constant, so that its biases are the parameters.
        self.network = mlp([max(1, context_size), *hidden, 2 * latent_size], nn.SiLU)

    def _distribution(self, context: Tensor | None, batch: int) -> DiagonalGaussian:
        seen = context if context is not None else next(self.parameters()).new_ones(batch, 1)
        mean, log_sd = self.network(seen).chunk(2, -1)
        return DiagonalGaussian(mean, log_sd.clamp(-7, 4))

    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        return self._distribution(context, 1 if context is None else len(context)).log_prob(u)

    def sample(self, context: Tensor | None, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        return self._distribution(context, batch).sample(generator, (n,))

    def reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        u = self._distribution(context, batch).sample(None, (1,))
        return u, u.new_ones(1, batch)


@dataclass(frozen=True, config=CONFIG)
class Gaussian(Family):
    """The family of most unimodal inference networks."""

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (256, 256)
    """Hidden layers of the network that gives mean and standard deviation."""

    def density(self, latent_size: int, context_size: int) -> Density:
        return ConditionalGaussian(latent_size, context_size, self.hidden)

"""A diagonal Gaussian per description: the baseline for more flexible families."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.densities._base import Density, Family
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.networks import dense_layers
from mmgen.objectives import CONFIG

__all__ = ["Gaussian"]


class ConditionalGaussian(Density):
    """A diagonal Gaussian; a network computes its mean and log standard deviation from the context."""

    def __init__(self, latent_size: int, context_size: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.noise_size = latent_size
        # Without a context the network sees a constant, so that its biases are the parameters.
        self.network = dense_layers([max(1, context_size), *hidden, 2 * latent_size], nn.SiLU)

    def distribution(self, context: Tensor | None, batch: int) -> DiagonalGaussian:
        """Return q(u | context) as a diagonal Gaussian [B, D]."""
        seen = context if context is not None else next(self.network.parameters()).new_ones(batch, 1)
        mean, log_sd = self.network(seen).chunk(2, -1)
        return DiagonalGaussian(mean, log_sd.clamp(-7, 4))

    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        return self.distribution(context, 1 if context is None else len(context)).log_prob(u)

    def carry_noise(self, noise: Tensor, context: Tensor | None) -> Tensor:
        q = self.distribution(context, noise.shape[-2])
        return q.mean + q.sd * noise

    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        u = self.distribution(context, batch).sample(None, (1,))
        return u, u.new_ones(1, batch)


@dataclass(frozen=True, config=CONFIG)
class Gaussian(Family):
    """Diagonal Gaussians; a network computes mean and log standard deviation."""

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (256, 256)
    """Hidden layers of the network that gives mean and standard deviation."""

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        return ConditionalGaussian(latent.size, context_size, self.hidden)

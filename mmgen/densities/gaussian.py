"""A diagonal Gaussian per description: the baseline for more flexible families."""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.densities._base import Density, Family
from mmgen.densities._conditional_gaussian import ConditionalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.objectives import CONFIG

__all__ = ["Gaussian"]


@dataclass(frozen=True, config=CONFIG)
class Gaussian(Family):
    """Diagonal Gaussians; a network computes mean and log standard deviation."""

    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (256, 256)
    """Hidden layers of the network that gives mean and standard deviation."""

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        return ConditionalGaussian(latent.size, context_size, self.hidden)

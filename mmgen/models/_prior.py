"""A prior p(z | y) that is learned with a conditional model: one Gaussian of each description y, or a mixture.

References:
    Learning Structured Output Representation using Deep Conditional Generative Models (Sohn, Lee, Yan, 2015), Eq. 4
"""

from typing import Annotated

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.inference import gaussian_of_output
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.mixture import GaussianMixture
from mmgen.networks import dense_layers


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class PriorNetwork:
    """Settings of a learned prior p(z | y)."""

    components: Annotated[int, Field(ge=1)] = 1
    """Diagonal Gaussians that it mixes; with 1 it is the prior of Sohn et al. (2015)."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (256, 256)
    """Hidden layers of the network from a description to the parameters of the prior."""


class LearnedPrior(nn.Module):
    """Network from the features of descriptions [B, F], with marks of what is known, to their p(z | y) [B, D]."""

    def __init__(self, latent_size: int, described: int, settings: PriorNetwork) -> None:
        super().__init__()
        self.components = count = settings.components
        self.network = dense_layers([described, *settings.hidden, count * (2 * latent_size + (count > 1))], nn.SiLU)
        # Components start spread out, as p(z) is: equal ones would get equal gradients for ever.
        self.spread = nn.Parameter(torch.randn(count, 1, latent_size)) if count > 1 else None

    def forward(self, features: Tensor) -> DiagonalGaussian | GaussianMixture:
        output = self.network(features.to(next(self.parameters()).dtype))
        if self.spread is None:
            return gaussian_of_output(output)
        each = output.unflatten(-1, (self.components, -1)).movedim(-2, 0)  # [K, B, 2 D + 1]
        parts = gaussian_of_output(each[..., 1:])
        parts = DiagonalGaussian(parts.mean + self.spread, parts.log_sd)
        return GaussianMixture(parts, each[..., 0].to(parts.mean.dtype).log_softmax(0))

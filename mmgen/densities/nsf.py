"""Neural spline flow: couplings by monotonic rational-quadratic splines.

References:
    Neural Spline Flows (Durkan, Bekasov, Murray, Papamakarios, 2019), arXiv:1906.04032
"""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.densities._base import Density, Family
from mmgen.densities._flow import CouplingFlow, spline_couplings
from mmgen.latent.space import LatentSpace
from mmgen.objectives import CONFIG

__all__ = ["Nsf"]


@dataclass(frozen=True, config=CONFIG)
class Nsf(Family):
    """Neural spline flows: more flexible per layer than Real NVP, and slower."""

    steps: Annotated[int, Field(ge=1)] = 3
    """Flow steps; each updates both halves."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (128, 128)
    """Hidden layers of the network of each coupling."""
    bins: Annotated[int, Field(ge=2)] = 8
    """Spline segments."""

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        layers = spline_couplings(latent.size, context_size, self.steps, self.hidden, self.bins)
        return CouplingFlow(latent.size, layers)

"""Real NVP with the description fed to every coupling: CK's flow.

References:
    Density estimation using Real NVP (Dinh, Sohl-Dickstein, Bengio, 2017), arXiv:1605.08803
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 5.1.1
"""

from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.densities._base import Density, Family
from mmgen.densities._flow import CouplingFlow, affine_couplings
from mmgen.latent.space import LatentSpace
from mmgen.objectives import CONFIG

__all__ = ["Realnvp"]


@dataclass(frozen=True, config=CONFIG)
class Realnvp(Family):
    """Affine coupling flows (Real NVP); a step updates both halves of the latents (CK Eq. 7-8)."""

    steps: Annotated[int, Field(ge=1)] = 6
    """Flow steps (CK: six)."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (128, 128)
    """Hidden layers of the network of each coupling."""

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        return CouplingFlow(latent.size, affine_couplings(latent.size, context_size, self.steps, self.hidden))

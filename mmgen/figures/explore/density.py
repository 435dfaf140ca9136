"""Clouds of z on the map: where the draws of a posterior lie, from which the page's script estimates their density."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator
from mmgen.figures.session import Source
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.encodings import Projection
from mmgen.generation.latents import draw_latents
from mmgen.posteriors import Guided

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel

__all__ = ["AROUND", "CANDIDATES", "DRAWS", "MapSquare", "cloud_bytes", "compute_belief", "compute_clouds"]

DRAWS = 40
"""Number of points in the cloud of one description."""
AROUND = 3
"""Side of the square in which points are kept, as a multiple of the map's side."""
CANDIDATES = 160
"""Number of draws among which guidance by p(words|z) chooses the points."""
_BELIEVED = 160
"""Number of points of what the model believes."""


@dataclass(frozen=True)
class MapSquare:
    """Square of a plane through z that the map shows, centred on zero.

    Attributes:
        projection: Projection from z to the plane.
        reach: Half the side, in units of z.
    """

    projection: Projection
    reach: float

    @property
    def exact(self) -> bool:
        """Whether the plane is the whole of z."""
        return self.projection.axes.shape[1] == 2

    def cell_centres(self, cells: int) -> Tensor:
        """Return z [cells * cells, D] at the centres of the map's cells, row by row from the bottom left."""
        step = 2 * self.reach / cells
        line = torch.linspace(step / 2 - self.reach, self.reach - step / 2, cells)
        up, across = torch.meshgrid(line, line, indexing="ij")
        return self.projection.to_latents(torch.stack([across, up], -1).reshape(-1, 2).to(self.projection.axes))

    def project(self, z: Tensor) -> np.ndarray:
        """Project z [n, D] to positions on the map, [n, 2], from -1 to 1."""
        return (self.projection(z.cpu().float()) / self.reach).numpy()


def cloud_bytes(places: np.ndarray) -> np.ndarray:
    """Return positions [n, 2] as bytes, 0 to 255 across the square of :data:`AROUND`; what lies farther is at its edge.

    Example:
        >>> cloud_bytes(np.array([[0.0, -3.0], [1e9, 1.0]])).tolist()
        [[128, 0], [255, 170]]
    """
    return np.rint((places.clip(-AROUND, AROUND) / AROUND + 1) / 2 * 255).astype(np.uint8)


def _log_guidance(loaded: "TrainedModel", posterior: str, z: Tensor, descriptions: Descriptions, row: int) -> Tensor:
    """Return the log weights [K] by which guidance multiplies the density at z [K, D], up to a constant."""
    guided = loaded.guided_posterior(posterior).condition_on(descriptions.expression(row))
    assert isinstance(guided, Guided)
    return guided.log_weight(z, descriptions.batch(loaded, row))


@torch.no_grad()
def compute_clouds(source: Source, descriptions: Descriptions, chart: MapSquare, seed: int) -> list[np.ndarray]:
    """Draw z for each of Q descriptions and return their places on the map, uint8 [DRAWS, 2] each.

    Guidance by p(words|z) chooses its points among draws of its base, with its weights.
    """
    loaded, posterior, found = source.loaded, source.posterior, []
    weighs = bool(loaded.guidance) and not loaded.guidance.steers
    base = loaded.guided(0.0) if weighs else loaded
    for row in range(len(descriptions)):
        z = draw_latents(base, posterior, descriptions[row : row + 1], CANDIDATES if weighs else DRAWS, seed)[0]
        if weighs:
            log_weights = _log_guidance(loaded, posterior, z, descriptions, row).double()
            weights = (log_weights - log_weights.max()).exp().cpu().numpy()
            generator = numpy_generator(seed, "cloud", *descriptions.stream_key(row))
            z = z[torch.from_numpy(generator.choice(len(z), DRAWS, p=weights / weights.sum()))]
        found.append(cloud_bytes(chart.project(z)))
    return found


def compute_belief(
    loaded: "TrainedModel", descriptions: Descriptions, chart: MapSquare, seed: int
) -> np.ndarray | None:
    """Return the places on the map of draws from p(z|words), which the decoders imply, for one description.

    It is the prior guided with weight 1; None if the model decodes no words of the description.
    """
    try:
        believed = loaded.completing(False) if loaded.attributes is not None else loaded
        z = draw_latents(believed.guided(1.0), "prior", descriptions, _BELIEVED, seed)[0]
    except UsageError:
        return None
    return cloud_bytes(chart.project(z))

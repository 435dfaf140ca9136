"""Densities of posteriors on the map of z: exact for a z of two dimensions, else estimated from projected draws."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.figures.session import Source
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.encodings import Projection
from mmgen.generation.latents import draw_latents
from mmgen.posteriors import Guided

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel

__all__ = [
    "CELLS", "DRAWS", "MapSquare", "split_middle", "compute_belief", "compute_densities", "contour_bytes",
    "smooth_points",
]  # fmt: skip

CELLS = 31
"""Number of cells along each side of a density; pages draw it smoothly."""
DRAWS = 160
"""Number of draws of z behind an estimated density."""
_AROUND = 3
"""Side of the square in which densities are computed, as a multiple of the map's side."""
_COARSE = 9
"""Number of coarse cells along a side of the map, for densities outside of it."""
_SMALLEST = 0.6
"""Smallest standard deviation of smoothing, in cells."""


@dataclass(frozen=True)
class MapSquare:
    """Square of a plane through z that the map shows, centred on zero.

    Attributes:
        projection: Projection from z to the plane.
        reach: Half the side, in units of z.
        exact: Whether the plane is the whole of z.
    """

    projection: Projection
    reach: float
    exact: bool

    def cell_centres(self, cells: int, times: int = 1) -> Tensor:
        """Return z [cells * cells, D] at the centres of the map's cells, row by row from the bottom left.

        Args:
            cells: Number of cells along each side.
            times: Side of the square, as a multiple of the chart's side.
        """
        step = 2 * times * self.reach / cells
        line = torch.linspace(step / 2 - times * self.reach, times * self.reach - step / 2, cells)
        up, across = torch.meshgrid(line, line, indexing="ij")
        return self.projection.to_latents(torch.stack([across, up], -1).reshape(-1, 2).to(self.projection.axes))

    def project(self, z: Tensor) -> np.ndarray:
        """Project z [n, D] to positions on the map, [n, 2], from -1 to 1."""
        return (self.projection(z.cpu().float()) / self.reach).numpy()


def smooth_points(places: np.ndarray, weights: np.ndarray, cells: int = CELLS) -> np.ndarray:
    """Estimate the mass of each cell of the map from weighted positions [n, 2] by kernels; row 0 is the bottom.

    The width of kernels follows Scott's rule with the effective number of draws, sd * n^(-1/6) along each axis, at most
    the side of the square.

    Returns:
        Mass [3 cells, 3 cells], with the chart in the middle; the rest of the mass, up to 1, lies farther away.
    """
    weights = weights / weights.sum()
    centre = weights @ places
    sd = np.sqrt(weights @ (places - centre) ** 2)
    width = sd * np.square(weights).sum() ** (1 / 6) * cells / 2
    edges = np.linspace(-_AROUND, _AROUND, _AROUND * cells + 1)
    found, _, _ = np.histogram2d(places[:, 1], places[:, 0], bins=(edges, edges), weights=weights)
    return np.asarray(gaussian_filter(found, np.clip(width[::-1], _SMALLEST, len(found)), mode="constant"))


def split_middle(around: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split a grid [3 n, 3 n] around the map into its middle [n, n], which is the map, and the rest, flat [8 n n]."""
    n = len(around) // _AROUND
    middle = np.zeros(around.shape, bool)
    middle[n : 2 * n, n : 2 * n] = True
    return around[middle].reshape(n, n), around[~middle]


def contour_bytes(
    density: np.ndarray, outside: np.ndarray | None = None, area: float = 1.0, total: float = 0.0
) -> np.ndarray:
    """Return, for each cell, 1 minus the mass of all denser cells, as a byte: cells above 127 hold half of the mass.

    Args:
        density: Mass of each cell of the chart.
        outside: Density of cells outside the chart, as mass per area of a cell of the chart.
        area: Area of a cell outside the chart, in cells of the chart.
        total: Total mass; by default that of these cells.

    Example:
        >>> contour_bytes(np.array([[0.0, 0.1], [0.3, 0.6]])).tolist()
        [[0, 26], [102, 255]]
        >>> contour_bytes(np.array([[0.0, 0.1], [0.3, 0.6]]), np.array([9.0])).tolist()  # nine tenths are elsewhere
        [[0, 3], [10, 26]]
    """
    outer = np.zeros(0) if outside is None else outside
    flat = np.concatenate([density.ravel(), outer])
    mass = flat * np.repeat([1.0, area], [density.size, len(outer)])
    mass = mass / max(total or float(mass.sum()), 1e-300)
    order = np.argsort(-flat, kind="stable")
    before = np.cumsum(mass[order]) - mass[order]
    shares = np.empty_like(flat)
    shares[order] = np.where(flat[order] > 0, 1 - before, 0)
    return np.rint(255 * shares[: density.size].clip(0, 1)).astype(np.uint8).reshape(density.shape)


def _log_guidance(loaded: "TrainedModel", posterior: str, z: Tensor, descriptions: Descriptions, row: int) -> Tensor:
    """Return the log weights [K] by which guidance multiplies the density at z [K, D], up to a constant."""
    guided = loaded.guided_posterior(posterior).condition_on(descriptions.expression(row))
    assert isinstance(guided, Guided)
    return guided.log_weight(z, descriptions.batch(loaded, row))


@torch.no_grad()
def compute_densities(
    source: Source,
    descriptions: Descriptions,
    chart: MapSquare,
    seed: int,
    cache: dict[tuple[str, str, tuple[int | str, ...]], Tensor],
) -> list[tuple[np.ndarray, float]]:
    """Compute for each of Q descriptions the density on the map, as :func:`contour_bytes`, and the share off it."""
    loaded, posterior, found = source.loaded, source.posterior, []
    weighs = bool(loaded.guidance) and not loaded.guidance.steers  # a flow has the density itself
    base = loaded.guided(0.0) if weighs else loaded
    grid = None
    if chart.exact:
        coarse = _AROUND * _COARSE
        _, rest = split_middle(np.arange(coarse**2).reshape(coarse, coarse))
        grid = torch.cat([chart.cell_centres(CELLS), chart.cell_centres(coarse, _AROUND)[rest]]).to(loaded.device)
    for row in range(len(descriptions)):
        if grid is not None:
            z = grid
            weighed = base.posteriors[posterior].log_prob(z[:, None], descriptions.batch(base, row))[:, 0].double()
        else:
            key = (str(source.path), posterior, descriptions.stream_key(row))
            if key not in cache:
                cache[key] = draw_latents(base, posterior, descriptions[row : row + 1], DRAWS, seed)[0]
            z = cache[key]
            weighed = torch.zeros(len(z), dtype=torch.float64, device=z.device)
        if weighs:
            weighed = weighed + _log_guidance(loaded, posterior, z, descriptions, row)
        weights = (weighed - weighed.max()).exp().cpu().numpy()
        if grid is not None:
            density, beside, area = (
                weights[: CELLS**2].reshape(CELLS, CELLS),
                weights[CELLS**2 :],
                (CELLS / _COARSE) ** 2,
            )
            total = float(density.sum() + area * beside.sum())
            outside = area * float(beside.sum()) / total
        else:
            places = chart.project(z)
            (density, beside), area, total = split_middle(smooth_points(places, weights)), 1.0, 1.0
            outside = float(weights[(np.abs(places) > 1).any(1)].sum() / weights.sum())
        found.append((contour_bytes(density, beside, area, total)[..., None], outside))
    return found


def compute_belief(
    loaded: "TrainedModel", descriptions: Descriptions, chart: MapSquare, seed: int
) -> tuple[np.ndarray, float] | None:
    """Estimate the density of p(z|words), which the decoders imply, for one description on the map.

    It is the prior guided with weight 1. Returns the density as :func:`contour_bytes` and the share off the map; None
    if the model decodes no words of the description.
    """
    try:
        guided = loaded.guided(1.0)
        z = draw_latents(guided, "prior", descriptions, DRAWS, seed)[0]
    except UsageError:
        return None
    places = chart.project(z)
    density, beside = split_middle(smooth_points(places, np.ones(len(places))))
    return contour_bytes(density, beside, 1.0, 1.0)[..., None], float((np.abs(places) > 1).any(1).mean())

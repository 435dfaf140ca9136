"""Where a posterior lies on the map, for every description: exact in two dimensions, else of projected draws."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from mmgen.figures.session import Source
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.encodings import Projection
from mmgen.generation.latents import draw_latents
from mmgen.posteriors import Guided

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel

__all__ = ["CELLS", "DRAWS", "Chart", "apart", "densities", "inside", "smoothed"]

CELLS = 31
"""Cells along each side of a density; pages draw it smoothly."""
DRAWS = 160
"""Draws of z that a density in a plane of more dimensions is estimated from."""
_AROUND = 3
"""Times as wide as the map is the square about it in which a density is looked at too."""
_COARSE = 9
"""Cells along each side of the map, and of each of the eight squares beside it, where grids look outside of it."""
_SMALLEST = 0.6
"""Cells of smoothing at least."""


@dataclass(frozen=True)
class Chart:
    """A square of the plane, centred on zero.

    Attributes:
        projection: From z to the plane.
        reach: Half the side, in units of z.
        exact: Whether the plane is all of z.
    """

    projection: Projection
    reach: float
    exact: bool

    def centres(self, cells: int, times: int = 1) -> Tensor:
        """z [cells * cells, D] at the middles of cells, row by row from the bottom, each from the left.

        Args:
            cells: Along each side.
            times: How many times as wide as the chart the square is.
        """
        step = 2 * times * self.reach / cells
        line = torch.linspace(step / 2 - times * self.reach, times * self.reach - step / 2, cells)
        up, across = torch.meshgrid(line, line, indexing="ij")
        return self.projection.back(torch.stack([across, up], -1).reshape(-1, 2).to(self.projection.axes))

    def places(self, z: Tensor) -> np.ndarray:
        """z [n, D] -> where they are on the chart, [n, 2], -1 to 1 from left to right and from bottom to top."""
        return (self.projection(z.cpu().float()) / self.reach).numpy()


def smoothed(places: np.ndarray, weights: np.ndarray, cells: int = CELLS) -> np.ndarray:
    """A density of weighted places [n, 2] by Gaussian kernels of Scott's width: the mass of each cell; row 0 below.

    Scott's rule with the effective number of draws: sd * n^(-1/6), along each axis, as wide as the square at most: one
    draw of a model that has hardly been trained may lie anywhere.

    Returns:
        [3 cells, 3 cells], of which those in the middle are the chart; what is missing from 1 lies farther away.
    """
    weights = weights / weights.sum()
    centre = weights @ places
    sd = np.sqrt(weights @ (places - centre) ** 2)
    width = sd * np.square(weights).sum() ** (1 / 6) * cells / 2
    edges = np.linspace(-_AROUND, _AROUND, _AROUND * cells + 1)
    found, _, _ = np.histogram2d(places[:, 1], places[:, 0], bins=(edges, edges), weights=weights)
    return np.asarray(gaussian_filter(found, np.clip(width[::-1], _SMALLEST, len(found)), mode="constant"))


def apart(around: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middle ninth of a grid [3 n, 3 n], which is the chart, as [n, n], and all else, flat."""
    n = len(around) // _AROUND
    middle = np.zeros(around.shape, bool)
    middle[n : 2 * n, n : 2 * n] = True
    return around[middle].reshape(n, n), around[~middle]


def inside(density: np.ndarray, beside: np.ndarray | None = None, area: float = 1.0, total: float = 0.0) -> np.ndarray:
    """For each cell 1 minus the mass of the smallest region that it bounds, as bytes: half the mass is above 127.

    Args:
        density: Mass of each cell of the chart.
        beside: Mass of cells beside the chart, each for an area as large as a cell of the chart.
        area: How many cells of the chart one beside it is as large as.
        total: All mass; by default that of these cells.

    Example:
        >>> inside(np.array([[0.0, 0.1], [0.3, 0.6]])).tolist()
        [[0, 26], [102, 255]]
        >>> inside(np.array([[0.0, 0.1], [0.3, 0.6]]), np.array([9.0])).tolist()  # nine tenths are elsewhere
        [[0, 3], [10, 26]]
    """
    outer = np.zeros(0) if beside is None else beside
    flat = np.concatenate([density.ravel(), outer])
    mass = flat * np.repeat([1.0, area], [density.size, len(outer)])
    mass = mass / max(total or float(mass.sum()), 1e-300)
    order = np.argsort(-flat, kind="stable")
    before = np.cumsum(mass[order]) - mass[order]
    shares = np.empty_like(flat)
    shares[order] = np.where(flat[order] > 0, 1 - before, 0)
    return np.rint(255 * shares[: density.size].clip(0, 1)).astype(np.uint8).reshape(density.shape)


def _log_guidance(loaded: "TrainedModel", posterior: str, z: Tensor, asked: Descriptions, row: int) -> Tensor:
    """What guidance adds to a log density [K] of z [K, D], up to a constant."""
    guided = loaded.guided_posterior(posterior).answering(asked.expression(row))
    assert isinstance(guided, Guided)
    return guided.log_weight(z, asked.batch(loaded, row))


@torch.no_grad()
def densities(
    source: Source,
    asked: Descriptions,
    chart: Chart,
    seed: int,
    known: dict[tuple[str, str, tuple[int | str, ...]], Tensor],
) -> list[tuple[np.ndarray, float]]:
    """Bytes of :func:`inside` uint8 [CELLS, CELLS, 1] of one posterior, row 0 the bottom of the map, and the share of
    it that lies beside the map, for each of Q descriptions.

    A guided posterior has the draws of what it guides, weighed as guidance does. Shares are of all of it: in two
    dimensions of a square three times as wide as the map, else of all draws.

    Args:
        source: The posterior.
        asked: The Q descriptions.
        chart: The map.
        seed: Seed of the draws.
        known: Draws by file, posterior and description: what a guided posterior shares with its base.
    """
    loaded, posterior, found = source.loaded, source.posterior, []
    base = loaded.guided(0.0) if loaded.guidance else loaded
    grid = None
    if chart.exact:
        coarse = _AROUND * _COARSE
        _, rest = apart(np.arange(coarse**2).reshape(coarse, coarse))
        grid = torch.cat([chart.centres(CELLS), chart.centres(coarse, _AROUND)[rest]]).to(loaded.device)
    for row in range(len(asked)):
        if grid is not None:
            z = grid
            weighed = base.posteriors[posterior].log_prob(z[:, None], asked.batch(base, row))[:, 0].double()
        else:
            key = (str(source.path), posterior, asked.key(row))
            if key not in known:
                known[key] = draw_latents(base, posterior, asked[row : row + 1], DRAWS, seed)[0]
            z = known[key]
            weighed = torch.zeros(len(z), dtype=torch.float64, device=z.device)
        if loaded.guidance:
            weighed = weighed + _log_guidance(loaded, posterior, z, asked, row)
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
            places = chart.places(z)
            (density, beside), area, total = apart(smoothed(places, weights)), 1.0, 1.0
            outside = float(weights[(np.abs(places) > 1).any(1)].sum() / weights.sum())
        found.append((inside(density, beside, area, total)[..., None], outside))
    return found

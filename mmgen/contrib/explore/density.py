"""Clouds of z on the map: where the draws of a posterior lie, from which the page's script estimates their density."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mmgen.contrib.explore.networks import BITS, Network, round_network, trace_network
from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.densities.rectified_flow import RectifiedFlowDensity
from mmgen.figures.session import Source
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.encodings import Projection
from mmgen.generation.latents import draw_latents
from mmgen.modalities.attributes import Attributes
from mmgen.posteriors import CFG, Aggregate, Fitted, Guidance, Guided

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel


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


_CHECKED = 96
"""Number of draws on which a rounded flow is compared with the model's."""
_LEVELS = 1.6
"""Largest difference of a pixel of these draws before it is rounded to one of 256 levels; 2 could be three."""


def find_flow(source: Source) -> Aggregate | None:
    """Return the fit that a posterior draws from if a page can do so too: a rectified flow, plain or guided by cfg."""
    fitted = source.loaded.posteriors[source.posterior].unguided
    if not isinstance(fitted, Fitted) or source.loaded.guidance.method not in ("", CFG):
        return None
    if source.loaded.guidance and not source.loaded.guidance.method:
        return None
    fit = fitted.aggregate
    simple = isinstance(fit.density, RectifiedFlowDensity) and isinstance(fit.condition, Attributes)
    return fit if simple and fit.layers == "all" and fit.networks is None and not fit.further else None


@torch.no_grad()
def trace_flow(
    fit: Aggregate,
    guidances: Sequence[Guidance],
    codes: Tensor,
    decode: Callable[[Tensor], Tensor],
    most: int,
    seed: int,
) -> dict[str, Any] | None:
    """Trace a flow for a page, in the fewest bits with which its draws decode to the model's pictures.

    Args:
        fit: The fit, see :func:`find_flow`.
        guidances: Guidance of the posteriors that draw from it; an empty one for none.
        codes: Whole descriptions on which it is checked, uint8 [Q, A], 255 where unknown.
        decode: From z [n, D] to pixels.
        most: Largest size of the weights in bytes.
        seed: Seed of the draws.

    Raises:
        UnknownOperation: A page cannot compute an operation of the network.
    """
    density, condition = fit.density, fit.condition
    assert isinstance(density, RectifiedFlowDensity) and isinstance(condition, Attributes)
    network, size = density.network, fit.latent.size
    generator = torch_generator(seed, "live flow", device="cpu")
    chosen = codes[torch.randint(len(codes), (_CHECKED,), generator=generator)].long()
    present = chosen != 255
    context = condition.describe(chosen.where(present, 0), present).to(fit.shift.dtype)
    noise = torch.randn(_CHECKED, size, generator=generator)

    def velocity(inputs: Tensor) -> Tensor:
        """Compute velocities [B, D] from points, times and contexts side by side, [B, D + 1 + X]."""
        result: Tensor = network(inputs[:, :size], inputs[:, size], network.condition(inputs[:, size + 1 :]))
        return result

    def draw(function: Callable[[Tensor], Tensor], guidance: Guidance) -> Tensor:
        def guided(u: Tensor, t: float) -> Tensor:
            time = torch.full((len(u), 1), t)
            along = function(torch.cat([u, time, context], 1))
            if not guidance or not guidance.start <= t <= guidance.end:
                return along
            blank = function(torch.cat([u, time, torch.zeros_like(context)], 1))
            return (1 + guidance.weight) * along - guidance.weight * blank

        return decode(fit.shift + fit.scale * density.carry(guided, noise))

    expected = [draw(velocity, guidance) for guidance in guidances]

    def is_close(rounded: Network) -> bool:
        pairs = ((draw(rounded, guidance), like) for guidance, like in zip(guidances, expected, strict=True))
        return all(bool((found - like).abs().max() <= _LEVELS / 255) for found, like in pairs)

    example = torch.cat([noise[:1], torch.full((1, 1), 0.5), context[:1]], 1)
    rounded, _ = round_network(trace_network(velocity, example), is_close, most, BITS[3:])
    if rounded is None:
        return None
    shift, scale = fit.shift.tolist(), fit.scale.tolist()
    return {"network": rounded.to_json(), "steps": density.family.steps, "shift": shift, "scale": scale}

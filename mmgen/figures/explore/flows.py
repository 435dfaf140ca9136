"""Rectified flows that a page draws from itself: the velocity as a network, and what turns its end points into z."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mmgen.core.seeding import torch_generator
from mmgen.densities.rectified_flow import RectifiedFlowDensity
from mmgen.figures.explore.networks import BITS, Network, round_network, trace_network
from mmgen.figures.session import Source
from mmgen.modalities.attributes import Attributes
from mmgen.posteriors import CFG, Aggregate, Fitted, Guidance

__all__ = ["find_flow", "trace_flow"]

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
    return fit if simple and fit.layers == "all" and fit.networks is None else None


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

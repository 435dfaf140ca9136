r"""Rectified flow: straight paths from noise to latents, and a network for their velocity.

With noise :math:`u_0 \sim N(0, 1)`, a draw u of the density to learn and :math:`u_t = (1 - t) u_0 + t u`, the network
learns :math:`v(u_t, t, y) = E[u - u_0 | u_t, y]`. The differential equation du/dt = v carries N(0, 1) at t = 0 to
the density at t = 1. It is solved forwards to draw, and backwards with the trace of dv/du for the log density:

.. math:: \log q(u | y) = \log N(u_0; 0, 1) - \int_0^1 \mathrm{tr} \frac{\partial v}{\partial u}(u_t, t, y) \, dt

A share of the descriptions is hidden in training, so that the network knows the velocity v_0 without a description.
Classifier-free guidance of weight s moves along v_0 + (1 + s) (v - v_0). Its end points have a density too, that of the
guided field; it is not q(u | y) p(y | u)^s.

A reader's log weight r(u), such as w log p(y | u), pulls the path towards draws q(u) exp(r(u)). Their velocity is

.. math:: v + \frac{1 - t}{t} \nabla_{u_t} \log E[\exp r(u) | u_t]

where u given u_t is taken as a Gaussian around u_t + (1 - t) v with the variance (1 - t)^2 / (t^2 + (1 - t)^2) that it
has under N(0, 1), and the expectation as the mean over a few fixed points of it. Draws then follow the tilted density
roughly; what they have exactly is the density of this field.

References:
    Flow Straight and Fast (Liu, Gong, Liu, 2023), arXiv:2209.03003
    Flow Matching for Generative Modeling (Lipman et al., 2023), arXiv:2210.02747
    Scaling Rectified Flow Transformers (Esser et al., 2024), arXiv:2403.03206 (distribution of times)
    Classifier-Free Diffusion Guidance (Ho, Salimans, 2022), arXiv:2207.12598
    Training-free Linear Image Inverses via Flows (Pokle et al., 2024), arXiv:2310.04432 (a reader's gradient)
    Loss-Guided Diffusion Models for Plug-and-Play Controllable Generation (Song et al., 2023) (mean over a Gaussian)
    FFJORD (Grathwohl et al., 2019), arXiv:1810.01367 (density and its estimate)
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from mmgen.core.errors import SettingsError
from mmgen.densities._base import Density, Family, SteeredDensity, Steering
from mmgen.densities._velocity import GridVelocityNetwork, VectorVelocityNetwork, VelocityNetwork
from mmgen.latent.space import LatentSpace
from mmgen.likelihoods import full_precision
from mmgen.objectives import CONFIG

__all__ = ["RectifiedFlow"]

_EXACT = 64
"""Latents up to which the trace is exact by default: one product with the Jacobian for each of them."""
_OVER_VECTORS, _OVER_GRIDS = (32, 8), (8, 16)
"""Steps of a log density and probes of its trace where they are left out; over a grid the probes' error is twenty times
that of eight steps."""
_ENTRIES = 2**22
"""Entries of a hidden layer that go through the network at once, to draw or for a trace."""
_TOKENS = 64
"""Tokens of a grid at most where the side of its patches is left out."""
_HEAD = 32
"""Width of a head of attention where their number is left out."""
_EARLIEST = 0.05
"""Time before which the weight (1 - t) / t of a reader's gradient stays as it is then, since it has no bound."""
_SPREAD = 4
"""Antithetic pairs over which the likelihood of the predicted end point is averaged."""

Velocity = Callable[[Tensor, float], Tensor]
Part = tuple[float, float, Velocity]
"""A part of the path: its later and earlier time, and the velocity between them."""


class RectifiedFlowDensity(SteeredDensity):
    """The density of points that a learned velocity field carries from Gaussian noise at t = 0 to t = 1.

    Args:
        latent: Space of the points.
        context_size: X; 0 for none.
        family: Settings.
    """

    def __init__(self, latent: LatentSpace, context_size: int, family: "RectifiedFlow") -> None:
        super().__init__()
        self.latent_size, self.noise_size, self.family = latent.size, latent.size, family
        self.network = family.build_network(latent, context_size)
        steps, probes = _OVER_VECTORS if latent.single_grid is None else _OVER_GRIDS
        self.density_steps, self.probes = family.density_steps or steps, family.probes or probes

    def training_value(self, u: Tensor, context: Tensor | None) -> Tensor:
        """Compute minus the mean squared error of the velocity [..., B], at random times.

        Times are stratified over the examples. In evaluation each example is seen at several times.
        """
        if not self.training:
            u = u.expand(self.network.validation_times, *u.shape)
        elif context is not None:
            hidden = torch.rand(len(context), 1, device=context.device) < self.family.unconditional
            context = context.masked_fill(hidden, 0)
        count = u[..., 0].numel()
        quantiles = (torch.randperm(count, device=u.device) + torch.rand(count, device=u.device)) / count
        t = torch.special.ndtri(quantiles.clamp(1e-6, 1 - 1e-6)).sigmoid().reshape(u.shape[:-1]).to(u.dtype)
        noise = torch.randn_like(u)
        moved = (1 - t.unsqueeze(-1)) * noise + t.unsqueeze(-1) * u
        velocity = full_precision(self.network(moved, t, self.network.condition(context)))
        value = -(velocity - (u - noise)).square().mean(-1)
        return value if self.training else value.mean(0)

    def sample(self, context: Tensor | None, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        return self.steered_sample(Steering(((1.0, context),)), n, batch, generator)

    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        u = self.sample(context, 1, batch, None)
        return u, u.new_ones(1, batch)

    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        return self.log_prob_with_error(u, context)[0]

    def log_prob_with_error(self, u: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return self.steered_log_prob(u, Steering(((1.0, context),)))

    @property
    def log_prob_cost(self) -> float:
        directions = self.probes if self.is_estimated else self.latent_size
        return super().log_prob_cost * self.network.places * 4 * self.density_steps * (1 + directions)

    @property
    def knows_no_context(self) -> bool:
        return self.family.unconditional > 0

    def steer_noise(self, noise: Tensor, steering: Steering) -> Tensor:
        return self.carry(self._velocity(steering), noise)

    def steered_sample(self, steering: Steering, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        like = self.network.last.weight
        noise = torch.randn(n, batch, self.latent_size, generator=generator, device=like.device, dtype=like.dtype)
        (drawn,) = self._in_pieces(lambda u, own: (self.steer_noise(u, own),), noise, steering)
        return drawn

    def steered_log_prob(self, u: Tensor, steering: Steering) -> tuple[Tensor, Tensor | None]:
        value, *errors = self._in_pieces(lambda u, own: self._density(self._smooth_parts(own), u), u, steering)
        return value, errors[0] if errors else None

    def _in_pieces(
        self, function: Callable[[Tensor, Steering], tuple[Tensor, ...]], u: Tensor, steering: Steering
    ) -> tuple[Tensor, ...]:
        """Apply a function of points [N, B, D] and contexts [B, X] to pieces of both, which bounds its memory."""
        batch = max([u.shape[-2], *(len(context) for _, context in steering.terms if context is not None)])
        u = u.expand(*u.shape[:-2], batch, u.shape[-1])
        points = u.reshape(-1, batch, u.shape[-1])
        most = max(1, _ENTRIES // self.network.largest_layer // (1 if steering.reader is None else 2 * _SPREAD))
        columns = min(batch, max(1, most // len(points)))
        rows = max(1, most // columns)
        parts = []
        for first in range(0, batch, columns):
            own = steering.of_descriptions(slice(first, first + columns))
            pieces = [function(piece, own) for piece in points[:, first : first + columns].split(rows)]
            parts.append([torch.cat(each) for each in zip(*pieces, strict=True)])
        joined = (torch.cat(each, 1) for each in zip(*parts, strict=True))
        return tuple(each.reshape(*u.shape[:-1], *each.shape[2:]) for each in joined)

    def _velocity(self, steering: Steering) -> Velocity:
        """Return the velocity under guidance: a weighted sum of terms, pulled by the gradient of the reader."""
        parts = [(weight, self.network.condition(context)) for weight, context in steering.terms if _acts(weight)]
        reader = steering.reader

        def combined(u: Tensor, t: float) -> Tensor:
            time = u.new_full((1,), t)
            if len(parts) == 1 or not steering.start <= t <= steering.end:
                first: Tensor = self.network(u, time, parts[0][1])
                return first
            return torch.stack([weight * self.network(u, time, condition) for weight, condition in parts]).sum(0)

        if reader is None:
            return combined

        around = self._spread_points()

        def read_end(u: Tensor, t: float) -> tuple[Tensor, Tensor]:
            velocity = combined(u, t)
            sd = (1 - t) / math.hypot(t, 1 - t)
            ends = u + (1 - t) * velocity + sd * around[:, None, None]
            return reader(ends, steering.rows).logsumexp(0).sum(), velocity

        def pulled(u: Tensor, t: float) -> Tensor:
            if not steering.start <= t <= steering.end:
                return combined(u, t)
            gradient, velocity = torch.func.grad(read_end, has_aux=True)(u, t)
            pull: Tensor = velocity + (1 - t) / max(t, _EARLIEST) * gradient
            return pull

        return pulled

    def _smooth_parts(self, steering: Steering) -> list[Part]:
        """Return the parts of the path, from its end at t = 1 back to 0, on each of which the velocity is smooth."""
        acting = self._velocity(replace(steering, start=-math.inf, end=math.inf))
        first = next(context for weight, context in steering.terms if _acts(weight))
        alone = self._velocity(Steering(((1.0, first),)))
        turn = min(max(_EARLIEST, steering.start), steering.end) if steering.reader else steering.start
        parts = (1.0, steering.end, alone), (steering.end, turn, acting), (turn, steering.start, acting)
        return [part for part in (*parts, (steering.start, 0.0, alone)) if part[0] > part[1]]

    def _spread_points(self) -> Tensor:
        """Return fixed points [K, D] of mean 0 and variance 1 in every dimension, the same for every draw."""
        like = self.network.last.weight
        half = torch.randn(_SPREAD, self.latent_size, generator=torch.Generator().manual_seed(0)).to(like)
        half = half / half.square().mean(0).sqrt()
        return torch.cat([half, -half])

    def carry(self, velocity: Velocity, u: Tensor) -> Tensor:
        """Carry noise u [..., D] along ``velocity`` from t = 0 to 1 by the midpoint rule."""
        step = 1 / self.family.steps
        for number in range(self.family.steps):
            t = number * step
            u = u + step * velocity(u + step / 2 * velocity(u, t), t + step / 2)
        return u

    def _density(self, parts: Sequence[Part], u: Tensor) -> tuple[Tensor, ...]:
        """Compute log q(u) [..., B] and, where the trace is estimated, its standard error."""
        noise, log_volume = self._carry_back(parts, u)
        base = -0.5 * noise.square().sum(-1) - 0.5 * self.latent_size * math.log(2 * math.pi)
        if not self.is_estimated:
            return (base - log_volume[0],)
        return base - log_volume.mean(0), log_volume.std(0) / math.sqrt(len(log_volume))

    def _carry_back(self, parts: Sequence[Part], u: Tensor) -> tuple[Tensor, Tensor]:
        """Carry u back from t = 1 to its noise at 0 by Runge-Kutta steps, of which none goes over the ends of a part.

        Returns:
            The noise [..., B, D], and the integral of the divergence: [1, ..., B], or for each probe [K, ..., B].
        """
        directions = self._probe_directions(u)
        log_volume = u.new_zeros(len(directions) if self.is_estimated else 1, *u.shape[:-1])
        for late, early, velocity in parts:
            count = math.ceil(self.density_steps * (late - early))
            step = (late - early) / count
            for number in range(count):
                t = late - number * step
                v1, d1 = self._add_divergence(velocity, u, t, directions)
                v2, d2 = self._add_divergence(velocity, u - step / 2 * v1, t - step / 2, directions)
                v3, d3 = self._add_divergence(velocity, u - step / 2 * v2, t - step / 2, directions)
                v4, d4 = self._add_divergence(velocity, u - step * v3, t - step, directions)
                u = u - step / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
                log_volume = log_volume + step / 6 * (d1 + 2 * d2 + 2 * d3 + d4)
        return u, log_volume

    @property
    def is_estimated(self) -> bool:
        """True if the divergence of the velocity is estimated from random directions, False if exact."""
        return self.family.probes is not None or self.latent_size > _EXACT

    def _probe_directions(self, u: Tensor) -> Tensor:
        """Return directions [K, D] for the divergence, all axes if it is exact; else random signs [K, B, D]."""
        if not self.is_estimated:
            return torch.eye(self.latent_size, device=u.device, dtype=u.dtype)
        # The points are the seed: equal calls give equal densities, and other examples have errors of their own.
        generator = torch.Generator().manual_seed(zlib.crc32(u.detach().cpu().numpy().tobytes()))
        signs = torch.randint(0, 2, (self.probes, *u.shape[-2:]), generator=generator)
        return (2 * signs - 1).to(u)

    def _add_divergence(self, velocity: Velocity, u: Tensor, t: float, directions: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the velocity and its divergence, [K, ..., B] for each direction or [1, ..., B] if exact."""
        traced: tuple[Tensor, Any] = torch.func.vjp(lambda x: velocity(x, t), u)  # type: ignore[assignment]
        value, product = traced

        def divergence_along(direction: Tensor) -> Tensor:
            direction = direction.expand_as(u)
            return (direction * product(direction)[0]).sum(-1)

        hidden = u[..., 0].numel() * self.network.largest_layer
        parts = torch.func.vmap(divergence_along, chunk_size=max(1, _ENTRIES // hidden))(directions)
        return value, parts if self.is_estimated else parts.sum(0, keepdim=True)


def _acts(weight: float | Tensor) -> bool:
    """Return False for a weight of 0; one that is computed may be anything."""
    return isinstance(weight, Tensor) or bool(weight)


@dataclass(frozen=True, config=CONFIG)
class RectifiedFlow(Family):
    """Rectified flows: straight paths from noise to encodings, with classifier-free guidance (cfg)."""

    by_likelihood: ClassVar[bool] = False
    few_candidates: ClassVar[int | None] = 8

    width: Annotated[int, Field(ge=1)] | None = None
    """Width of the blocks of the velocity network; left out, 128, or 192 where z is a grid."""
    blocks: Annotated[int, Field(ge=1)] | None = None
    """Number of blocks; left out, 3, or 4 where z is a grid."""
    patch: Annotated[int, Field(ge=1)] | None = None
    """Side of the squares of places that are one token each, where z is a grid; left out, the smallest that makes at
    most 64 tokens."""
    heads: Annotated[int, Field(ge=1)] | None = None
    """Heads of attention between the tokens, where z is a grid; left out, one for every 32 of the width."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of hidden units dropped in training; for a few thousand examples 0.1."""
    unconditional: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of descriptions hidden in training, from which guidance cfg learns the velocity without a description."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 8
    """Midpoint steps of a draw; each evaluates the network twice."""
    density_steps: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Runge-Kutta steps of a log density, each with four evaluations of the network and its derivatives; left out, 32,
    or 8 where z is a grid."""
    probes: Annotated[int, Field(ge=2)] | None = None
    """Random probes of the trace in a log density; left out, the trace is exact up to 64 latents, else 8
    probes, or 16 where z is a grid."""

    @classmethod
    def example(cls) -> Self:
        return cls(width=16, blocks=2, density_steps=4)

    def training_defaults(self, latent: LatentSpace | None) -> Mapping[str, Any]:
        averaged = {"average": 0.999}
        if latent is None or latent.single_grid is None:
            return averaged
        # A step of a transformer takes as long as forty of residual blocks: few examples each, and bf16 pays.
        return averaged | {"batch": 64, "learning_rate": 1e-3, "warmup_steps": 100, "precision": "auto"}

    def build_density(self, latent: LatentSpace, context_size: int) -> Density:
        return RectifiedFlowDensity(latent, context_size, self)

    def build_network(self, latent: LatentSpace, context_size: int) -> VelocityNetwork:
        """Build the velocity network: a transformer over places if ``latent`` is one grid, else residual blocks.

        Raises:
            SettingsError: Settings of grids for vectors, or settings that do not fit the grid.
        """
        grid = latent.single_grid
        if grid is None:
            for name in ("patch", "heads"):
                if (value := getattr(self, name)) is not None:
                    raise SettingsError(
                        f"aggregate.family.{name} got {value}, but z is no grid of channels and places; leave it out"
                    )
            return VectorVelocityNetwork(
                latent.size, context_size, self.width or 128, self.blocks or 3, dropout=self.dropout
            )
        sides = grid[1:]
        width = self.width or 192
        patch = self.patch or _smallest_patch(sides)
        heads = self.heads or max(1, width // _HEAD)
        if any(side % patch for side in sides):
            raise SettingsError(
                f"aggregate.family.patch got {patch}, expected a number that divides both sides of z, "
                f"{sides[0]}x{sides[1]}; change it or leave it out"
            )
        if width % heads:
            raise SettingsError(
                f"aggregate.family.heads got {heads}, expected a number that divides aggregate.family.width, {width}; "
                "change one of them"
            )
        return GridVelocityNetwork(grid, context_size, width, self.blocks or 4, heads, patch, dropout=self.dropout)


def _smallest_patch(sides: tuple[int, int]) -> int:
    """Return the smallest side of squares that divides both sides and makes at most 64 tokens of the grid."""
    fitting = [side for side in range(1, min(sides) + 1) if not sides[0] % side and not sides[1] % side]
    return next((side for side in fitting if sides[0] * sides[1] <= _TOKENS * side**2), fitting[-1])

"""Flows from zuko, wrapped as densities. The one place that imports zuko.

zuko switches off argument validation of all of torch.distributions when it is imported; nothing else here relies on it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import zuko
from torch import Tensor
from zuko.transforms import MonotonicRQSTransform

from mmgen.core.errors import SettingsError
from mmgen.densities._base import Density


class _Coupling(zuko.transforms.CouplingTransform):
    """A coupling whose halves are known: zuko would count its mask in every step, which waits for a GPU."""

    def __init__(self, meta: Callable[[Tensor], Any], halves: tuple[Tensor, Tensor]) -> None:
        zuko.transforms.Transform.__init__(self)
        self.meta, (self.idx_a, self.idx_b) = meta, halves


class _CouplingLayer(zuko.flows.GeneralCouplingTransform):
    """Layer of couplings that moves the positions of its halves to its device once."""

    def __init__(self, *sizes: int, mask: Tensor, **settings: Any) -> None:
        super().__init__(*sizes, mask=mask, **settings)
        for name, half in (("_constant", mask), ("_changed", ~mask)):
            self.register_buffer(name, half.nonzero().squeeze(-1), persistent=False)

    def forward(self, c: Tensor | None = None) -> _Coupling:
        return _Coupling(partial(self.meta, c), (self._constant, self._changed))


class CouplingFlow(Density):
    """A normalising flow of coupling layers from a standard Gaussian."""

    def __init__(self, latent_size: int, transforms: list[Any]) -> None:
        super().__init__()
        base = zuko.lazy.UnconditionalDistribution(
            zuko.distributions.DiagNormal, torch.zeros(latent_size), torch.ones(latent_size), buffer=True
        )
        self.latent_size = self.noise_size = latent_size
        self.flow = zuko.lazy.Flow(transforms, base)

    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        result: Tensor = self.flow(context).log_prob(u)
        return result

    def carry_noise(self, noise: Tensor, context: Tensor | None) -> Tensor:
        result: Tensor = self.flow(context).transform.inv(noise)
        return result

    def sample_reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        u = self.sample(context, 1, batch, None)
        return u, u.new_ones(1, batch)

    def sample_with_log_prob(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        # Each coupling's network runs once for its inverse and the volume of it, where zuko would run it again.
        distribution = self.flow(context)
        example = next(self.parameters())
        u = torch.randn(1, batch, self.latent_size, device=example.device, dtype=example.dtype)
        log_q = distribution.base.log_prob(u)
        for coupling in reversed(distribution.transform.transforms):
            first_half, second_half = coupling.split(u)
            transform = coupling.meta(first_half)
            back = transform.inv(second_half)
            log_q = log_q + transform.log_abs_det_jacobian(back, second_half)
            u = coupling.merge(first_half, back, u.shape)
        return u, u.new_ones(1, batch), log_q


def _build_couplings(latent_size: int, steps: int, make: Callable[[Tensor], Any]) -> list[Any]:
    """Build ``steps`` pairs of couplings; each pair transforms both halves of the latents (CK Eq. 7-8)."""
    # CK split first half against second half. Here the split alternates between that and even against odd positions, so
    # that any two latents come to depend on each other.
    if latent_size < 2:
        raise SettingsError(
            "a coupling flow needs at least 2 latent dimensions, got 1; use --family gaussian or mixture"
        )
    positions = torch.arange(latent_size)
    masks = [positions < latent_size // 2, positions % 2 == 1]
    layers = []
    for step in range(steps):
        mask = masks[step % 2]
        layers += [make(mask), make(~mask)]
    return layers


def affine_couplings(latent_size: int, context_size: int, steps: int, hidden: tuple[int, ...]) -> list[Any]:
    """Build the affine coupling layers of Real NVP."""
    return _build_couplings(
        latent_size,
        steps,
        lambda mask: _CouplingLayer(
            latent_size, context_size, mask=mask, hidden_features=hidden, activation=torch.nn.SiLU
        ),
    )


def spline_couplings(latent_size: int, context_size: int, steps: int, hidden: tuple[int, ...], bins: int) -> list[Any]:
    """Build coupling layers of rational-quadratic splines on [-8, 8]; beyond, they are the identity."""

    def make_spline(*parameters: Tensor) -> MonotonicRQSTransform:
        return MonotonicRQSTransform(*parameters, bound=8.0)

    return _build_couplings(
        latent_size,
        steps,
        lambda mask: _CouplingLayer(
            latent_size,
            context_size,
            mask=mask,
            univariate=make_spline,
            shapes=[(bins,), (bins,), (bins - 1,)],
            hidden_features=hidden,
            activation=torch.nn.SiLU,
        ),
    )

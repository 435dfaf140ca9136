"""Rectified flows whose velocities are known exactly: those of mixtures of Gaussians."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from mmgen.densities.rectified_flow import RectifiedFlow, RectifiedFlowDensity
from mmgen.latent.space import LatentSpace

__all__ = ["MIXTURE", "ExactVelocity", "double", "exact_flow", "log_mixture"]


class ExactVelocity(nn.Module):
    """E[u - u_0 | u_t] of mixtures of Gaussians N(m_k, s_k^2 1); the context [B, 1] adds itself to all means."""

    def __init__(self, means: Tensor, sds: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.places, self.largest_layer = 1, 2_000
        self.means, self.sds, self.weights = means, sds, weights
        self.last = nn.Linear(1, 1).double()

    def condition(self, context: Tensor | None) -> Tensor:
        return torch.zeros(1, 1, dtype=torch.float64) if context is None else context

    def forward(self, u: Tensor, t: Tensor, condition: Tensor) -> Tensor:
        means = self.means + condition.unsqueeze(-2)  # [B, K, D]
        t = t.unsqueeze(-1).unsqueeze(-1)
        variance = (1 - t) ** 2 + t**2 * self.sds[:, None] ** 2
        off = u.unsqueeze(-2) - t * means
        log_p = self.weights.log() - 0.5 * (off**2 / variance + variance.log()).sum(-1)
        slope = (t * self.sds[:, None] ** 2 - (1 - t)) / variance
        return (log_p.softmax(-1).unsqueeze(-1) * (means + slope * off)).sum(-2)


def exact_flow(size: int, means: Tensor, sds: Tensor, weights: Tensor, **settings: int) -> RectifiedFlowDensity:
    density = RectifiedFlowDensity(LatentSpace.flat(size), 1, RectifiedFlow(**settings))
    # A velocity in closed form is no VelocityNetwork, which has sizes and layers to train.
    density.network = ExactVelocity(means, sds, weights)  # type: ignore[assignment]
    return density


def double(values: list[object]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


MIXTURE: Mapping[str, Tensor] = {
    "means": double([[-1.0, 0.5], [1.2, -0.3], [0.4, 1.5]]),
    "sds": double([0.4, 0.6, 0.3]),
    "weights": double([0.5, 0.3, 0.2]),
}


def log_mixture(u: Tensor) -> Tensor:
    means, sds, weights = MIXTURE.values()
    parts = torch.distributions.Normal(means, sds[:, None]).log_prob(u.unsqueeze(-2)).sum(-1)
    return (parts + weights.log()).logsumexp(-1)

"""Network of a velocity field over vectors, with time and description in every block."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["VelocityNetwork"]

_FREQUENCIES = 16


class _Block(nn.Module):
    """A residual block with adaptive layer norm: time and context set scale, shift and gate."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = nn.Linear(width, 3 * width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)
        self.layers = nn.Sequential(
            nn.Linear(width, 2 * width), nn.SiLU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )

    def forward(self, hidden: Tensor, condition: Tensor) -> Tensor:
        scale, shift, gate = self.modulation(functional.silu(condition)).chunk(3, -1)
        updated: Tensor = hidden + gate * self.layers(self.norm(hidden) * (1 + scale) + shift)
        return updated


class VelocityNetwork(nn.Module):
    """A network for the velocity v(u, t, context) [..., D] of a rectified flow, with adaptive layer norm.

    Args:
        size: D, entries of u.
        context_size: Width of the context; 0 for none.
        width: Width of the blocks.
        blocks: Number of blocks.
        dropout: Share of hidden units dropped in training.

    References:
        Scalable Diffusion Models with Transformers (Peebles, Xie, 2023), arXiv:2212.09748
    """

    frequencies: Tensor
    places: int = 1
    """Number of places at which the weights are applied."""

    def __init__(self, size: int, context_size: int, width: int, blocks: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = nn.Linear(size, width)
        self.register_buffer("frequencies", 2 * math.pi * torch.logspace(-1, 1.2, _FREQUENCIES))
        self.time = nn.Sequential(nn.Linear(2 * _FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))
        # Without a context the network sees a constant.
        self.reader = nn.Sequential(nn.Linear(max(1, context_size), width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(_Block(width, dropout) for _ in range(blocks))
        self.last = nn.Linear(width, size)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def condition(self, context: Tensor | None) -> Tensor:
        """Compute an embedding [B, width] of contexts [B, X], or [1, width] for no context."""
        embedding: Tensor = self.reader(self.last.weight.new_ones(1, 1) if context is None else context)
        return embedding

    def forward(self, u: Tensor, t: Tensor, condition: Tensor) -> Tensor:
        """Compute the velocities [..., B, D] of points u at time t.

        Args:
            u: Points [..., B, D].
            t: Times from 0 to 1 that broadcast to [..., B].
            condition: Embeddings [B, width], see :meth:`condition`.
        """
        angles = t.unsqueeze(-1) * self.frequencies
        embedding = self.time(torch.cat([angles.sin(), angles.cos()], -1)) + condition
        hidden = self.first(u)
        for block in self.blocks:
            hidden = block(hidden, embedding)
        velocity: Tensor = self.last(hidden)
        return velocity

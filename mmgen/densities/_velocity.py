"""Networks of velocity fields over vectors and over grids, with time and description in every block."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

_FREQUENCIES = 16


class VelocityNetwork(nn.Module, ABC):
    """Base of networks for the velocity v(u, t, context) [..., D] of a rectified flow, with adaptive layer norm.

    Args:
        size: Inputs of the first layer and outputs of the last.
        context_size: Width of the context; 0 for none.
        width: Width of the blocks.

    References:
        Scalable Diffusion Models with Transformers (Peebles, Xie, 2023), arXiv:2212.09748
    """

    frequencies: Tensor
    last: nn.Linear
    places: int = 1
    """Number of places at which the weights are applied."""
    largest_layer: int
    """Entries of the largest hidden layer for one point."""
    validation_times: int
    """Times at which validation sees each point."""

    def __init__(self, size: int, context_size: int, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(size, width)
        self.register_buffer("frequencies", 2 * math.pi * torch.logspace(-1, 1.2, _FREQUENCIES))
        self.time = nn.Sequential(nn.Linear(2 * _FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))
        # Without a context the network sees a constant.
        self.reader = nn.Sequential(nn.Linear(max(1, context_size), width), nn.SiLU(), nn.Linear(width, width))

    def condition(self, context: Tensor | None) -> Tensor:
        """Compute an embedding [B, width] of contexts [B, X], or [1, width] for no context."""
        embedding: Tensor = self.reader(self.last.weight.new_ones(1, 1) if context is None else context)
        return embedding

    @abstractmethod
    def forward(self, u: Tensor, t: Tensor, condition: Tensor) -> Tensor:
        """Compute the velocities [..., B, D] of points u at time t.

        Args:
            u: Points [..., B, D].
            t: Times from 0 to 1 that broadcast to [..., B].
            condition: Embeddings [B, width], see :meth:`condition`.
        """

    def _embed(self, t: Tensor, condition: Tensor) -> Tensor:
        """Return the embedding of time and context, [..., B or 1, width]."""
        angles = t.unsqueeze(-1) * self.frequencies
        embedding: Tensor = self.time(torch.cat([angles.sin(), angles.cos()], -1)) + condition
        return embedding


class VectorVelocityNetwork(VelocityNetwork):
    """A velocity network of residual blocks over vectors.

    Args:
        size: D, entries of u.
        context_size: Width of the context; 0 for none.
        width: Width of the blocks.
        blocks: Number of blocks.
        dropout: Share of hidden units dropped in training.
    """

    def __init__(self, size: int, context_size: int, width: int, blocks: int, dropout: float = 0.0) -> None:
        super().__init__(size, context_size, width)
        self.largest_layer, self.validation_times = 2 * width, 8
        self.blocks = nn.ModuleList(_VectorBlock(width, dropout) for _ in range(blocks))
        self.last = _zero_linear(width, size)

    def forward(self, u: Tensor, t: Tensor, condition: Tensor) -> Tensor:
        embedding = self._embed(t, condition)
        hidden = self.first(u)
        for block in self.blocks:
            hidden = block(hidden, embedding)
        velocity: Tensor = self.last(hidden)
        return velocity


class _VectorBlock(nn.Module):
    """A residual block with adaptive layer norm: time and context set scale, shift and gate."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = _zero_linear(width, 3 * width)
        self.layers = nn.Sequential(
            nn.Linear(width, 2 * width), nn.SiLU(), nn.Dropout(dropout), nn.Linear(2 * width, width)
        )

    def forward(self, hidden: Tensor, condition: Tensor) -> Tensor:
        scale, shift, gate = self.modulation(functional.silu(condition)).chunk(3, -1)
        updated: Tensor = hidden + gate * self.layers(self.norm(hidden) * (1 + scale) + shift)
        return updated


class GridVelocityNetwork(VelocityNetwork):
    """A velocity network over grids: a transformer whose tokens are places, or squares of places, of the grid.

    Args:
        shape: Channels, height and width of the grid (C, h, w); D is their product.
        context_size: Width of the context; 0 for none.
        width: Width of the blocks.
        blocks: Number of blocks.
        heads: Heads of attention; they divide the width.
        patch: Side of the squares; it divides h and w.
        dropout: Share of hidden units dropped in training.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        context_size: int,
        width: int,
        blocks: int,
        heads: int,
        patch: int,
        dropout: float = 0.0,
    ) -> None:
        channels, height, breadth = shape
        squares = height // patch, breadth // patch
        super().__init__(channels * patch**2, context_size, width)
        self.places, self.validation_times = squares[0] * squares[1], 1
        self.largest_layer = self.places * 4 * width
        self.cells = channels, squares[0], patch, squares[1], patch
        self.positions = nn.Parameter(0.02 * torch.randn(self.places, width))
        self.blocks = nn.ModuleList(_GridBlock(width, heads, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = _zero_linear(width, 2 * width)
        self.last = _zero_linear(width, channels * patch**2)

    def forward(self, u: Tensor, t: Tensor, condition: Tensor) -> Tensor:
        embedding = self._embed(t, condition)
        embedding = embedding.expand(*u.shape[:-1], embedding.shape[-1]).flatten(0, -2).unsqueeze(-2)
        squares = u.reshape(-1, *self.cells).permute(0, 2, 4, 1, 3, 5)
        hidden = self.first(squares.flatten(3).flatten(1, 2)) + self.positions
        for block in self.blocks:
            hidden = block(hidden, embedding)
        scale, shift = self.modulation(functional.silu(embedding)).chunk(2, -1)
        squares = self.last(self.norm(hidden) * (1 + scale) + shift).reshape(squares.shape)
        return squares.permute(0, 3, 1, 4, 2, 5).reshape(u.shape)


class _GridBlock(nn.Module):
    """A transformer block with adaptive layer norm: time and context set scales, shifts and gates."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = _zero_linear(width, 6 * width)
        self.attention = nn.Linear(width, 3 * width)
        self.mixed = nn.Linear(width, width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Dropout(dropout), nn.Linear(4 * width, width)
        )

    def forward(self, hidden: Tensor, condition: Tensor) -> Tensor:
        modulation = self.modulation(functional.silu(condition)).chunk(6, -1)
        hidden = hidden + modulation[2] * self._attend(self.norm(hidden) * (1 + modulation[0]) + modulation[1])
        updated: Tensor = hidden + modulation[5] * self.layers(self.norm(hidden) * (1 + modulation[3]) + modulation[4])
        return updated

    def _attend(self, tokens: Tensor) -> Tensor:
        query, key, value = self.attention(tokens).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if tokens.device.type == "cpu":  # the fused kernel is slower there, in bf16 four times, and knows no vmap
            scores = (query @ key.transpose(-1, -2)) * query.shape[-1] ** -0.5
            read = scores.softmax(-1).to(value.dtype) @ value
        else:
            read = functional.scaled_dot_product_attention(query, key, value)
        mixed: Tensor = self.mixed(read.transpose(1, 2).flatten(2))
        return mixed


def _zero_linear(inputs: int, outputs: int) -> nn.Linear:
    """Return a linear layer of zero weights."""
    layer = nn.Linear(inputs, outputs)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer

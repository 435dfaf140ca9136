"""Networks over attribute codes.

An attribute has few values, so whatever a network computes from one attribute alone is a table with a row per
value. The tables are computed once per batch, 19 rows for MNIST-A instead of 4 x B; the result is the same.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.networks._base import ACTIVATIONS, dense_layers


@dataclass(frozen=True, config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class AttributeNetwork:
    """Settings of the networks that encode and decode attributes; the defaults are VE's (Appendix A.4)."""

    experts: Literal["each", "together"] = "each"
    """Whether every attribute has networks of its own and its own vote on z (VE), or all of them share (WG)."""
    embedding: Annotated[int, Field(ge=1)] = 32
    """Width of the embedding of one attribute value."""
    hidden: Annotated[int, Field(ge=1)] = 512
    """Width of the two-layer networks after the embedding."""
    decoder_hidden: Annotated[int, Field(ge=1)] = 128
    """Width of the hidden layers of the decoder p(y_k | z)."""
    decoder_layers: Annotated[int, Field(ge=1, le=100)] = 2
    """How many hidden layers it has (WG's published code: 3)."""
    batch_norm: bool = False
    """Whether the layers of a shared network are followed by batch norm (WG on CelebA)."""
    activation: Literal["elu", "relu", "silu"] = "elu"
    """Non-linearity."""


class AttributeTables(nn.Module):
    """Network that maps the value of each attribute to a vector, by an embedding and layers of the attribute's own.

    Args:
        sizes: Values per attribute, length A.
        outputs: Width of the vectors.
        settings: Widths of the networks.
    """

    def __init__(self, sizes: tuple[int, ...], outputs: int, settings: AttributeNetwork) -> None:
        super().__init__()
        self.sizes = sizes
        # One more row than values: the embedding of "unknown".
        self.embeddings = nn.ModuleList(nn.Embedding(size + 1, settings.embedding) for size in sizes)
        layers = [settings.embedding, settings.hidden, settings.hidden, outputs]
        self.networks = nn.ModuleList(dense_layers(layers, ACTIVATIONS[settings.activation]) for _ in sizes)

    def forward(self, codes: Tensor, present: Tensor) -> Tensor:
        """Return the vector of each attribute's value [B, A, outputs], from codes [B, A] and their presence [B, A]."""
        columns = []
        for a, (embedding, network) in enumerate(zip(self.embeddings, self.networks, strict=True)):
            assert isinstance(embedding, nn.Embedding)
            table = network(embedding.weight)
            # index_select has a deterministic, cheap backward on few rows, unlike advanced indexing.
            columns.append(table.index_select(0, codes[:, a].masked_fill(~present[:, a], self.sizes[a])))
        return torch.stack(columns, 1)


class AttributeDecoder(nn.Module):
    """Decoder p(y | z) with a network for each attribute (two hidden layers in VE A.4); logits side by side [B, S]."""

    def __init__(self, inputs: int, sizes: tuple[int, ...], settings: AttributeNetwork) -> None:
        super().__init__()
        widths = [settings.decoder_hidden] * settings.decoder_layers
        self.networks = nn.ModuleList(
            dense_layers([inputs, *widths, size], ACTIVATIONS[settings.activation]) for size in sizes
        )

    def forward(self, z: Tensor) -> Tensor:
        return torch.cat([network(z) for network in self.networks], -1)

    def logits_of_attribute(self, z: Tensor, attribute: int) -> Tensor:
        """Return the logits [B, V_k] of attribute number k, by its own network."""
        logits: Tensor = self.networks[attribute](z)
        return logits


def attribute_widths(sizes: Sequence[int]) -> list[int]:
    """Return how many numbers stand for each attribute: one for two values, of either sign, else one a value."""
    return [1 if size == 2 else size for size in sizes]


def attribute_columns(codes: Tensor, present: Tensor, sizes: Sequence[int]) -> Tensor:
    """Return attributes as numbers [B, N], zero where unknown, of codes [B, A], given which are known [B, A]."""
    columns = []
    for a, size in enumerate(sizes):
        known = present[:, a : a + 1]
        if size == 2:
            columns.append((2.0 * codes[:, a : a + 1] - 1.0) * known)
        else:
            columns.append(nn.functional.one_hot(codes[:, a], size) * known)
    return torch.cat(columns, -1)


class AttributeVectorEncoder(nn.Module):
    """Encoder of attributes [B, A] to features [B, hidden]: a sum of vectors of known values, then dense layers.

    Values of 0 and 1 share one vector, of either sign, and a bias, so that an unknown attribute adds nothing. For one
    attribute the sum is its embedding: on MNIST and on CelebA these are WG's networks, weight for weight. First weights
    are theirs as well: vectors of values from N(0, 1), as torch's embeddings; those of 0 and 1 as torch's linear layer.

    Args:
        sizes: Values per attribute, length A.
        settings: Widths; ``embedding`` is not used.
        layers: Hidden layers, the sum included.
    """

    def __init__(self, sizes: tuple[int, ...], settings: AttributeNetwork, layers: int = 2) -> None:
        super().__init__()
        self.sizes = sizes
        self.features = settings.hidden
        widths = attribute_widths(sizes)
        first = nn.Linear(sum(widths), settings.hidden, bias=2 in sizes)
        # A linear layer's own first weights would make these vectors five times shorter (ten values); on MNIST with a
        # label weight of 1 the label's expert is then lost for tens of thousands of steps.
        with torch.no_grad():
            for size, vectors in zip(sizes, first.weight.split(widths, 1), strict=True):
                if size != 2:
                    nn.init.normal_(vectors)
        stack: list[nn.Module] = [first]
        for number in range(layers):
            if number:
                stack.append(nn.Linear(settings.hidden, settings.hidden))
            if settings.batch_norm:
                stack.append(nn.BatchNorm1d(settings.hidden))
            stack.append(ACTIVATIONS[settings.activation]())
        self.layers = nn.Sequential(*stack)

    def forward(self, codes: Tensor, present: Tensor) -> Tensor:
        """Return features [B, hidden] of codes [B, A], given which of them are known [B, A]."""
        columns = attribute_columns(codes, present, self.sizes)
        features: Tensor = self.layers(columns.to(next(self.parameters()).dtype))
        return features


def attribute_decoder(inputs: int, sizes: tuple[int, ...], settings: AttributeNetwork) -> nn.Module:
    """Return the decoder p(y | z), z [B, inputs] -> logits [B, S]: one network for all attributes, or one for each."""
    if settings.experts == "each":
        return AttributeDecoder(inputs, sizes, settings)
    width = settings.decoder_hidden
    layers: list[nn.Module] = []
    for number in range(settings.decoder_layers):
        layers.append(nn.Linear(width if number else inputs, width))
        if settings.batch_norm:
            layers.append(nn.BatchNorm1d(width))
        layers.append(ACTIVATIONS[settings.activation]())
    return nn.Sequential(*layers, nn.Linear(width, sum(sizes)))

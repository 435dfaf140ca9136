"""Networks over attribute codes.

An attribute has few values, so whatever a network computes from one attribute alone is a table with a row per
value. The
tables are computed once per batch (19 rows for MNIST-A instead of 4 x B) and looked up; the result is the same.
"""

from typing import Annotated, Literal

import torch
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.networks._base import ACTIVATIONS, mlp

__all__ = ["AttributeDecoder", "AttributeNetwork", "AttributeTables"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class AttributeNetwork:
    """Sizes of the networks over attributes; the defaults are VE's (Appendix A.4)."""

    embedding: Annotated[int, Field(ge=1)] = 32
    """Width of the embedding of one attribute value."""
    hidden: Annotated[int, Field(ge=1)] = 512
    """Width of the two-layer networks after the embedding."""
    decoder_hidden: Annotated[int, Field(ge=1)] = 128
    """Width of the two-layer decoder p(y_k | z)."""
    activation: Literal["elu", "relu", "silu"] = "elu"
    """Non-linearity."""


class AttributeTables(nn.Module):
    """For each attribute, a network from its value's embedding to a vector.

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
        self.networks = nn.ModuleList(mlp(layers, ACTIVATIONS[settings.activation]) for _ in sizes)

    def forward(self, codes: Tensor, present: Tensor) -> Tensor:
        """Codes [B, A] and mask [B, A] -> [B, A, outputs]."""
        columns = []
        for a, (embedding, network) in enumerate(zip(self.embeddings, self.networks, strict=True)):
            assert isinstance(embedding, nn.Embedding)
            table = network(embedding.weight)
            # index_select has a deterministic, cheap backward on few rows, unlike advanced indexing.
            columns.append(table.index_select(0, codes[:, a].masked_fill(~present[:, a], self.sizes[a])))
        return torch.stack(columns, 1)


class AttributeDecoder(nn.Module):
    """p(y_k | z) for every attribute: two hidden layers each (VE A.4), logits side by side [B, S]."""

    def __init__(self, inputs: int, sizes: tuple[int, ...], settings: AttributeNetwork) -> None:
        super().__init__()
        width = settings.decoder_hidden
        self.networks = nn.ModuleList(
            mlp([inputs, width, width, size], ACTIVATIONS[settings.activation]) for size in sizes
        )

    def forward(self, z: Tensor) -> Tensor:
        return torch.cat([network(z) for network in self.networks], -1)

"""Patch: a small square of a grey picture without its brightness, as real numbers.

References:
    RNADE: The real-valued neural autoregressive density-estimator (Uria, Murray, Larochelle, 2013), arXiv:1306.0186,
    Section 5.2: noise, division by 256, mean taken off, last pixel dropped
"""

import json
import math
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from mmgen.core.errors import ArtifactError
from mmgen.modalities._base import ROWS, Description, Element, Modality, StoredArray, View, whole
from mmgen.modalities._stored import element_json

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from mmgen.likelihoods import Likelihood
    from mmgen.networks import VectorNetwork

__all__ = ["PatchDescription"]

_LARGEST = 64
_UNIT = 0.1
"""The spread of a pixel about its patch's mean is about this in natural pictures (0.09 in the Berkeley set)."""


class PatchDescription(Description):
    """Square grey patches, stored as bytes [n, side, side], which a model sees as side^2 - 1 real numbers.

    Byte v becomes (v + u) / 256 with u uniform in (0, 1), the mean of the patch is taken off, and the last pixel, which
    is minus the sum of the others, is dropped. So the numbers have a density, and log p is in nats a patch; divided by
    (side^2 - 1) ln 2 it is in bits a pixel. Training draws u anew in every view. Evaluations and validation see one
    draw for each row, the same whatever the seed.
    """

    kind: Literal["patch"] = "patch"
    name: str = "patch"
    side: Annotated[int, Field(ge=2, le=_LARGEST)] = 8
    """Height and width in pixels."""

    @property
    def size(self) -> int:
        """F, how many numbers are left: side^2 - 1."""
        return self.side**2 - 1

    @property
    def numbers(self) -> int:
        return self.size

    @property
    def nats_per_bit(self) -> float:
        return self.size * math.log(2)

    def arrays(self) -> dict[str, StoredArray]:
        return {ROWS: StoredArray("uint8", (self.side, self.side))}

    def texts(self) -> dict[str, str]:
        return {"side": json.dumps(self.side)}

    @classmethod
    def read(cls, name: str, element: Element) -> "PatchDescription":
        side, shape = element_json(element, "side"), element.shape()
        if type(side) is not int or not 2 <= side <= _LARGEST or shape[1:] != (side, side):
            raise ArtifactError(
                f"{element.where} holds no square patches of 2 to {_LARGEST} pixels; make the file again"
            )
        return cls(name=name, side=side)

    def tensors(self, rows: "Tensor", view: View) -> tuple["Tensor", "Tensor"]:
        """Convert rows in memory to numbers float32 [B, F] in one view."""
        from mmgen.core.views import dequantise, view_key

        seed, *which = view.key
        # One draw for all evaluations, as if it were stored: scores of two seeds are about the same numbers.
        key = view_key(seed, self.name, *which) if which else view_key(0, self.name)
        return self.observed(_without_mean(dequantise(rows, view.numbers(), key)))

    def observed(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return numbers [B, F] as they are, all of them there; levels uint8 [B, side, side] at the middle of each
        level.
        """
        numbers = values if values.is_floating_point() else _without_mean((values.double() + 0.5) / 256)
        return numbers, whole(numbers)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """(F,)."""
        return (self.size,)

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """(1, side, side)."""
        return (1, self.side, self.side)

    def picture(self, values: np.ndarray) -> np.ndarray:
        """Draw numbers [n, F] about a medium grey, with the pixel that was dropped: float32 [n, 1, side, side]."""
        pixels = np.concatenate([values, -values.sum(-1, keepdims=True)], -1) + 0.5
        return np.clip(pixels, 0, 1).astype(np.float32).reshape(-1, 1, self.side, self.side)

    @classmethod
    def example(cls, count: int = 5) -> "tuple[PatchDescription, np.ndarray]":
        """Return patches of 3 by 3 pixels."""
        return cls(side=3), np.random.default_rng(0).integers(0, 256, (count, 3, 3), np.uint8)

    def modality(self, likelihood: str | None = None) -> "Patch":
        from mmgen.modalities._dense import dense_likelihood

        chosen = dense_likelihood(likelihood or "normal", f"the likelihood of {self.name}", "real numbers")
        return Patch(self.name, self.size, chosen)

    @classmethod
    def network(cls) -> "type[VectorNetwork]":
        from mmgen.networks import VectorNetwork

        return VectorNetwork

    def in_words(self) -> str:
        return f"{self.name} {self.side}x{self.side} as {self.size} numbers"


class Patch(Modality):
    r"""Independent numbers given z, measured in units of 0.1.

    Encoders see x / 0.1, and decoder outputs are parameters of a density of x / 0.1, [..., P * F] for a likelihood of P
    parameters a value; of x it is that density times 0.1^-F. So networks see and give numbers of about 1, while log p
    is of the numbers themselves. The least standard deviation of ``normal``, 0.1 exp(-7), is below that of the noise
    between two levels, 0.0011.

    Args:
        name: Name in the dataset file.
        size: F.
        likelihood: p(x / 0.1 | decoder output).
    """

    kind: ClassVar[str] = "patch"

    def __init__(self, name: str, size: int, likelihood: "Likelihood") -> None:
        self.name = name
        self.size = size
        self.likelihood = likelihood

    def decoder(self, inputs: int, network: "VectorNetwork") -> tuple["Patch", "nn.Module"]:
        return self, network.decoder(inputs, self.size * self.likelihood.parameters_per_value)

    def encoder(self, network: "VectorNetwork") -> tuple["nn.Module", int]:
        return network.encoder(self.size)

    def features(self, encoder: "nn.Module", value: "Tensor", present: "Tensor") -> "Tensor":
        found: Tensor = encoder(value / _UNIT)
        return found

    def log_prob(self, parameters: "Tensor", value: "Tensor", present: "Tensor") -> "Tensor":
        density = self.likelihood.log_prob(_as_pixel(parameters), _as_pixel(value / _UNIT))
        return (density - self.size * math.log(_UNIT)).masked_fill(~present, 0.0)

    def mean(self, parameters: "Tensor") -> "Tensor":
        return self.likelihood.mean(_as_pixel(parameters)).flatten(-3) * _UNIT

    def sample(self, parameters: "Tensor", generator: "torch.Generator | None" = None) -> "Tensor":
        return self.likelihood.sample(_as_pixel(parameters), generator).flatten(-3) * _UNIT


def _without_mean(levels: "Tensor") -> "Tensor":
    """Map patches float64 [B, side, side] -> all pixels but the last, less the mean of all: float32 [B, F]."""
    flat = levels.flatten(1)
    return (flat - flat.mean(1, keepdim=True))[:, :-1].float()


def _as_pixel(numbers: "Tensor") -> "Tensor":
    """Return [..., F] as a picture of one pixel with F channels [..., F, 1, 1], which all likelihoods of dense data
    know.
    """
    return numbers[..., None, None]

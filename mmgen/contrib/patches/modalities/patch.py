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
from mmgen.modalities._base import ROWS, Description, Element, StoredArray, View, all_present
from mmgen.modalities._stored import element_json
from mmgen.modalities.vector import Vector

if TYPE_CHECKING:
    from torch import Tensor

    from mmgen.networks import VectorNetwork

__all__ = ["PatchDescription"]


_LARGEST = 64


class PatchDescription(Description):
    """Specification of square grey patches, stored as bytes [n, side, side] and modelled as side^2 - 1 real numbers.

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
        """Number F of real numbers that stand for a patch: side^2 - 1."""
        return self.side**2 - 1

    @property
    def number_count(self) -> int:
        return self.size

    @property
    def nats_per_bit(self) -> float:
        return self.size * math.log(2)

    def arrays(self) -> dict[str, StoredArray]:
        return {ROWS: StoredArray("uint8", (self.side, self.side))}

    def text_attributes(self) -> dict[str, str]:
        return {"side": json.dumps(self.side)}

    @classmethod
    def read(cls, name: str, element: Element) -> "PatchDescription":
        side, shape = element_json(element, "side"), element.shape()
        if type(side) is not int or not 2 <= side <= _LARGEST or shape[1:] != (side, side):
            raise ArtifactError(
                f"{element.location} holds no square patches of 2 to {_LARGEST} pixels; make the file again"
            )
        return cls(name=name, side=side)

    def tensors(self, rows: "Tensor", view: View) -> tuple["Tensor", "Tensor"]:
        """Convert rows in memory to real numbers float32 [B, F], with noise within a grey level that ``view`` fixes."""
        from mmgen.core.views import dequantise, view_key

        seed, *which = view.key
        # One draw for all evaluations, as if it were stored: scores of two seeds are about the same numbers.
        key = view_key(seed, self.name, *which) if which else view_key(0, self.name)
        return self.values_and_presence(_subtract_mean(dequantise(rows, view.rows(), key)))

    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return numbers [B, F] unchanged, all present; uint8 levels [B, side, side] become numbers without noise."""
        numbers = values if values.is_floating_point() else _subtract_mean((values.double() + 0.5) / 256)
        return numbers, all_present(numbers)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of a patch's numbers, (F,)."""
        return (self.size,)

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """Shape of a patch as a picture, (1, side, side)."""
        return (1, self.side, self.side)

    def picture(self, values: np.ndarray) -> np.ndarray:
        """Convert numbers [n, F] to patches around medium grey, last pixel restored: float32 [n, 1, side, side]."""
        pixels = np.concatenate([values, -values.sum(-1, keepdims=True)], -1) + 0.5
        return np.clip(pixels, 0, 1).astype(np.float32).reshape(-1, 1, self.side, self.side)

    @classmethod
    def example(cls, count: int = 5) -> "tuple[PatchDescription, np.ndarray]":
        """Return the specification of patches of 3 by 3 pixels, and rows of it."""
        return cls(side=3), np.random.default_rng(0).integers(0, 256, (count, 3, 3), np.uint8)

    def modality(self, likelihood: str | None = None) -> "Patch":
        from mmgen.modalities._dense import dense_likelihood

        chosen = dense_likelihood(likelihood or "normal", f"the likelihood of {self.name}", "real numbers")
        return Patch(self.name, self.size, chosen)

    @classmethod
    def network_settings_class(cls) -> "type[VectorNetwork]":
        from mmgen.networks import VectorNetwork

        return VectorNetwork

    def describe_size(self) -> str:
        return f"{self.name} {self.side}x{self.side} as {self.size} numbers"


class Patch(Vector):
    """Patches whose real numbers, in units of 0.1, are independent given z.

    The least standard deviation of ``normal``, 0.1 exp(-7), is below that of the noise between two levels, 0.0011.
    """

    kind: ClassVar[str] = "patch"
    unit: ClassVar[float] = 0.1
    """The spread of a pixel about its patch's mean is about this in natural pictures (0.09 in the Berkeley set)."""


def _subtract_mean(levels: "Tensor") -> "Tensor":
    """Subtract each patch's mean and drop its last pixel: float64 [B, side, side] -> float32 [B, F]."""
    flat = levels.flatten(1)
    return (flat - flat.mean(1, keepdim=True))[:, :-1].float()

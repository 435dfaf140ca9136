"""Vector: a fixed number of real numbers, such as measurements."""

import json
import math
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from mmgen.core.errors import ArtifactError
from mmgen.modalities._base import ROWS, Description, Element, Modality, StoredArray, all_present
from mmgen.modalities._stored import are_distinct_texts, element_json

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from mmgen.likelihoods import Likelihood
    from mmgen.networks import VectorNetwork

__all__ = ["VectorDescription"]


_SHOWN = 6


class VectorDescription(Description):
    """Specification of vectors of real numbers; rows are finite float32 [n, F]."""

    kind: Literal["vector"] = "vector"
    name: str = "vector"
    size: Annotated[int, Field(ge=1)]
    """F, how many numbers an example has."""
    columns: tuple[str, ...] = ()
    """Names of the F columns; empty where they have none."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        if self.columns and not len(set(self.columns)) == len(self.columns) == self.size:
            raise ValueError(
                f"vector '{self.name}' got columns {', '.join(self.columns)}, expected {self.size} distinct names, one "
                "for each number; or leave columns out"
            )
        return self

    def arrays(self) -> dict[str, StoredArray]:
        return {ROWS: StoredArray("float32", (self.size,))}

    def text_attributes(self) -> dict[str, str]:
        return {"columns": json.dumps(self.columns)}

    @classmethod
    def read(cls, name: str, element: Element) -> "VectorDescription":
        shape, columns = element.shape(), element_json(element, "columns")
        size = shape[1] if len(shape) == 2 else 0
        if not size or not (columns == [] or (are_distinct_texts(columns, 1, size) and len(columns) == size)):
            raise ArtifactError(
                f"{element.location} does not name each of its {size} columns once; make the file again"
            )
        return cls(name=name, size=size, columns=tuple(columns))

    @property
    def number_count(self) -> int:
        return self.size

    def find_fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        return "" if np.isfinite(stored).all() else "a number is not finite"

    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return numbers [B, F] in at least float32, all present."""
        return values if values.is_floating_point() else values.float(), all_present(values)

    @classmethod
    def example(cls, count: int = 5) -> tuple[Self, np.ndarray]:
        """Return the specification of three numbers for each example, and rows of it."""
        return cls(size=3), np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)

    def modality(self, likelihood: str | None = None) -> "Vector":
        from mmgen.modalities._dense import dense_likelihood

        chosen = dense_likelihood(likelihood or "normal", f"the likelihood of {self.name}", "real numbers")
        return Vector(self.name, self.size, chosen)

    @classmethod
    def network_settings_class(cls) -> type[Any]:
        from mmgen.networks import VectorNetwork

        return VectorNetwork

    def describe_size(self) -> str:
        listed = ", ".join(self.columns[:_SHOWN]) + (", ..." if len(self.columns) > _SHOWN else "")
        return f"{self.name} of {self.size} numbers{f' ({listed})' if listed else ''}"


class Vector(Modality):
    """Vectors whose real numbers are independent given z.

    Decoder outputs are the parameters of all columns, [..., P * F] for a likelihood of P parameters a value. Networks
    see and give x / u, numbers of about 1, and log p(x) is that of x / u less F log u.

    Args:
        name: Name in the dataset file.
        size: F.
        likelihood: p(x / u | decoder output).
    """

    kind: ClassVar[str] = "vector"
    unit: ClassVar[float] = 1.0
    """u, in which numbers are measured."""

    def __init__(self, name: str, size: int, likelihood: "Likelihood") -> None:
        self.name = name
        self.size = size
        self.likelihood = likelihood

    def decoder(self, inputs: int, network: "VectorNetwork") -> tuple[Self, "nn.Module"]:
        return self, network.decoder(inputs, self.size * self.likelihood.parameters_per_value)

    def encoder(self, network: "VectorNetwork") -> tuple["nn.Module", int]:
        return network.encoder(self.size)

    def features(self, encoder: "nn.Module", value: "Tensor", present: "Tensor") -> "Tensor":
        found: Tensor = encoder(value / self.unit)
        return found

    def log_prob(self, parameters: "Tensor", value: "Tensor", present: "Tensor") -> "Tensor":
        density = self.likelihood.log_prob(_to_pixel(parameters), _to_pixel(value / self.unit))
        return (density - self.size * math.log(self.unit)).masked_fill(~present, 0.0)

    def mean(self, parameters: "Tensor") -> "Tensor":
        return self.likelihood.mean(_to_pixel(parameters)).flatten(-3) * self.unit

    def sample(self, parameters: "Tensor", generator: "torch.Generator | None" = None) -> "Tensor":
        return self.likelihood.sample(_to_pixel(parameters), generator).flatten(-3) * self.unit


def _to_pixel(numbers: "Tensor") -> "Tensor":
    """Return numbers [..., F] as pictures of one pixel with F channels [..., F, 1, 1], for likelihoods of pixels."""
    return numbers[..., None, None]

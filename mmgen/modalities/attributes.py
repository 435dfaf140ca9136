"""Attributes: a fixed number of categorical values, any of which may be unknown."""

import json
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import model_validator

from mmgen.core.errors import ArtifactError
from mmgen.core.notation import UNKNOWN
from mmgen.modalities._base import ROWS, Description, Element, Modality, StoredArray
from mmgen.modalities._stored import MAX_NAMES, are_distinct_texts, element_json

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from mmgen.networks import AttributeNetwork

__all__ = ["AttributesDescription"]


class AttributesDescription(Description):
    """Specification of categorical attributes; rows are uint8 codes [n, A], 255 unknown."""

    streamed: ClassVar[bool] = False
    describes: ClassVar[bool] = True

    kind: Literal["attributes"] = "attributes"
    name: str = "attributes"
    names: tuple[str, ...]
    """Names of the A attributes."""
    values: tuple[tuple[str, ...], ...]
    """For each attribute the names of its values; a value's code is its position."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        if not self.names or len(self.names) != len(self.values):
            raise ValueError(
                f"got {len(self.names)} attributes and {len(self.values)} lists of values; give at least one "
                "attribute, and one list of values for each"
            )
        for attribute, vocabulary in zip(self.names, self.values, strict=True):
            if not 1 <= len(vocabulary) == len(set(vocabulary)) <= UNKNOWN:
                raise ValueError(
                    f"attribute '{attribute}' got {len(vocabulary)} values, {len(set(vocabulary))} of them distinct, "
                    f"expected 1 to {UNKNOWN} distinct values; name each value once"
                )
        return self

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each of the A attributes."""
        return tuple(len(values) for values in self.values)

    def arrays(self) -> dict[str, StoredArray]:
        return {ROWS: StoredArray("uint8", (len(self.names),))}

    def text_attributes(self) -> dict[str, str]:
        """Return attribute names and vocabularies as ASCII JSON."""
        return {"names": json.dumps(self.names), "values": json.dumps(self.values)}

    @classmethod
    def read(cls, name: str, element: Element) -> "AttributesDescription":
        names, values = element_json(element, "names"), element_json(element, "values")
        if not are_distinct_texts(names, 1, MAX_NAMES) or not isinstance(values, list) or len(values) != len(names):
            raise ArtifactError(
                f"{element.location} does not name its attributes and their values; make the file again"
            )
        if not all(are_distinct_texts(vocabulary, 1, UNKNOWN) for vocabulary in values):
            raise ArtifactError(
                f"{element.location} has an attribute without 1 to {UNKNOWN} distinct values; make the file again"
            )
        return cls(name=name, names=tuple(names), values=tuple(tuple(vocabulary) for vocabulary in values))

    def find_fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        good = ((stored < np.array(self.sizes)) | (stored == UNKNOWN)).all()
        return "" if good else f"a code is no value of its attribute, nor {UNKNOWN}"

    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return int64 codes [B, A], 0 for unknown ones, and presence [B, A], from codes with 255 unknown."""
        known = values != UNKNOWN
        return values.long().masked_fill(~known, 0), known

    @classmethod
    def example(cls, count: int = 5) -> tuple[Self, np.ndarray]:
        """Return the specification of two attributes, and rows in which all are known."""
        described = cls(names=("digit", "size"), values=(("0", "1", "2"), ("big", "small")))
        return described, np.stack([np.arange(count) % 3, np.arange(count) % 2], 1).astype(np.uint8)

    @classmethod
    def network_settings_class(cls) -> type[Any]:
        from mmgen.networks import AttributeNetwork

        return AttributeNetwork

    def modality(self, likelihood: str | None = None) -> "Attributes":
        return Attributes(self.name, self.names, self.values)

    def is_compatible(self, other: Description) -> bool:
        return isinstance(other, AttributesDescription) and (self.names, self.values) == (other.names, other.values)

    def describe_size(self) -> str:
        return f"{self.name} {', '.join(self.names)}"


class Attributes(Modality):
    r"""Independent categorical distributions, one for each attribute; unknown attributes are left out.

    .. math:: p(y_O | z) = \prod_{k \in O} p(y_k | z)  \qquad \text{(VE Section 1)}

    Decoder outputs are the logits of all attributes side by side, [..., S].

    Args:
        name: Name in the dataset file.
        names: Attribute names, length A.
        values: Names of the values of each attribute.
    """

    kind: ClassVar[str] = "attributes"
    head_layers: ClassVar[int] = 0  # WG

    def __init__(self, name: str, names: tuple[str, ...], values: tuple[tuple[str, ...], ...]) -> None:
        import torch

        self.name = name
        self.names = names
        self.values = values
        self.sizes = tuple(len(v) for v in values)
        width = max(self.sizes)
        starts = [sum(self.sizes[:a]) for a in range(len(self.sizes))]
        # [A, V]: where each attribute's logits stand in [..., S]; columns beyond an attribute's range are masked.
        self._column = torch.tensor(
            [[s + min(v, n - 1) for v in range(width)] for s, n in zip(starts, self.sizes, strict=True)]
        )
        self._valid = torch.tensor([[v < n for v in range(width)] for n in self.sizes])
        self._start = torch.tensor(starts)

    @property
    def total_size(self) -> int:
        """S, the number of logits: the numbers of values of all attributes together."""
        return sum(self.sizes)

    @property
    def description_size(self) -> int:
        """Number of features that :meth:`describe` returns: S + A."""
        return self.total_size + len(self.sizes)

    def decoder(self, inputs: int, network: "AttributeNetwork") -> tuple["Attributes", "nn.Module"]:
        from mmgen.networks import attribute_decoder

        return self, attribute_decoder(inputs, self.sizes, network)

    def encoder(self, network: "AttributeNetwork") -> tuple["nn.Module", int]:
        from mmgen.networks import AttributeVectorEncoder

        made = AttributeVectorEncoder(self.sizes, network)
        return made, made.features

    def features(self, encoder: "nn.Module", value: "Tensor", present: "Tensor") -> "Tensor":
        found: Tensor = encoder(value, present)
        return found

    def log_probabilities(self, parameters: "Tensor") -> "Tensor":
        """Return normalised log-probabilities [..., A, V] of logits [..., S]; minus infinity for values an attribute
        lacks.
        """
        import torch

        from mmgen.likelihoods import full_precision

        logits = full_precision(parameters)
        padded = logits[..., self._column.to(logits.device)]
        return padded.masked_fill(~self._valid.to(logits.device), -torch.inf).log_softmax(-1)

    def log_prob(self, parameters: "Tensor", value: "Tensor", present: "Tensor") -> "Tensor":
        table = self.log_probabilities(parameters)
        codes = value.expand(*table.shape[:-1]).unsqueeze(-1)
        chosen = table.gather(-1, codes).squeeze(-1)
        return chosen.masked_fill(~present, 0.0).sum(-1)

    def log_prob_of_attribute(self, logits: "Tensor", attribute: int, value: "Tensor", present: "Tensor") -> "Tensor":
        """Return log p(y_k | logits) of attribute number ``attribute``, in nats; 0 for examples in which it is unknown.

        Args:
            logits: Logits of that attribute alone [..., B, V_k].
            attribute: k.
            value: Codes of all attributes [B, A].
            present: [B, A].
        """
        from mmgen.likelihoods import full_precision

        table = full_precision(logits).log_softmax(-1)
        codes = value[:, attribute].expand(table.shape[:-1]).unsqueeze(-1)
        return table.gather(-1, codes).squeeze(-1).masked_fill(~present[:, attribute], 0.0)

    def mean(self, parameters: "Tensor") -> "Tensor":
        return self.log_probabilities(parameters).exp()

    def sample(self, parameters: "Tensor", generator: "torch.Generator | None" = None) -> "Tensor":
        import torch

        probability = self.mean(parameters)
        drawn = torch.multinomial(probability.flatten(0, -2), 1, generator=generator)
        return drawn.reshape(probability.shape[:-1])

    def describe(self, value: "Tensor", present: "Tensor") -> "Tensor":
        """Convert codes and mask [..., A] to features [..., S + A]: one-hot, zeros for unknown attributes, then the
        mask.
        """
        import torch

        hot = torch.zeros(*value.shape[:-1], self.total_size, device=value.device)
        hot.scatter_(-1, self._start.to(value.device) + value, present.to(hot.dtype))
        return torch.cat([hot, present.to(hot.dtype)], -1)

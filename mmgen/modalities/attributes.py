"""Attributes: a fixed-length vector of discrete values, each of which may be unknown."""

import torch
from torch import Tensor

from mmgen.likelihoods._base import full_precision
from mmgen.modalities._base import Modality

__all__ = ["Attributes"]


class Attributes(Modality):
    r"""Categorical per attribute; a description leaves out any subset.

    .. math:: p(y_O | z) = \prod_{k \in O} p(y_k | z)  \qquad \text{(VE Section 1)}

    Decoder outputs are the logits of all attributes side by side, [..., S].

    Args:
        name: Name in the dataset file.
        names: Attribute names, length A.
        values: Names of the values of each attribute.
    """

    def __init__(self, name: str, names: tuple[str, ...], values: tuple[tuple[str, ...], ...]) -> None:
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
        """S, the number of logits."""
        return sum(self.sizes)

    @property
    def description_size(self) -> int:
        """Width of :meth:`describe`: S + A."""
        return self.total_size + len(self.sizes)

    def log_probabilities(self, parameters: Tensor) -> Tensor:
        """Logits [..., S] -> normalised log-probabilities [..., A, V]; minus infinity beyond an attribute's range."""
        logits = full_precision(parameters)
        padded = logits[..., self._column.to(logits.device)]
        return padded.masked_fill(~self._valid.to(logits.device), -torch.inf).log_softmax(-1)

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        table = self.log_probabilities(parameters)
        codes = value.expand(*table.shape[:-1]).unsqueeze(-1)
        chosen = table.gather(-1, codes).squeeze(-1)
        return chosen.masked_fill(~present, 0.0).sum(-1)

    def log_prob_of_one(self, logits: Tensor, attribute: int, value: Tensor, present: Tensor) -> Tensor:
        """log p(y_k | logits) of one attribute by number, in nats; 0 where it is unknown.

        Args:
            logits: Of that attribute alone [..., B, V_k].
            attribute: k.
            value: Codes of all attributes [B, A].
            present: [B, A].
        """
        table = full_precision(logits).log_softmax(-1)
        codes = value[:, attribute].expand(table.shape[:-1]).unsqueeze(-1)
        return table.gather(-1, codes).squeeze(-1).masked_fill(~present[:, attribute], 0.0)

    def mean(self, parameters: Tensor) -> Tensor:
        return self.log_probabilities(parameters).exp()

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        probability = self.mean(parameters)
        drawn = torch.multinomial(probability.flatten(0, -2), 1, generator=generator)
        return drawn.reshape(probability.shape[:-1])

    def describe(self, value: Tensor, present: Tensor) -> Tensor:
        """Codes [..., A] and mask [..., A] -> [..., S + A]: one-hot where known, zeros where not, then the mask."""
        hot = torch.zeros(*value.shape[:-1], self.total_size, device=value.device)
        hot.scatter_(-1, self._start.to(value.device) + value, present.to(hot.dtype))
        return torch.cat([hot, present.to(hot.dtype)], -1)

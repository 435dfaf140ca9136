"""SCAN's recombination operators: a small convolutional network over two posteriors, learned when SCAN is finished.

The network has the same weights for all dimensions of z, as SCAN's does (from memory): it computes mean and log
standard deviation of the result from those of both posteriors. Each operator has its own weights. So it can learn
"the narrower of both", but nothing about a single dimension.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.densities import ConditionalGaussian
from mmgen.descriptions import AND, IGNORE, OPERATORS, Expression
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.objectives import Bound
from mmgen.posteriors._aggregate import Aggregate
from mmgen.posteriors._base import drop_attributes
from mmgen.training.task import ALONE, Task

__all__ = ["OperatorTask", "Operators", "draw_recombination"]


class Operators(nn.Module):
    """Networks that combine two posteriors into one, a network for each operator: [B, 4, D] -> [B, 2, D].

    Args:
        hidden: Channels of the hidden layers.
    """

    def __init__(self, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(_make_network((4, *hidden, 2)) for _ in OPERATORS)

    def forward(self, operator: str, left: DiagonalGaussian, right: DiagonalGaussian) -> DiagonalGaussian:
        """Return the posterior [B, D] of the operator's combination of two posteriors [B, D]."""
        stacked = torch.stack([left.mean, left.log_sd, right.mean, right.log_sd], -2)
        mean, log_sd = self.networks[OPERATORS.index(operator)](stacked).unbind(-2)
        return DiagonalGaussian(mean, log_sd.clamp(-7, 4))

    def combine(self, recombination: Expression, leaves: list[DiagonalGaussian]) -> DiagonalGaussian:
        """Return the posterior of a nested recombination from ``leaves``, the posteriors of its plain descriptions in
        order.
        """
        if not recombination.operands:
            return leaves.pop(0)
        left, right = (self.combine(part, leaves) for part in recombination.operands)
        return self(recombination.operator, left, right)


def _make_network(widths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Conv1d(inputs, outputs, 1), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def draw_recombination(
    batch: Batch, name: str, operator: str
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Draw for each example two descriptions whose combination by an operator is true of it: (left, right, result).

    Each is a pair of codes and masks [B, A].
    """
    # The result is a random part of the example's own description. All other attributes of the two descriptions come
    # from other examples, so that they hold no information on this one.
    result = drop_attributes(batch, name, keep_all=0.0)
    values, mask = result.values[name], result.present[name]
    if operator == AND:
        # Each attribute is specified on the left, on the right, or on both sides.
        side = torch.randint(0, 3, mask.shape, device=mask.device)
        left, right = mask & (side != 1), mask & (side != 0)
        return _mask_codes(values, left), _mask_codes(values, right), (values, mask)
    left_extra_values, left_extra = _draw_further_attributes(batch, name, mask)
    left_values = torch.where(left_extra, left_extra_values, values)
    if operator == IGNORE:
        return _mask_codes(left_values, mask | left_extra), _mask_codes(left_extra_values, left_extra), (values, mask)
    right_extra_values, right_extra = _draw_further_attributes(batch, name, mask)
    right_extra = right_extra & ~(
        left_extra & (right_extra_values == left_extra_values)
    )  # what both said would be in common
    return (
        _mask_codes(left_values, mask | left_extra),
        _mask_codes(torch.where(right_extra, right_extra_values, values), mask | right_extra),
        (values, mask),
    )


def _draw_further_attributes(batch: Batch, name: str, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Add attributes of other examples where ``mask`` has none, each with probability 1/2: codes and mask [B, A]."""
    order = torch.randperm(len(mask), device=mask.device)
    values, present = batch.values[name][order], batch.present[name][order]
    return values, present & ~mask & (torch.rand(mask.shape, device=mask.device) < 0.5)


def _mask_codes(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return values.masked_fill(~mask, 0), mask


class OperatorTask(Task):
    """Training task of the operators of a finished SCAN, which maximises minus KL(q(z|x) || q(z|r)).

    Each operator is trained on a third of the examples.

    Args:
        aggregate: The finished SCAN, which stays unchanged.
        operators: Its networks to train.
    """

    quantity = "minus KL"

    def __init__(self, aggregate: Aggregate, operators: Operators) -> None:
        super().__init__()
        density = aggregate.density
        assert isinstance(density, ConditionalGaussian)
        aggregate.requires_grad_(False)
        operators.requires_grad_(True)
        self.operators = operators
        # In a list, so that only the operators are trained; all of it is saved.
        self._frozen = [(aggregate, density)]

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        aggregate, density = self._frozen[0]
        condition = aggregate.condition
        assert isinstance(condition, Attributes)
        third = torch.arange(batch.size, device=batch.device) % len(OPERATORS)
        value = aggregate.shift.new_zeros(batch.size)
        terms: dict[str, Tensor] = {}
        for number, operator in enumerate(OPERATORS):
            rows = (third == number).nonzero().squeeze(-1)
            learns = len(rows) > 0
            if not learns:  # of fewer examples than operators all are looked at, for the term alone
                rows = torch.arange(batch.size, device=batch.device)
            part = batch[rows]
            left, right, _ = draw_recombination(part, condition.name, operator)
            with torch.no_grad():
                left_posterior, right_posterior = (
                    density.distribution(aggregate.context(Batch({condition.name: v}, {condition.name: m})), part.size)
                    for v, m in (left, right)
                )
            encoded = DiagonalGaussian(part.values["mean"], part.values["log_sd"])
            kl = encoded.kl(self.operators(operator, left_posterior, right_posterior))
            if learns:
                value = value.index_add(0, rows, -kl)
            terms[f"KL, {operator}"] = kl.mean().expand(batch.size)
        return Bound(value, terms)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self._frozen[0][0].state_dict())

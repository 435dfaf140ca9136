"""SCAN's recombination operators: a small convolutional network over two posteriors, learned when SCAN is finished.

The network strides over the dimensions of z, as SCAN's does (from memory): of each it sees mean and log standard
deviation of both posteriors, and says those of the recombined one, by the same weights in all dimensions; each operator
has weights of its own. So it can say "the narrower of both", not "the place": that has to be in the posteriors.
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

__all__ = ["OperatorTask", "Operators", "recombined_parts"]


class Operators(nn.Module):
    """A network for each operator: [B, 4, D] of two posteriors to [B, 2, D] of one.

    Args:
        hidden: Channels of the hidden layers.
    """

    def __init__(self, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(_network((4, *hidden, 2)) for _ in OPERATORS)

    def forward(self, operator: str, left: DiagonalGaussian, right: DiagonalGaussian) -> DiagonalGaussian:
        """Return q(u | r) [B, D] of two posteriors [B, D]."""
        stacked = torch.stack([left.mean, left.log_sd, right.mean, right.log_sd], -2)
        mean, log_sd = self.networks[OPERATORS.index(operator)](stacked).unbind(-2)
        return DiagonalGaussian(mean, log_sd.clamp(-7, 4))

    def of(self, recombination: Expression, leaves: list[DiagonalGaussian]) -> DiagonalGaussian:
        """Return q(u | r) of a recombination; posteriors of its plain descriptions are taken from ``leaves`` in
        order.
        """
        if not recombination.operands:
            return leaves.pop(0)
        left, right = (self.of(part, leaves) for part in recombination.operands)
        return self(recombination.operator, left, right)


def _network(widths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Conv1d(inputs, outputs, 1), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


def recombined_parts(
    batch: Batch, name: str, operator: str
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Draw two descriptions and their recombination, which is true of each example: codes and masks [B, A] each."""
    # The result is a random part of the example's own description, and what else the two say comes from other examples,
    # so that it tells nothing of this one: among examples with the same parts, what is encoded is spread as among all
    # that the result is true of.
    meant = drop_attributes(batch, name, keep_all=0.0)
    values, mask = meant.values[name], meant.present[name]
    if operator == AND:
        # Each attribute is said on the left, on the right, or on both sides.
        side = torch.randint(0, 3, mask.shape, device=mask.device)
        left, right = mask & (side != 1), mask & (side != 0)
        return _described(values, left), _described(values, right), (values, mask)
    further, extra = _further(batch, name, mask)
    left_values = torch.where(extra, further, values)
    if operator == IGNORE:
        return _described(left_values, mask | extra), _described(further, extra), (values, mask)
    other, more = _further(batch, name, mask)
    more = more & ~(extra & (other == further))  # what both said would be in common
    return (
        _described(left_values, mask | extra),
        _described(torch.where(more, other, values), mask | more),
        (values, mask),
    )


def _further(batch: Batch, name: str, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Draw attributes of other examples where ``mask`` has none, each half the time: codes and mask [B, A]."""
    order = torch.randperm(len(mask), device=mask.device)
    values, present = batch.values[name][order], batch.present[name][order]
    return values, present & ~mask & (torch.rand(mask.shape, device=mask.device) < 0.5)


def _described(values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return values.masked_fill(~mask, 0), mask


class OperatorTask(Task):
    """Learns the operators of a finished SCAN: minus KL(q(z|x) || q(z|r)), each operator on a third of the examples.

    Args:
        aggregate: The finished SCAN, with operators still to be learned; all else of it stays as it is.
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
            left, right, _ = recombined_parts(part, condition.name, operator)
            with torch.no_grad():
                one, other = (
                    density.distribution(aggregate.context(Batch({condition.name: v}, {condition.name: m})), part.size)
                    for v, m in (left, right)
                )
            encoded = DiagonalGaussian(part.values["mean"], part.values["log_sd"])
            kl = encoded.kl(self.operators(operator, one, other))
            if learns:
                value = value.index_add(0, rows, -kl)
            terms[f"KL, {operator}"] = kl.mean().expand(batch.size)
        return Bound(value, terms)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self._frozen[0][0].state_dict())

r"""SCAN: a VAE of symbols beside a frozen VAE of images, whose posterior covers those of the images.

.. math:: E_{q(z|y)}[\log p(y|z)] - \beta_y \, KL(q(z|y) \,\|\, p(z)) - \lambda \, KL(q(z|x) \,\|\, q(z|y))

The second divergence has q(z|x) first: q(z|y) must cover every image with the words y, so that it is as wide as the
prior in dimensions that they leave open. q(z|x) is the frozen model's, p(y|z) is fitted too. Symbols are attributes,
each known or not: unknown ones enter q(z|y) by a mask and are left out of p(y|z). Attributes are dropped at random in
training, so that there are abstract concepts.

References:
    SCAN: Learning Hierarchical Compositional Visual Concepts (Higgins et al., 2018), arXiv:1707.03389
    Generative Models of Visually Grounded Imagination (Vedantam et al., 2018), Section 3
"""

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.densities import ConditionalGaussian
from mmgen.descriptions import AND, IGNORE, OPERATORS, Expression
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.models import Model
from mmgen.networks import AttributeNetwork, TextNetwork
from mmgen.objectives import CONFIG, Bound
from mmgen.posteriors._aggregate import Aggregate, Condition, Given, Layers, Networks
from mmgen.posteriors._base import DensityTask, FitParts, Request, Target, drop_attributes
from mmgen.results.naming import format_weight
from mmgen.training.task import ALONE, Task

__all__ = ["ScanTarget"]

_OPERATOR_HIDDEN = (64, 64)
"""Channels of the hidden layers of an operator's network."""


class ScanNetworks(Networks):
    """Networks of SCAN besides its density: p(y|z) of symbols y, and operators if they are learned."""

    def __init__(self, latent_size: int, condition: Condition, target: "ScanTarget") -> None:
        super().__init__()
        self.symbols: Any = None
        if condition is not None:
            sizes: Any = AttributeNetwork(decoder_hidden=target.decoder_hidden)
            if not isinstance(condition, Attributes):
                sizes = TextNetwork(embedding=32, hidden=target.decoder_hidden, dropout=0.0, batch_norm=False)
            self.symbols, self.decoder = condition.decoder(latent_size, sizes)
        if target.operators:
            self.recombine = Operators(_OPERATOR_HIDDEN)
            self.operators = OPERATORS

    def log_likelihood(self, z: Tensor, batch: Batch) -> Tensor:
        """Return log p(y|z) [B] of the known symbols in nats, for z [B, D]."""
        name = self.symbols.name
        value: Tensor = self.symbols.log_prob(self.decoder(z), batch.values[name], batch.present[name])
        return value

    def infer_recombined(self, recombination: Expression, leaves: list[DiagonalGaussian]) -> DiagonalGaussian:
        return self.recombine.combine(recombination, leaves)


class ScanTask(DensityTask):
    """Training task that maximises SCAN's objective over cached encodings q(z|x).

    Args:
        aggregate: q(z|y), with :class:`ScanNetworks`.
        target: The weights.
        keep_all: Probability that a description stays whole.
    """

    quantity = "objective"

    def __init__(self, aggregate: Aggregate, target: "ScanTarget", keep_all: float) -> None:
        super().__init__(aggregate, keep_all)
        self.target = target

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return SCAN's objective [B] in nats."""
        aggregate, target, density = self.aggregate, self.target, self.aggregate.density
        assert isinstance(density, ConditionalGaussian) and isinstance(aggregate.networks, ScanNetworks)
        batch = self.hide_attributes(batch)
        q = density.distribution(aggregate.context(batch), batch.size)
        log_likelihood = aggregate.networks.log_likelihood(q.sample(), batch)
        to_prior = q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean))
        encoded = DiagonalGaussian(batch.values["mean"], batch.values["log_sd"])
        from_images = encoded.kl(q)  # in this direction it covers all images
        value = target.symbols_weight * log_likelihood - target.beta * to_prior - target.images_weight * from_images
        terms = {"log p(y|z)": log_likelihood, "KL(q(z|y), p(z))": to_prior, "KL(q(z|x), q(z|y))": from_images}
        return Bound(value, terms)


@dataclass(frozen=True, config=CONFIG)
class ScanTarget(Target):
    """Target: SCAN, a VAE of symbols beside a frozen VAE of images, with recombination operators."""

    posterior: ClassVar[str] = "scan"
    family: ClassVar[str | None] = "gaussian"  # its divergences have closed forms

    symbols_weight: Annotated[float, Field(ge=0)] = 1.0
    """Weight of E log p(y|z)."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """beta_y, weight of KL(q(z|y) || p(z)) (SCAN: 1, from memory)."""
    images_weight: Annotated[float, Field(ge=0)] = 10.0
    """lambda, weight of KL(q(z|x) || q(z|y)) (SCAN: 10, from memory)."""
    decoder_hidden: Annotated[int, Field(ge=1)] = 128
    """Width of the hidden layers of p(y|z)."""
    operators: bool = False
    """Whether AND, IN COMMON and IGNORE are learned, on top of a finished SCAN with the same settings."""

    @property
    def learns_unlabelled(self) -> bool:
        return not self.operators

    @property
    def base(self) -> Target | None:
        return replace(self, operators=False) if self.operators else None

    @property
    def name_suffix(self) -> str:
        return " with operators" if self.operators else ""

    @property
    def file_name_parts(self) -> list[str]:
        words = {"symbols_weight": "symbols", "beta": "beta", "images_weight": "images"}
        changed = [key for key in words if getattr(self, key) != getattr(ScanTarget(), key)]
        parts = [f"{words[key]}-w{format_weight(getattr(self, key))}" for key in changed]
        return [*parts, "operators"] if self.operators else parts

    def complete_settings(self, request: Request) -> "ScanTarget":
        if request.data.attributes is None and request.data.text is None:
            raise UsageError(
                "--target scan needs a dataset with attributes or text, but the model's has neither; use --target "
                "aggregate with --given nothing, or another model"
            )
        return self

    def check(self, model: Model, given: Given, layers: Layers) -> None:
        if given == "nothing":
            raise UsageError("--target scan got --given nothing, expected attributes or text; leave --given out")
        if self.operators and given == "text":
            raise UsageError(
                "aggregate.target.operators needs --given attributes, but got --given text; use --given attributes"
            )
        if layers == "all" and len(model.latent.layers) > 1:
            raise UsageError(
                "--target scan got a model of several layers of z, expected one layer; fit to the top layer alone with "
                "--layers top"
            )

    def build_networks(self, latent_size: int, condition: Condition) -> Networks:
        return ScanNetworks(latent_size, condition, self)

    def build_task(self, parts: FitParts) -> Task:
        networks = parts.aggregate.networks
        assert isinstance(networks, ScanNetworks)
        if self.operators:
            return OperatorTask(parts.aggregate, networks.recombine)
        return ScanTask(parts.aggregate, self, parts.keep_all)


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

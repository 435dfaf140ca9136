r"""SCAN: a VAE of symbols beside a frozen VAE of images, whose posterior covers those of the images.

.. math:: E_{q(z|y)}[\log p(y|z)] - \beta_y \, KL(q(z|y) \,\|\, p(z)) - \lambda \, KL(q(z|x) \,\|\, q(z|y))

The second divergence has q(z|x) first: q(z|y) must cover every image with the words y, so that it is as wide as the
prior where they say nothing. q(z|x) is the frozen model's, p(y|z) is the aggregate's own. Symbols are attributes, each
known or not: what is unknown enters q(z|y) by a mask and is left out of p(y|z), it is not "no". Attributes are dropped
at random while it is fitted, so that there are abstract concepts.

References:
    SCAN: Learning Hierarchical Compositional Visual Concepts (Higgins et al., 2018), arXiv:1707.03389
    Generative Models of Visually Grounded Imagination (Vedantam et al., 2018), Section 3
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import Field
from pydantic.dataclasses import dataclass
from torch import Tensor

from mmgen.aggregates._base import Aggregate, Condition, Density, Family, Given, Layers
from mmgen.aggregates._conditional_gaussian import ConditionalGaussian
from mmgen.aggregates._scan_operators import Operators, OperatorTask
from mmgen.aggregates._targets import drop_attributes
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.descriptions import OPERATORS, Expression
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.models import Model
from mmgen.networks import AttributeNetwork, TextNetwork
from mmgen.objectives import CONFIG, Bound
from mmgen.training.task import ALONE, Task

__all__ = ["Scan"]

_OPERATOR_HIDDEN = (64, 64)
"""Channels of the hidden layers of an operator's network."""


class _ScanDensity(ConditionalGaussian):
    """q(z|y), with p(y|z) and the operators where it has them."""

    def __init__(self, latent_size: int, context_size: int, family: "Scan", condition: Condition) -> None:
        super().__init__(latent_size, context_size, family.hidden)
        self.symbols: Any = None
        if condition is not None:
            sizes: Any = AttributeNetwork(decoder_hidden=family.decoder_hidden)
            if not isinstance(condition, Attributes):
                sizes = TextNetwork(embedding=32, hidden=family.decoder_hidden, dropout=0.0, batch_norm=False)
            self.symbols, self.decoder = condition.decoder(latent_size, sizes)
        if family.operators:
            self.recombine = Operators(_OPERATOR_HIDDEN)
            self.operators = OPERATORS

    def log_likelihood(self, z: Tensor, batch: Batch) -> Tensor:
        """log p(y|z) of what is known of y, nats: z [B, D] -> [B]."""
        name = self.symbols.name
        found: Tensor = self.symbols.log_prob(self.decoder(z), batch.values[name], batch.present[name])
        return found

    def recombined(self, recombination: Expression, contexts: Sequence[Tensor]) -> DiagonalGaussian:
        return self.recombine.of(recombination, [self.distribution(context, 1) for context in contexts])


class _ScanTask(Task):
    """Maximises SCAN's objective over cached encodings q(z|x)."""

    quantity = "objective"

    def __init__(self, aggregate: Aggregate, family: "Scan", keep_all: float) -> None:
        super().__init__()
        self.aggregate = aggregate
        self.family = family
        self.keep_all = keep_all

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        aggregate, family, density = self.aggregate, self.family, self.aggregate.density
        assert isinstance(density, _ScanDensity)
        condition = aggregate.condition
        if isinstance(condition, Attributes):
            batch = drop_attributes(batch, condition.name, self.keep_all)
        q = density.distribution(aggregate.context(batch), batch.size)
        log_likelihood = density.log_likelihood(q.sample(), batch)
        to_prior = q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean))
        encoded = DiagonalGaussian(batch.values["mean"], batch.values["log_sd"])
        from_images = encoded.kl(q)  # in this direction it covers all images
        value = family.symbols_weight * log_likelihood - family.beta * to_prior - family.images_weight * from_images
        terms = {"log p(y|z)": log_likelihood, "KL(q(z|y), p(z))": to_prior, "KL(q(z|x), q(z|y))": from_images}
        return Bound(value, terms)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.aggregate.state_dict())


@dataclass(frozen=True, config=CONFIG)
class Scan(Family):
    """Symbols beside a frozen VAE of images, best a beta-VAE: SCAN, with its recombination operators."""

    posterior: ClassVar[str] = "scan"
    needs_words: ClassVar[bool] = True
    weights: ClassVar[Mapping[str, str]] = {"symbols_weight": "symbols", "beta": "beta", "images_weight": "images"}

    symbols_weight: Annotated[float, Field(ge=0)] = 1.0
    """Weight of E log p(y|z)."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """beta_y, weight of KL(q(z|y) || p(z)) (SCAN: 1, from memory)."""
    images_weight: Annotated[float, Field(ge=0)] = 10.0
    """lambda, weight of KL(q(z|x) || q(z|y)) (SCAN: 10, from memory)."""
    hidden: tuple[Annotated[int, Field(ge=1)], ...] = (256, 256)
    """Hidden layers of the network that gives mean and standard deviation of q(z|y)."""
    decoder_hidden: Annotated[int, Field(ge=1)] = 128
    """Width of the hidden layers of p(y|z)."""
    operators: bool = False
    """Whether AND, IN COMMON and IGNORE are learned, on top of a finished SCAN with the same settings."""

    def density(self, latent_size: int, context_size: int) -> Density:
        return self.density_given(latent_size, context_size, None)

    def density_given(self, latent_size: int, context_size: int, condition: Condition) -> Density:
        return _ScanDensity(latent_size, context_size, self, condition)

    @property
    def base(self) -> "Scan | None":
        return replace(self, operators=False) if self.operators else None

    def check(self, model: Model, given: Given, layers: Layers) -> None:
        if given == "nothing":
            raise UsageError("family scan got --given nothing, expected attributes or text: its symbols are words")
        if self.operators and given == "text":
            raise UsageError("operators got --given text, expected attributes: they recombine attribute=value")
        if layers == "all" and len(model.latent.layers) > 1:
            raise UsageError(
                "family scan got a model of several layers of z, whose prior is no standard Gaussian; fit it to the "
                "top one with --layers top"
            )

    def task(self, aggregate: Aggregate, keep_all: float) -> Task:
        density = aggregate.density
        assert isinstance(density, _ScanDensity)
        if self.operators:
            return OperatorTask(aggregate, density, density.recombine)
        return _ScanTask(aggregate, self, keep_all)

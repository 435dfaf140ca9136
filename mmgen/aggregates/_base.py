"""What every family of aggregate posteriors offers."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.descriptions import Expression, batch_of_queries
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.text import Text
from mmgen.models import Model
from mmgen.networks import TextEncoder, TextNetwork
from mmgen.training.task import Task

__all__ = ["Aggregate", "Condition", "Density", "Family", "Given", "Layers"]

Given = Literal["attributes", "text", "nothing"]
Layers = Literal["top", "all"]
Condition = Attributes | Text | None


class Density(nn.Module, ABC):
    """A conditional density over standardised latents u, in fp32 or fp64 always."""

    operators: tuple[str, ...] = ()
    """Words of :mod:`mmgen.descriptions` for which it has a network, see :meth:`recombined`."""

    @abstractmethod
    def log_prob(self, u: Tensor, context: Tensor | None) -> Tensor:
        """log q(u | context): u [..., B, D], context [B, X] or None -> [..., B], nats."""

    @abstractmethod
    def sample(self, context: Tensor | None, n: int, batch: int, generator: torch.Generator | None) -> Tensor:
        """n draws for each of ``batch`` contexts: [n, B, D]."""

    @abstractmethod
    def reparameterised(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor]:
        """Draws u [M, B, D] through which gradients flow, and weights [M, B] that sum to 1 over M.

        The expectation of f under q is estimated by sum_m weight_m f(u_m). M is 1 but for mixtures, whose discrete
        choice has no gradient: they give one draw per component, weighted by its probability.
        """

    def with_density(self, context: Tensor | None, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """The same draws and weights, and log q of the draws [M, B], nats."""
        u, weights = self.reparameterised(context, batch)
        return u, weights, self.log_prob(u, context)

    def recombined(self, recombination: Expression, contexts: Sequence[Tensor]) -> DiagonalGaussian:
        """q(u | r) [1, D] of a recombined description, by the networks of its :attr:`operators`.

        Args:
            recombination: What is wanted.
            contexts: The contexts [1, X] of its leaves, in their order.
        """
        raise NotImplementedError


class Family(ABC):
    """A family of densities with its settings; members are frozen pydantic dataclasses.

    Most are fitted to encodings or to the true posterior, as all families are. One with an objective of its own says
    what its posterior is called, brings its task, and sees z itself, without shift and scale.
    """

    posterior: ClassVar[str] = ""
    """The short word of its posterior where it has an objective of its own, such as "scan"; "" for the others."""
    needs_words: ClassVar[bool] = False
    """Whether it cannot be fitted to encodings alone, without descriptions."""
    weights: ClassVar[Mapping[str, str]] = {}
    """Its settings that weigh terms of its objective, and what each is called in names of files."""

    @abstractmethod
    def density(self, latent_size: int, context_size: int) -> Density:
        """A density over [.., latent_size] given contexts of ``context_size`` (0: none)."""

    def density_given(self, latent_size: int, context_size: int, condition: "Condition") -> Density:
        """The same for a family that must know more of what it is conditioned on, such as one that generates it."""
        return self.density(latent_size, context_size)

    @property
    def base(self) -> "Family | None":
        """The family, as far as settings go, whose finished fit this one starts from; None where it starts anew."""
        return None

    def check(self, model: Model, given: Given, layers: Layers) -> None:
        """Refuse, before any work, what it cannot be fitted to.

        Raises:
            UsageError: Says why.
        """
        return

    def task(self, aggregate: "Aggregate", keep_all: float) -> Task | None:
        """The objective of its own, over batches of encodings; None where it is fitted as all families are.

        Args:
            aggregate: What is fitted; it holds a density of this family.
            keep_all: Share of descriptions that stay whole.
        """
        return None


class Aggregate(nn.Module):
    """q(z | attributes), q(z | text) or q(z), fitted after training.

    Attributes are fed to the density as one-hot codes with a mask, so any part of them may be unknown. A sentence is
    read by a recurrent network that is trained with the density; its last state is fed to every step of a flow.

    Of a model with several layers of z it may be fitted to the top one alone, q(z_L | y): those below are then the
    model's own, z ~ q(z_L | y) p(z_{L-1} | z_L) ..., and it needs the model (:meth:`over`) to say anything of z.

    Args:
        latent_size: D, of the layers that it is fitted to.
        condition: What it is conditioned on; None for the marginal q(z).
        family: Its kind of density.
        text_network: Widths of the network that reads sentences.
        layers: "all", or "top" alone.
    """

    shift: Tensor
    scale: Tensor

    def __init__(
        self,
        latent_size: int,
        condition: Condition,
        family: Family,
        text_network: TextNetwork | None = None,
        layers: Layers = "all",
    ) -> None:
        super().__init__()
        self.latent_size = latent_size
        self.layers = layers
        # In a list, so that the frozen model's weights are neither trained nor saved with the aggregate.
        self._model: list[Model] = []
        self.condition = condition
        width = 0
        if isinstance(condition, Attributes):
            width = condition.description_size
        elif isinstance(condition, Text):
            # Without dropout: a draw and its density are two calls, and both must see the same context.
            network = replace(text_network or TextNetwork(), dropout=0.0)
            self.reader = TextEncoder(len(condition.vocabulary), network)
            width = self.reader.features
        self.density = family.density_given(latent_size, width, condition)
        # z = shift + scale * u: densities see latents of zero mean and unit variance, whatever the model made of them.
        self.register_buffer("shift", torch.zeros(latent_size))
        self.register_buffer("scale", torch.ones(latent_size))

    @property
    def given(self) -> Given:
        """What kind of description it is conditioned on."""
        if self.condition is None:
            return "nothing"
        return "text" if isinstance(self.condition, Text) else "attributes"

    def over(self, model: Model) -> Self:
        """The same, with the model that draws what lies below the top layer."""
        self._model = [model]
        return self

    def of_layers(self, z: Tensor) -> Tensor:
        """What it is fitted to of z or of encodings [..., D of all layers]: all, or the top layer."""
        if self.layers == "all":
            return z
        latent = self._below.latent
        return latent.split(z)[latent.top]

    @property
    def _below(self) -> Model:
        assert self._model, "an aggregate of the top layer says nothing of z without its model: see over"
        return self._model[0]

    def _whole(self, fitted: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """z of all layers from draws of those that it is fitted to."""
        return fitted if self.layers == "all" else self._below.below(fitted, generator)

    def _log_below(self, z: Tensor) -> Tensor | float:
        return 0.0 if self.layers == "all" else self._below.log_below(z)

    def standardise(self, mean: Tensor, log_sd: Tensor) -> None:
        """Set shift and scale to the moments of the aggregate of encodings [N, D]: of means plus mean variance.

        Args:
            mean: Mean of the layers that it is fitted to, as :meth:`of_layers` gives them.
            log_sd: Their log standard deviations.
        """
        self.shift.copy_(mean.mean(0))
        self.scale.copy_((mean.var(0) + (2 * log_sd).exp().mean(0)).sqrt().clamp_min(1e-6))

    def context(self, condition: Batch | None) -> Tensor | None:
        """What the density is given of descriptions [B, X]; None where it is conditioned on nothing.

        Raises:
            UsageError: There is no description, or none that it reads.
        """
        if self.condition is None:
            return None
        name = self.condition.name
        if condition is None or name not in condition.values:
            hint = "(it may leave attributes out)" if self.given == "attributes" else "in words"
            raise UsageError(f"this aggregate is conditioned on {name}; give a description {hint}")
        value, present = condition.values[name], condition.present[name]
        if isinstance(self.condition, Attributes):
            return self.condition.describe(value, present).to(self.shift.dtype)
        if not present.all():
            raise UsageError(f"this aggregate is conditioned on {name}, but an example has none; give whole sentences")
        return self.reader(value)

    def log_prob(self, z: Tensor, condition: Batch | None) -> Tensor:
        """log q(z | condition): z [..., B, D] -> [..., B], nats."""
        with torch.autocast(z.device.type, enabled=False):
            return self.log_fitted(self.of_layers(z), condition) + self._log_below(z)

    def log_fitted(self, fitted: Tensor, condition: Batch | None) -> Tensor:
        """The same of the layers alone that it is fitted to [..., B, D_fitted]."""
        with torch.autocast(fitted.device.type, enabled=False):
            u = (fitted - self.shift) / self.scale
            return self.density.log_prob(u, self.context(condition)) - self.scale.log().sum()

    def sample(self, condition: Batch | None, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n draws per description: [n, B, D]; without a condition B is 1."""
        with torch.autocast(self.shift.device.type, enabled=False):
            batch = condition.size if condition is not None else 1
            u = self.density.sample(self.context(condition), n, batch, generator)
            return self._whole(self.shift + self.scale * u, generator)

    def reparameterised(self, condition: Batch | None, batch: int) -> tuple[Tensor, Tensor]:
        """Differentiable draws z [M, B, D] and their weights [M, B]; see :meth:`Density.reparameterised`."""
        with torch.autocast(self.shift.device.type, enabled=False):
            u, weights = self.density.reparameterised(self.context(condition), batch)
            return self._whole(self.shift + self.scale * u), weights

    def with_density(self, condition: Batch | None, batch: int) -> tuple[Tensor, Tensor, Tensor]:
        """Differentiable draws z [M, B, D], their weights [M, B] and log q(z | condition) [M, B], nats."""
        with torch.autocast(self.shift.device.type, enabled=False):
            u, weights, log_q = self.density.with_density(self.context(condition), batch)
            z = self._whole(self.shift + self.scale * u)
            return z, weights, log_q - self.scale.log().sum() + self._log_below(z)

    def recombined(self, recombination: Expression, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n draws [n, 1, D] for a recombined description, by the operators of the density."""
        with torch.autocast(self.shift.device.type, enabled=False):
            q = self.posterior_of(recombination)
            return self._whole(q.sample(generator, (n,)), generator)

    def recombined_log_prob(self, z: Tensor, recombination: Expression) -> Tensor:
        """log q(z | r) of a recombined description: z [..., 1, D] -> [..., 1], nats."""
        with torch.autocast(z.device.type, enabled=False):
            return self.posterior_of(recombination).log_prob(self.of_layers(z)) + self._log_below(z)

    def posterior_of(self, recombination: Expression) -> DiagonalGaussian:
        """q(z | r) [1, D] over the layers that it is fitted to, of a recombined description.

        Raises:
            UsageError: The density has no operators.
        """
        assert self.condition is not None
        if not self.density.operators:
            raise UsageError(
                f"'{recombination}' needs operators, and this aggregate has none; give {recombination.meaning}"
            )
        name, device = self.condition.name, str(self.shift.device)
        leaves = [self.context(batch_of_queries(codes, name, device)) for codes in recombination.leaves]
        q = self.density.recombined(recombination, [leaf for leaf in leaves if leaf is not None])
        return DiagonalGaussian(self.shift + self.scale * q.mean, q.log_sd + self.scale.log())

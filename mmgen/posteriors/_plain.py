"""Posteriors without guidance: the prior, the encoder, a fitted density, and a fitted density with operators."""

from pathlib import Path

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.descriptions import OPERATORS, Expression
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models import DataSettings, Model
from mmgen.posteriors._aggregate import Aggregate
from mmgen.posteriors._posterior import Posterior
from mmgen.results.naming import LEARNED_PRIOR, PosteriorName, Weights


class Prior(Posterior):
    """The prior of the model: p(z), which ignores descriptions, or a p(z | words) that it has learned."""

    name = "prior"

    def __init__(self, model: Model, path: Path) -> None:
        self.model, self.path = model, path
        self.size = model.latent_size
        self.reads = model.prior_reads

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        return self.model.posterior(words, ()).sample(generator, (n,))

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        return self.model.posterior(words, ()).log_prob(z)

    def gaussian(self, words: Batch) -> DiagonalGaussian:
        """Return the posterior of B descriptions as a diagonal Gaussian [B, D]; refuse a model of several layers."""
        return _gaussian_posterior(self.model, self.path, self.name, words, ())


class Encoder(Posterior):
    """Posterior q(z | words) of the model's own inference network.

    Args:
        model: The model.
        data: The model's modalities.
        path: The model's checkpoint, for messages.
    """

    name = "own"

    def __init__(self, model: Model, data: DataSettings, path: Path) -> None:
        self.model, self.path = model, path
        self.size = model.latent_size
        parts = [part for part in (data.attributes, data.text) if part is not None]
        self.reads = tuple(part.name for part in parts if model.has_posterior((part.name,)))
        self._captions_spell_attributes = data.text is not None and bool(data.text.slots)

    def informative_modalities(self, words: Batch) -> tuple[str, ...]:
        """Return the modalities of descriptions to condition on; a caption that only repeats the attributes is left
        out.

        Free text has more information than attributes, so both are used. For an empty description it is the first
        modality that the network reads.
        """
        readable = [name for name in self.reads if name in words.values]
        present = [name for name in readable if bool(words.present[name].any())]
        if len(present) > 1 and (self._captions_spell_attributes or not self.model.has_posterior(tuple(present))):
            present = present[:1]
        return tuple(present or readable[:1])

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        return self.model.posterior(words, self._conditioning_modalities(words)).sample(generator, (n,))

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        return self.model.posterior(words, self._conditioning_modalities(words)).log_prob(z)

    def select_words(self, points: Batch, name: str | None) -> Batch:
        # With further modalities it would be another posterior.
        if name is None or name not in points.values or name not in self.reads:
            return points
        return points.select([name])

    def gaussian(self, words: Batch) -> DiagonalGaussian:
        """Return the posterior of B descriptions as a diagonal Gaussian [B, D]; refuse a model of several layers."""
        return _gaussian_posterior(self.model, self.path, self.name, words, self._conditioning_modalities(words))

    def _conditioning_modalities(self, words: Batch) -> tuple[str, ...]:
        names = self.informative_modalities(words)
        if not names:
            raise UsageError(
                f"got a description by {' and '.join(words.values)}, expected one by {' or '.join(self.reads)}, which "
                f"the encoder of {self.path} reads; describe by that, or use another posterior"
            )
        return names


class Fitted(Posterior):
    """Posterior that was fitted after training: q(z | attributes), q(z | text) or q(z).

    Args:
        name: Its name: "aggregate", "true" or "scan".
        aggregate: The density.
        size: D, the number of latents of the model.
        weights: Powers of p(words | z) in the target that it was fitted to.
        whole: Whether it was fitted to whole descriptions alone.
    """

    is_fitted = True

    def __init__(
        self, name: str, aggregate: Aggregate, size: int, weights: Weights | None = None, whole: bool = False
    ) -> None:
        self.whole = whole
        self.name, self.aggregate, self.size = name, aggregate, size
        self._weights: Weights = weights or {}
        self.reads = aggregate.reads
        self.operators = aggregate.operators
        self.completes = name != "scan"

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        if self.is_unconditional:
            return self.aggregate.sample(None, n * words.size, generator).reshape(n, words.size, -1)
        return self.aggregate.sample(words, n, generator)

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        return self.aggregate.log_prob(z, words)

    def log_density_with_error(self, z: Tensor, words: Batch) -> tuple[Tensor, Tensor | None]:
        return self.aggregate.log_prob_with_error(z, words)

    def select_words(self, points: Batch, name: str | None) -> Batch:
        # Of several conditions one is evaluated: pictures beside it would be another posterior.
        return points.select([name]) if self.aggregate.further and name in self.reads else points

    @property
    def few_candidates(self) -> int | None:
        return self.aggregate.few_candidates

    @property
    def log_density_cost(self) -> float:
        return self.aggregate.density.log_prob_cost

    @property
    def weights(self) -> Weights:
        return {**self._weights}

    @property
    def base(self) -> str:
        return LEARNED_PRIOR if self.is_unconditional else self.name

    @property
    def formula(self) -> str:
        return "q(z)" if self.is_unconditional else f"{PosteriorName(self.name)}(z|y)"

    @property
    def named(self) -> PosteriorName:
        return PosteriorName.of_fit(self.name, self.weights, not self.is_unconditional)

    def condition_on(self, expression: Expression | None) -> Posterior:
        if expression is not None and expression.operators & {*OPERATORS}:
            return Recombined(self, expression)
        return super().condition_on(expression)


class Recombined(Posterior):
    """Posterior of a description with AND, IN COMMON or IGNORE, which networks of the fitted density compute.

    Args:
        fitted: The fitted posterior.
        recombination: The description; the ``words`` of method calls are ignored.
    """

    is_fitted = True

    def __init__(self, fitted: Fitted, recombination: Expression) -> None:
        self.name, self.size = fitted.name, fitted.size
        self._aggregate, self._recombination = fitted.aggregate, recombination

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        return self._aggregate.sample_recombined(self._recombination, n, generator)

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        return self._aggregate.log_prob_recombined(z, self._recombination)


def _gaussian_posterior(
    model: Model, path: Path, name: str, words: Batch, conditions: tuple[str, ...]
) -> DiagonalGaussian:
    """Return q(z | conditions) as a diagonal Gaussian [B, D], or refuse a model of several layers."""
    posterior = model.posterior(words, conditions)
    if isinstance(posterior, DiagonalGaussian):
        return posterior
    raise UsageError(
        f"{path} has several layers of z, so that its posterior is no single Gaussian; draw from it with sample(...) "
        f"or posteriors['{name}'].sample(...)"
    )

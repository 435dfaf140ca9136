"""The interface of posteriors: densities over z, conditioned on descriptions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor

import mmgen.posteriors
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.descriptions import Expression
from mmgen.posteriors._arrays import latents_from
from mmgen.posteriors._guidance import Guidance
from mmgen.results.naming import (
    GuidanceReport,
    Weights,
    option_of_posterior,
    plain_posterior_name,
    posterior_name,
    posterior_title,
)
from mmgen.settings.arguments import check_arguments
from mmgen.settings.kinds import Count
from mmgen.settings.registry import format_unknown_name

__all__ = ["SLOW", "GuidedPosterior", "Posterior", "Posteriors"]

SLOW = 1e8
"""Floating-point operations of a log density from which many of them take long."""


class Posterior(ABC):
    """Base of posteriors q(z | words), including densities such as p(z) that ignore the words.

    Attributes:
        name: The name that users type: "prior", "own", "aggregate", "true" or "scan".
        size: D, the number of latents.
        reads: Modalities of a description that change the density, attributes before text; empty for p(z).
        is_fitted: Whether it was fitted after training.
        operators: Operators between descriptions that it has networks for, such as AND.
    """

    name: str
    size: int
    reads: tuple[str, ...] = ()
    is_fitted: bool = False
    operators: tuple[str, ...] = ()

    @check_arguments
    def sample(self, words: Batch, n: Count, generator: torch.Generator | None = None) -> Tensor:
        """Draw z [n, B, D]: n draws for each of B descriptions.

        Raises:
            UsageError: The posterior does not read these modalities, or the draws do not fit into memory.
        """
        check_memory(4 * self.size * n * words.size, f"{n:,} draws of {words.size:,} descriptions", "use fewer")
        return self.draw(words, n, generator)

    @check_arguments
    def log_prob(self, z: object, words: Batch) -> Tensor:
        """Return log q(z | words) [..., B] in nats for z [..., B, D].

        Raises:
            UsageError: The posterior does not read these modalities, or z has another shape.
        """
        if not isinstance(z, Tensor) or z.shape[-1:] != (self.size,) or not z.is_floating_point():
            z = latents_from(z, self.size).to(words.device)
        if z.dim() < 2 or z.shape[-2] not in (1, words.size):
            expected = f"[..., {words.size}, {self.size}]"
            raise UsageError(f"z got shape {list(z.shape)} for {words.size:,} descriptions, expected {expected}")
        return self.log_density(z, words)

    @abstractmethod
    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        """Draw z as :meth:`sample` does, without checks of arguments."""

    @abstractmethod
    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        """Return log q(z | words) as :meth:`log_prob` does, without checks of arguments."""

    def log_density_with_error(self, z: Tensor, words: Batch) -> tuple[Tensor, Tensor | None]:
        """Return log q(z | words) [..., B] in nats, and its standard errors [..., B]; None where it is exact."""
        return self.log_density(z, words), None

    @property
    def few_candidates(self) -> int | None:
        """Number of candidates of a guided draw by default, where draws are slow; None where they are fast."""
        return None

    @property
    def log_density_cost(self) -> float:
        """Floating-point operations of one log density, roughly; 0 for densities that cost next to nothing."""
        return 0.0

    @property
    def unguided(self) -> "Posterior":
        """This posterior without guidance."""
        return self

    @property
    def is_unconditional(self) -> bool:
        """True if no description changes the density, as for p(z) or a learned q(z)."""
        return not self.reads

    @property
    def weights(self) -> Weights:
        """Powers of p(words | z) in the density, by name: {"text_weight": 300.0}."""
        return {}

    @property
    def base(self) -> str:
        """Name in tables of the unguided density: its own name, or "learned prior" for q(z)."""
        return self.name

    @property
    def formula(self) -> str:
        """Density in symbols, without weights: "q_agg(z|y)"."""
        return posterior_name(self.name)

    @property
    def label(self) -> str:
        """Name for tables and legends: "q_true(w = 300)"."""
        return posterior_name(self.name, **self.weights)

    @property
    def title(self) -> str:
        """Name with an explanation, for headings: "q_agg: fitted to the aggregate"."""
        return posterior_title(self.name, **self.weights)

    @property
    def plain_name(self) -> str:
        """Name in plain words, without formulas: "where real pictures lie"; the title belongs beneath it."""
        return plain_posterior_name(self.name, **self.weights)

    def select_words(self, points: Batch, name: str | None) -> Batch:
        """Return the modalities of examples that condition the density; ``name`` is the modality to evaluate."""
        return points

    def condition_on(self, expression: Expression | None) -> "Posterior":
        """Return the posterior of one description with NOT, OR or operators; for None, a plain description, self.

        Args:
            expression: Negation and alternatives, or a recombination by operators; None for a plain description.

        Raises:
            UsageError: The posterior supports plain descriptions alone.
        """
        if expression is None:
            return self
        raise UsageError(
            f"posterior '{self.name}' got '{expression}', expected a description by attribute=value alone; use "
            "guidance, or describe without operators"
        )


class GuidedPosterior(Posterior):
    """Base of posteriors under guidance, by p(words | z) or by a flow itself.

    Attributes:
        guidance: Weight and method.
    """

    guidance: Guidance
    _base: Posterior

    @property
    def unguided(self) -> Posterior:
        return self._base

    @property
    def base(self) -> str:
        return self._base.base

    @property
    def label(self) -> str:
        return posterior_name(self.base, **self.weights)

    @property
    def title(self) -> str:
        return posterior_title(self.base, **self.weights)

    @property
    def plain_name(self) -> str:
        return plain_posterior_name(self.base, **self.weights)

    def select_words(self, points: Batch, name: str | None) -> Batch:
        return self._base.select_words(points, name)

    @property
    @abstractmethod
    def report(self) -> GuidanceReport:
        """Settings of guidance, and warnings about the draws so far."""

    @property
    def diagnostics(self) -> dict[str, float | int]:
        """Numbers that measure the quality of the draws so far; {} by default."""
        return {}

    @abstractmethod
    def find_guiding_modality(self, words: Batch) -> str | None:
        """Return the name of the modality that guides; None for descriptions that specify nothing."""


class Posteriors(Mapping[str, Posterior]):
    """Mapping from names to the posteriors of a trained model: "prior", "own" (its encoder) and a fitted one.

    Args:
        members: The posteriors; the last one is the default.
        path: The loaded file, for messages.
        model_path: The model's checkpoint, for messages.
        guide: Converts each posterior to a guided one; None for no guidance.
        fitted_only: Whether the fitted posterior alone can be guided so.
    """

    _SYNONYMS: ClassVar[Mapping[str, str]] = {"encoder": "own"}

    def __init__(
        self,
        members: Sequence[Posterior],
        path: Path,
        model_path: Path,
        guide: Callable[[Posterior], Posterior] | None = None,
        fitted_only: bool = False,
    ) -> None:
        self._every = tuple(members)
        self._members = {member.name: member for member in members if member.is_fitted or not fitted_only}
        self._path, self._model_path = path, model_path
        self._guide = guide

    def __getitem__(self, name: str) -> Posterior:
        """Return the posterior called ``name``.

        Raises:
            UsageError: The files hold no such posterior.
        """
        member = self._members.get(self._SYNONYMS.get(name, name))
        if member is None:
            raise self._unknown_posterior(name)
        return member if self._guide is None else self._guide(member)

    def __contains__(self, name: object) -> bool:
        return self._SYNONYMS.get(str(name), name) in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return ", ".join(self)

    @property
    def default(self) -> str:
        """Name of the posterior to use by default: the fitted one, else the encoder, else the prior."""
        return list(self._members)[-1]

    def apply_guidance(self, guide: Callable[[Posterior], Posterior] | None, fitted_only: bool = False) -> Self:
        """Return these posteriors, or only the fitted one, each changed by the function ``guide``; None removes
        guidance.
        """
        return type(self)(self._every, self._path, self._model_path, guide, fitted_only)

    def unguided(self, name: str) -> Posterior:
        """Return the posterior called ``name`` without guidance, also one that cannot be guided."""
        return type(self)(self._every, self._path, self._model_path)[name]

    def _unknown_posterior(self, name: str) -> UsageError:
        """Return the error for a name that no posterior has."""
        meant = option_of_posterior(name)
        if meant in self:
            return UsageError(format_unknown_name("posterior", name, list(self), suggestion=meant))
        name = meant or name
        if name in mmgen.posteriors.names() and mmgen.posteriors.get(name).posterior == name:
            return UsageError(
                f"{self._path} has no fitted posterior '{name}'; make one with: "
                f"mmgen fit-aggregate {self._model_path} --target {name}"
            )
        return UsageError(format_unknown_name("posterior", name, list(self)))

"""The interface of posteriors: densities over z, conditioned on descriptions."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import mmgen.posteriors
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.memory import check_memory
from mmgen.descriptions import OPERATORS, Expression
from mmgen.posteriors._arrays import latents_from
from mmgen.posteriors._candidates import CandidateStatistics
from mmgen.posteriors._completions import Completions
from mmgen.posteriors._guidance import Guidance
from mmgen.results.naming import PosteriorName, Weights
from mmgen.settings.arguments import check_arguments
from mmgen.settings.kinds import Count

SLOW = 1e8
"""Floating-point operations of a log density from which many of them take long."""
_COUNTED = 16_384
"""Largest number of whole descriptions in a density of a part."""
_TOGETHER = 32_768
"""Points of whole descriptions whose densities are computed together."""


class Posterior(ABC):
    """Base of posteriors q(z | words), including densities such as p(z) that ignore the words.

    Attributes:
        name: The name that users type: "prior", "own", "aggregate", "true" or "scan".
        size: D, the number of latents.
        reads: Modalities of a description that change the density, attributes before text; empty for p(z).
        is_fitted: Whether it was fitted after training.
        operators: Operators between descriptions that it has networks for, such as AND.
        completes: Whether open words of a description may be drawn first; False where an open word has a meaning of
            its own, as in SCAN.
    """

    name: str
    size: int
    reads: tuple[str, ...] = ()
    is_fitted: bool = False
    operators: tuple[str, ...] = ()
    completes: bool = True
    _find_completions: Callable[[], Completions] | None = None
    _expression: Expression | None = None

    @check_arguments
    def sample(self, words: Batch, n: Count, generator: torch.Generator | None = None) -> Tensor:
        """Draw z [n, B, D]: n draws for each of B descriptions, whose open words are drawn first.

        Raises:
            UsageError: The posterior does not read these modalities, or the draws do not fit into memory.
        """
        check_memory(4 * self.size * n * words.size, f"{n:,} draws of {words.size:,} descriptions", "use fewer")
        codes = self._open_codes(words)
        if codes is None:
            return self.draw(words, n, generator)
        known = self.completions
        drawn = []
        for part in codes:
            whole = known.sample(part, n, generator, self._expression)
            drawn.append(self.draw_each(known.batch(whole, str(words.device)), generator))
        return torch.stack(drawn, 1)

    @check_arguments
    def log_prob(self, z: object, words: Batch) -> Tensor:
        """Return log q(z | words) [..., B] in nats for z [..., B, D]; with open words the log of the mixture.

        Raises:
            UsageError: The posterior does not read these modalities, or z has another shape.
        """
        if not isinstance(z, Tensor) or z.shape[-1:] != (self.size,) or not z.is_floating_point():
            z = latents_from(z, self.size).to(words.device)
        if z.dim() < 2 or z.shape[-2] not in (1, words.size):
            expected = f"[..., {words.size}, {self.size}]"
            raise UsageError(f"z got shape {list(z.shape)} for {words.size:,} descriptions, expected {expected}")
        return self.log_prob_with_error(z, words)[0]

    def log_prob_with_error(self, z: Tensor, words: Batch) -> tuple[Tensor, Tensor | None]:
        """Return log q(z | words) [..., B] in nats, and its standard errors [..., B]; None where it is exact.

        Raises:
            UsageError: Very many whole descriptions agree with a part.
        """
        codes = self._open_codes(words)
        z = z.expand(*z.shape[:-2], words.size, z.shape[-1])
        if codes is None:
            return self.log_density_with_error(z, words)
        parts = [self._log_mixture(z[..., row, :], part) for row, part in enumerate(codes)]
        values, errors = (torch.stack(each, -1) for each in zip(*parts, strict=True))
        return values, errors if bool(errors.any()) else None

    def _log_mixture(self, z: Tensor, codes: NDArray[np.uint8]) -> tuple[Tensor, Tensor]:
        """Return the log density [...] of a part of a description [A] at z [..., D], and its standard errors."""
        whole, shares = self.completions.complete(codes, self._expression)
        if len(whole) > _COUNTED:
            raise UsageError(
                f"the log density of a part is a sum over {len(whole):,} whole descriptions, expected at most "
                f"{_COUNTED:,}; give more words"
            )
        values, errors = [], []
        together = max(1, _TOGETHER // max(1, z.shape[:-1].numel()))
        for start in range(0, len(whole), together):
            words = self.completions.batch(whole[start : start + together], str(z.device))
            each = z.unsqueeze(-2).expand(*z.shape[:-1], words.size, z.shape[-1])
            value, error = self.log_density_with_error(each, words)
            values.append(value.double())
            errors.append(torch.zeros_like(values[-1]) if error is None else error.double())
        value, weights = torch.cat(values, -1), torch.from_numpy(shares).to(z.device)
        total = (value + weights.log()).logsumexp(-1)
        parts = weights * (value - total.unsqueeze(-1)).exp()  # shares of the whole descriptions in the density at z
        return total.to(z.dtype), (parts * torch.cat(errors, -1)).square().sum(-1).sqrt().to(z.dtype)

    def _open_codes(self, words: Batch) -> NDArray[np.uint8] | None:
        """Return the codes [B, A] of descriptions that leave words open; None if there is nothing to complete."""
        if not self.is_completing or not self.reads:
            return None
        if self._expression is not None:
            return np.stack([self._expression.codes] * words.size)
        if all(bool(each.all()) or each.dim() == 1 for each in (words.present[name] for name in words.values)):
            return None  # before training descriptions are read; all but attributes are whole or missing
        return self.completions.open_codes(words, self.reads)

    @property
    def is_completing(self) -> bool:
        """True if open words of descriptions are drawn first."""
        return self._find_completions is not None and self.completes

    @property
    def completions(self) -> Completions:
        """Distribution of whole descriptions, from which open words are drawn.

        Raises:
            UsageError: The training descriptions cannot be read.
        """
        assert self._find_completions is not None, "this posterior completes no descriptions"
        return self._find_completions()

    def completing(self, find: Callable[[], Completions] | None) -> Self:
        """Return this posterior, which completes descriptions by what ``find`` returns; None for as they are given."""
        changed = copy.copy(self)
        changed._find_completions = find
        return changed

    @abstractmethod
    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        """Draw z as :meth:`sample` does, of descriptions as they are, without checks of arguments."""

    def draw_each(self, words: Batch, generator: torch.Generator | None) -> Tensor:
        """Draw z [B, D]: one draw for each of B descriptions as they are, of which many may be equal."""
        return self.draw(words, 1, generator)[0]

    @abstractmethod
    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        """Return log q(z | words) as :meth:`log_prob` does, of descriptions as they are, without checks of
        arguments.
        """

    def log_density_with_error(self, z: Tensor, words: Batch) -> tuple[Tensor, Tensor | None]:
        """Return the log density of descriptions as they are, and its errors as :meth:`log_prob_with_error` does."""
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
    def named(self) -> PosteriorName:
        """What it is called in tables, headings and legends, with its weights."""
        return PosteriorName(self.base, **self.weights)

    @property
    def formula(self) -> str:
        """Density in symbols, without weights: "q_agg(z|y)"."""
        return str(PosteriorName(self.name))

    def recording(self, statistics: CandidateStatistics) -> Self:
        """Return this posterior, which adds statistics of the candidates of its draws, if any, to ``statistics``."""
        return self

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
        if expression.operators & {*OPERATORS} or not self.is_completing:
            raise UsageError(
                f"posterior '{self.name}' got '{expression}', expected a description by attribute=value alone, since "
                "it completes no descriptions; describe without operators"
            )
        conditioned = copy.copy(self)
        conditioned._expression = expression
        return conditioned


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

    def select_words(self, points: Batch, name: str | None) -> Batch:
        return self._base.select_words(points, name)

    def describe_draws(self, statistics: CandidateStatistics) -> str:
        """Return a warning about recorded draws, such as too few candidates; "" by default."""
        return ""

    def measure_draws(self, statistics: CandidateStatistics) -> dict[str, float | int]:
        """Return numbers that measure the quality of recorded draws; {} by default."""
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
        completions: Returns the distribution by which descriptions are completed; None for as they are given.
    """

    _SYNONYMS: ClassVar[Mapping[str, str]] = {"encoder": "own"}

    def __init__(
        self,
        members: Sequence[Posterior],
        path: Path,
        model_path: Path,
        completions: Callable[[], Completions] | None = None,
    ) -> None:
        self._every = tuple(members)
        self._members = {member.name: member for member in members}
        self._path, self._model_path = path, model_path
        self._guide: Callable[[Posterior], Posterior] | None = None
        self._completions = completions
        self._statistics: dict[str, CandidateStatistics] | None = None

    def __getitem__(self, name: str) -> Posterior:
        """Return the posterior called ``name``.

        Raises:
            UsageError: The files hold no such posterior.
        """
        member = self._members.get(self._SYNONYMS.get(name, name))
        if member is None:
            raise self._unknown_posterior(name)
        found = member if self._guide is None else self._guide(member)
        if self._statistics is not None:
            found = found.recording(self._statistics.setdefault(found.name, CandidateStatistics()))
        return found.completing(self._completions)

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
        changed = copy.copy(self)
        changed._guide = guide
        changed._members = {one.name: one for one in self._every if one.is_fitted or not fitted_only}
        return changed

    def completing(self, completions: Callable[[], Completions] | None) -> Self:
        """Return these posteriors, which complete descriptions by ``completions``; None for as they are given."""
        changed = copy.copy(self)
        changed._completions = completions
        return changed

    def recording(self, statistics: dict[str, CandidateStatistics]) -> Self:
        """Return these posteriors, whose guided draws add to ``statistics``, by name of the posterior."""
        changed = copy.copy(self)
        changed._statistics = statistics
        return changed

    def unguided(self, name: str) -> Posterior:
        """Return the posterior called ``name`` without guidance, also one that cannot be guided."""
        return self.apply_guidance(None)[name]

    def _unknown_posterior(self, name: str) -> UsageError:
        """Return the error for a name that no posterior has."""
        if name in mmgen.posteriors.names() and mmgen.posteriors.get(name).posterior == name:
            return UsageError(
                f"{self._path} has no fitted posterior '{name}'; make one with: "
                f"mmgen fit-aggregate {self._model_path} --target {name}"
            )
        return UsageError(format_unknown_name("posterior", name, list(self)))

r"""Guided posteriors: densities over z, reweighted by p(words | z) of the model's own decoder.

.. math:: q_w(z|y) = \frac{q(z|y) \, p(y|z)^w}{Z_w(y)}, \quad Z_w(y) = E_{q(z|y)}[p(y|z)^w]

q is any density that latents can be drawn from: fitted to the aggregate or to the true posterior, the model's own
q(z|y), the prior p(z), or a learned prior q(z). w = 0 leaves it as it is; under p(z), w = 1 is the model's own p(z|y)
of whole descriptions.

Draws are by self-normalised importance resampling: of M candidates from q one is taken with probability proportional to
p(y|z)^w, and as M grows it has the density q_w. It acts on whole descriptions: words that are left open are drawn
first (:mod:`mmgen.posteriors._completions`), so that they keep their shares. Where a description stays partial, its
open words are left out of p(y|z).

References:
    Latent Constraints: Learning to Generate Conditionally from Unconditional Generative Models (Engel, Hoffman,
    Roberts, 2018), arXiv:1711.05772
    Controllable and Compositional Generation with Latent-Space Energy-Based Models (Nie, Vahdat, Anandkumar, 2021),
    arXiv:2110.10873
    Diffusion Models Beat GANs on Image Synthesis (Dhariwal, Nichol, 2021), arXiv:2105.05233
"""

import copy
import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.seeding import torch_generator
from mmgen.posteriors._candidates import CandidateStatistics, Resampled, SharedDraws, log_mean_weight, resample
from mmgen.posteriors._guidance import Guidance, WordLikelihood
from mmgen.posteriors._posterior import GuidedPosterior, Posterior
from mmgen.results.naming import Weights

_EFFECTIVE, _CANDIDATES = 10.0, 4096
"""Effective sample size of candidates to reach, and largest number of candidates, by default."""
_POOLS = 2
"""Largest number of cached pools."""
_ERROR = 0.01
"""Standard error of log Z to reach, nats."""
_FIRST_NORMALISER, _MOST_NORMALISER = 4096, 262_144
_LATENTS = 32_768
"""Latents evaluated together."""
_ALIKE = 0.9
"""Effective sample size, as a share of the candidates, above which guidance has nearly no effect."""


@dataclass(frozen=True)
class Estimates:
    """Cache of estimates of guided posteriors of one model, which depend on their settings and seed, never on draws.

    Attributes:
        pools: Draws from unconditional densities, shared by all weights of guidance.
        normalisers: log Z_w and its standard error.
    """

    pools: dict[tuple[str, int], SharedDraws] = field(default_factory=dict)
    normalisers: dict[tuple[str, Guidance, int, bytes], tuple[float, float]] = field(default_factory=dict)


class Guided(GuidedPosterior):
    """Guided posterior q_w(z | words), proportional to a posterior times p(words | z)^w.

    Args:
        base: The posterior to guide.
        likelihood: p(words | z) of the model.
        guidance: w > 0, and the number of candidates.
        seed: Seed of the shared draws, if the base reads no description.
        estimates: Cache of the model.

    Attributes:
        effective: Effective sample size of candidates to reach.
        candidates: Largest number of candidates.
    """

    def __init__(
        self,
        base: Posterior,
        likelihood: WordLikelihood,
        guidance: Guidance,
        seed: int = 0,
        estimates: Estimates | None = None,
    ) -> None:
        self._base, self.likelihood, self.guidance = base, likelihood, guidance
        self.name, self.size, self.is_fitted, self.completes = base.name, base.size, base.is_fitted, base.completes
        data = likelihood.data
        parts = [part.name for part in (data.attributes, data.text) if part is not None]
        self.reads = tuple(name for name in parts if name in (*base.reads, *likelihood.names))
        self._seed = seed
        self._estimates = Estimates() if estimates is None else estimates
        self._statistics: CandidateStatistics | None = None
        few = None if base.is_unconditional or guidance.effective or guidance.candidates else base.few_candidates
        self.effective = guidance.effective or (1.0 if few else _EFFECTIVE)
        self.candidates = guidance.candidates or few or _CANDIDATES

    @property
    def weights(self) -> Weights:
        # A posterior fitted with guidance and guided again has the sum of both weights.
        weights = self.unguided.weights
        weights["guidance"] = self.guidance.weight + weights.get("guidance", 0.0)
        return weights

    def recording(self, statistics: CandidateStatistics) -> Self:
        changed = copy.copy(self)
        changed._statistics = statistics
        return changed

    def measure_draws(self, statistics: CandidateStatistics) -> dict[str, float | int]:
        """Return the smallest and median effective sample size, the number of candidates, and the settings."""
        if not statistics.effective:
            return {}
        return {
            "smallest_effective_sample_size": min(statistics.effective),
            "median_effective_sample_size": float(np.median(statistics.effective)),
            "candidates": max(statistics.candidates),
            "wanted_effective_sample_size": self.effective,
            "most_candidates": self.candidates,
        }

    def describe_draws(self, statistics: CandidateStatistics) -> str:
        """Warn of draws from too few effective candidates, and from candidates that are nearly alike."""
        warnings, all_descriptions = [], f"of {len(statistics.effective):,} descriptions"
        pooled, least = self.unguided.is_unconditional, self.effective
        # If the effective size of a pool is less than the number of draws, these repeat each other.
        pairs = zip(statistics.effective, statistics.draws, strict=True)
        few = [size for size, draws in pairs if size < (max(least, draws) if pooled else least)]
        if few:
            some_descriptions = f"for {len(few):,} {all_descriptions}"
            smallest, most = f"(smallest: {min(few):,.1f})", max(statistics.candidates)
            more = replace(self.guidance, candidates=min(4 * self.candidates, 2**20))
            warnings.append(
                f"guidance {self.guidance} draws from one pool of {most:,}: {some_descriptions} its effective "
                f"sample size is below the number of draws {smallest}, so that draws repeat each other and vary less "
                "than they should; ask for fewer, use a smaller weight, or guide a posterior that is fitted to "
                "descriptions"
                if pooled
                else f"guidance {self.guidance} found few latents that match the words: {some_descriptions} the "
                f"effective sample size among {most:,} candidates was small {smallest}, so that draws resemble "
                f"each other; use a smaller weight, another posterior to guide, or more candidates, --guidance {more}"
            )
        candidates = zip(statistics.effective, statistics.candidates, strict=True)
        alike = sum(size > _ALIKE * count for size, count in candidates)
        # A weight below 1 is meant to change little.
        if self.guidance.weight >= 1 and 2 * alike > len(statistics.effective):
            warnings.append(
                f"guidance {self.guidance} changes next to nothing for {alike:,} {all_descriptions}: "
                "p(words | z) of this model is nearly the same for all candidates, whatever their pictures show"
            )
        return "; ".join(warnings)

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        return torch.cat(
            [self._draw_for_description(words[slice(b, b + 1)], n, generator) for b in range(words.size)], 1
        )

    def draw_each(self, words: Batch, generator: torch.Generator | None) -> Tensor:
        codes = torch.cat([each.flatten(1) for each in self.likelihood.codes(words).values()], 1)
        distinct, of = codes.unique(dim=0, return_inverse=True)
        places = [(of == number).nonzero().flatten() for number in range(len(distinct))]
        z = [self._draw_for_description(words[rows[:1]], len(rows), generator)[:, 0] for rows in places]
        return torch.cat(z)[torch.cat(places).argsort()]

    def log_density(self, z: Tensor, words: Batch) -> Tensor:
        """Return log q_w(z | words) [..., B] in nats, up to the error of :meth:`normaliser`.

        This is the density of draws from infinitely many candidates. :meth:`draw` uses a finite number, so its draws
        lie a little nearer to the base.
        """
        return self.log_density_with_error(z, words)[0]

    @torch.no_grad()
    def log_density_with_error(self, z: Tensor, words: Batch) -> tuple[Tensor, Tensor | None]:
        log_z, _ = self.normaliser(words)
        value, error = self.unguided.log_density_with_error(z, words)
        return value + self.log_weight(z, words) - log_z, error

    @property
    def log_density_cost(self) -> float:
        return self.unguided.log_density_cost

    @torch.no_grad()
    def log_weight(self, z: Tensor, words: Batch, parameters: Tensor | None = None) -> Tensor:
        """Return the log of the factor by which guidance multiplies the posterior, without its normaliser, in nats and
        fp64.

        Args:
            z: Latents [..., B, D], or [K, D] for one description.
            words: The B descriptions.
            parameters: Output of the decoder of attributes for z, if known.

        Returns:
            [..., B], or [K].
        """
        log_words = self.likelihood.log_prob(z, words, parameters, self.unguided.reads)
        return self.guidance.weight * log_words.double()

    def find_guiding_modality(self, words: Batch) -> str | None:
        """Return the name of the modality y whose p(y|z) guides; None for empty descriptions."""
        return (
            self.likelihood.select_modality(words, self.unguided.reads)
            if self.likelihood.specified_modalities(words)
            else None
        )

    @torch.no_grad()
    def normaliser(self, words: Batch) -> tuple[Tensor, Tensor]:
        """Estimate log Z_w [B] of B descriptions with standard errors [B], in nats; equal descriptions share an
        estimate.
        """
        pairs = [pair for _, pair in self._log_normalisers(words)]
        values, errors = torch.tensor(pairs, dtype=torch.float64, device=words.device).unbind(1)
        return values, errors

    def normaliser_error(self, words: Batch) -> float:
        """Return the standard error in nats that estimates of log Z_w add to a mean over B descriptions.

        Equal descriptions share their error. If all descriptions share one pool, errors may be equal, so they are
        added up.
        """
        errors: dict[bytes, float] = {}
        for key, (_, error) in self._log_normalisers(words):
            errors[key] = errors.get(key, 0.0) + error
        total = sum(errors.values()) if self.unguided.is_unconditional else math.hypot(*errors.values())
        return total / words.size

    @torch.no_grad()
    def _draw_for_description(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        """Draw z [n, 1, D] of one description."""
        base = self.unguided
        if not self.likelihood.specified_modalities(words):
            return base.draw(words, n, generator)  # p(nothing | z) = 1
        self.likelihood.check_readable(base.name, base.reads, words)
        chosen: Resampled
        if base.is_unconditional:
            chosen = self._shared_draws.resample(self._shared_weights(words), n, generator)
        else:
            chosen = resample(
                lambda count: base.draw(words, count, generator)[:, 0],
                lambda z: self.log_weight(z, words),
                n,
                self.effective,
                _LATENTS,
                generator,
                self.candidates,
            )
        if self._statistics is not None:
            self._statistics.add(chosen)
        return chosen.z[:, None]

    @property
    def _shared_draws(self) -> SharedDraws:
        """Pool of draws from an unconditional posterior that guidance starts from."""
        more = f", {self.candidates}" if self.candidates > _CANDIDATES else ""  # its pool may be larger
        known, key = self._estimates.pools, (self.name + more, self._seed)
        if key not in known:
            while len(known) >= _POOLS:
                del known[next(iter(known))]
            model = self.likelihood.model
            device = next(model.parameters()).device
            generator = torch_generator(self._seed, "guidance pool", self.name, device=str(device))
            name = self.likelihood.names[0]  # a batch of one description; its content does not matter
            description = Batch(
                {name: torch.zeros(1, 1, dtype=torch.int64, device=device)},
                {name: torch.zeros(1, dtype=torch.bool, device=device)},
            )
            known[key] = SharedDraws.draw(
                lambda count: self.unguided.draw(description, count, generator)[:, 0],
                self.size,
                self.candidates,
            )
        return known[key]

    def _shared_logits(self, name: str) -> Tensor:
        """Return logits of attributes [P, S], decoded from the pool of draws."""
        pool = self._shared_draws
        if name not in pool.logits:
            with torch.no_grad(), torch.autocast(pool.z.device.type, enabled=False):
                parts = [self.likelihood.model.decode(name, z) for z in pool.z.split(_LATENTS)]
            pool.logits[name] = torch.cat(parts)
        return pool.logits[name]

    def _shared_weights(self, words: Batch) -> Tensor:
        """Return log weights [P] of the pool of draws for one description."""
        pool, name = self._shared_draws, self.likelihood.select_modality(words)
        known = self._shared_logits(name) if self.likelihood.is_attributes(name) else None
        parts = []
        for start in range(0, len(pool.z), _LATENTS):
            rows = slice(start, start + _LATENTS)
            parts.append(self.log_weight(pool.z[rows], words, None if known is None else known[rows]))
        return torch.cat(parts)

    def _log_normalisers(self, words: Batch) -> list[tuple[bytes, tuple[float, float]]]:
        """Return a key of each description, with log Z_w and its standard error."""
        name = self.find_guiding_modality(words)
        pairs = []
        for row in range(words.size):
            if name is None:
                pairs.append((b"", (0.0, 0.0)))
                continue
            description = words[slice(row, row + 1)]
            codes = b"".join(part.cpu().numpy().tobytes() for part in self.likelihood.codes(description).values())
            key = name.encode() + codes
            known, entry = self._estimates.normalisers, (self.name, self.guidance, self._seed, key)
            if entry not in known:
                known[entry] = self._estimate_normaliser(description, name, key)
            pairs.append((key, known[entry]))
        return pairs

    @torch.no_grad()
    def _estimate_normaliser(self, description: Batch, name: str, key: bytes) -> tuple[float, float]:
        if not description.present[name].any():
            return 0.0, 0.0
        generator = torch_generator(self._seed, "normaliser", self.name, key.hex(), device=str(description.device))
        parts = [self._shared_weights(description)] if self.unguided.is_unconditional else []
        count_so_far = sum(len(part) for part in parts)
        needed = max(count_so_far, _FIRST_NORMALISER)
        while True:
            while count_so_far < needed:
                count = min(_LATENTS, needed - count_so_far)
                z = self.unguided.draw(description, count, generator)[:, 0]
                parts.append(self.log_weight(z, description))
                count_so_far += count
            value, error = log_mean_weight(torch.cat(parts))
            if error <= _ERROR or needed >= _MOST_NORMALISER:
                return value, error
            needed = min(_MOST_NORMALISER, 2 * needed)

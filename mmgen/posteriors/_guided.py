r"""Guided posteriors: densities over z, reweighted by p(words | z) of the model's own decoder.

.. math:: q_w(z|y) = \frac{q(z|y) \, p(y|z)^w}{Z_w(y)}, \quad Z_w(y) = E_{q(z|y)}[p(y|z)^w]

q is any density that latents can be drawn from: fitted to the aggregate or to the true posterior, the model's own
q(z|y), the prior p(z), or a learned prior q(z). w = 0 leaves it as it is; under p(z), w = 1 is the model's own p(z|y).

Draws are by self-normalised importance resampling: of M candidates from q one is taken with probability proportional to
p(y|z)^w, and as M grows it has the density q_w. Attributes that are not given are left out of p(y|z); balanced
guidance keeps their shares (:mod:`mmgen.posteriors._balance`).

References:
    Latent Constraints: Learning to Generate Conditionally from Unconditional Generative Models (Engel, Hoffman,
    Roberts, 2018), arXiv:1711.05772
    Controllable and Compositional Generation with Latent-Space Energy-Based Models (Nie, Vahdat, Anandkumar, 2021),
    arXiv:2110.10873
    Diffusion Models Beat GANs on Image Synthesis (Dhariwal, Nichol, 2021), arXiv:2105.05233
"""

import copy
import math

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.seeding import torch_generator
from mmgen.descriptions import OPERATORS, Expression
from mmgen.posteriors._balance import Balance, Candidates, description_key
from mmgen.posteriors._candidates import Resampled, SharedDraws, log_mean_weight, resample
from mmgen.posteriors._counts import CandidateStatistics
from mmgen.posteriors._guidance import BALANCED, Guidance
from mmgen.posteriors._likelihood import WordLikelihood
from mmgen.posteriors._posterior import GuidedPosterior, Posterior
from mmgen.results.naming import GuidanceReport, Weights

__all__ = ["Guided", "Pools"]

_EFFECTIVE, _CANDIDATES = 10.0, 4096
"""Effective sample size of candidates to reach, and largest number of candidates, by default."""
_POOLS = 2
"""Largest number of cached pools."""
_ERROR = 0.01
"""Standard error of log Z to reach, nats."""
_FIRST_NORMALISER, _MOST_NORMALISER = 4096, 262_144
_LATENTS = 32_768
"""Latents evaluated together."""

Pools = dict[tuple[str, int], SharedDraws]


class Guided(GuidedPosterior):
    """Guided posterior q_w(z | words), proportional to a posterior times p(words | z)^w.

    Args:
        base: The posterior to guide.
        likelihood: p(words | z) of the model.
        guidance: w > 0, the number of candidates, and whether unspecified attributes keep their shares.
        seed: Seed of the shared draws, if the base reads no description, and of the draws for balancing.
        pools: Cache of draws from unconditional densities, shared by all weights of guidance.

    Attributes:
        effective: Effective sample size of candidates to reach.
        candidates: Largest number of candidates.

    Raises:
        UsageError: Balance is requested, but the model generates no attributes or the base was fitted with guidance.
    """

    def __init__(
        self,
        base: Posterior,
        likelihood: WordLikelihood,
        guidance: Guidance,
        seed: int = 0,
        pools: Pools | None = None,
    ) -> None:
        self._base, self.likelihood, self.guidance = base, likelihood, guidance
        self.name, self.size, self.is_fitted = base.name, base.size, base.is_fitted
        data = likelihood.data
        parts = [part.name for part in (data.attributes, data.text) if part is not None]
        self.reads = tuple(name for name in parts if name in (*base.reads, *likelihood.names))
        if guidance.method == BALANCED and base.weights.get("guidance"):
            raise UsageError(
                f"balanced guidance got posterior '{base.name}', which was fitted with guidance and has lost the "
                "shares to keep; balance the plain q_agg, or guide this one without :balanced"
            )
        self._seed = seed
        self._pools = {} if pools is None else pools
        few = None if base.is_unconditional or guidance.effective or guidance.candidates else base.few_candidates
        self.effective = guidance.effective or (1.0 if few else _EFFECTIVE)
        self.candidates = guidance.candidates or few or _CANDIDATES
        self._statistics = CandidateStatistics(guidance, self.effective, self.candidates, base.is_unconditional)
        self._normalisers: dict[bytes, tuple[float, float]] = {}
        self._balance = Balance(likelihood, self._draw_candidates) if guidance.method == BALANCED else None
        self._expression: Expression | None = None

    @property
    def weights(self) -> Weights:
        # A posterior fitted with guidance and guided again has the sum of both weights.
        weights = self.unguided.weights
        weights["guidance"] = self.guidance.weight + weights.get("guidance", 0.0)
        if self.guidance.method:
            weights["method"] = self.guidance.method
        return weights

    @property
    def report(self) -> GuidanceReport:
        """Settings of guidance, and warnings about the draws so far."""
        notices = [*self._statistics.notices, self._balance.notice if self._balance is not None else ""]
        weights = self.weights
        notice = "; ".join(filter(None, notices))
        return GuidanceReport(self.base, weights["guidance"], notice, weights.get("text_weight"), self.guidance.method)

    @property
    def diagnostics(self) -> dict[str, float | int]:
        """Effective sample sizes of candidates, and measures of balance, over all descriptions so far."""
        return self._statistics.diagnostics | (self._balance.diagnostics if self._balance is not None else {})

    def condition_on(self, expression: Expression | None) -> Posterior:
        """Return the guided posterior of one description; NOT and OR change p(words | z), not the posterior it starts
        from.
        """
        if expression is None:
            return self
        if expression.operators & {*OPERATORS}:
            return super().condition_on(expression)
        guided = copy.copy(self)  # what it counts and has drawn stays shared
        guided._expression = expression
        return guided

    def draw(self, words: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        return torch.cat(
            [self._draw_for_description(words[slice(b, b + 1)], n, generator) for b in range(words.size)], 1
        )

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
        return self._log_weight(z, words, self._expression, parameters)

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
        expression, base = self._expression, self.unguided
        specified = self.likelihood.specified_modalities(words)
        if expression is None and not specified:
            return base.draw(words, n, generator)  # p(nothing | z) = 1
        self.likelihood.check_readable(base.name, base.reads, words, expression)
        chosen: Resampled
        if base.is_unconditional:
            chosen = self._shared_draws.resample(self._shared_weights(words, expression), n, generator)
        else:
            chosen = resample(
                lambda count: base.draw(words, count, generator)[:, 0],
                lambda z: self._log_weight(z, words, expression),
                n,
                self.effective,
                _LATENTS,
                generator,
                self.candidates,
            )
        self._statistics.add(chosen, n)
        return chosen.z[:, None]

    @torch.no_grad()
    def _log_weight(
        self, z: Tensor, words: Batch, expression: Expression | None, parameters: Tensor | None = None
    ) -> Tensor:
        likelihood = self.likelihood
        if self._balance is not None:
            name = likelihood.require_attributes().name
            specified = likelihood.specified_modalities(words)
            if expression is None and specified and name not in specified:
                raise UsageError(
                    "balanced guidance got a caption, expected attributes, of which some may be left out; describe by "
                    "attributes, or guide without :balanced"
                )
            if parameters is None:  # decoded once for both terms
                with torch.autocast(z.device.type, enabled=False):
                    parameters = likelihood.model.decode(name, z)
        log_words = likelihood.log_prob(z, words, expression, parameters, self.unguided.reads)
        weight = self.guidance.weight * log_words.double()
        return weight if self._balance is None else weight + self._balance(z, words, expression, parameters)

    @property
    def _shared_draws(self) -> SharedDraws:
        """Pool of draws from an unconditional posterior that guidance starts from."""
        more = f", {self.candidates}" if self.candidates > _CANDIDATES else ""  # its pool may be larger
        known, key = self._pools, (self.name + more, self._seed)
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

    @torch.no_grad()
    def _shared_weights(self, words: Batch, expression: Expression | None) -> Tensor:
        """Return log weights [P] of the pool of draws for one description."""
        pool, likelihood = self._shared_draws, self.likelihood
        name = likelihood.select_modality(words) if expression is None else likelihood.require_attributes().name
        known = self._shared_logits(name) if likelihood.is_attributes(name) else None
        parts = []
        for start in range(0, len(pool.z), _LATENTS):
            rows = slice(start, start + _LATENTS)
            logits = None if known is None else known[rows]
            parts.append(self._log_weight(pool.z[rows], words, expression, logits))
        return torch.cat(parts)

    @torch.no_grad()
    def _draw_candidates(self, words: Batch, expression: Expression | None, count: int) -> Candidates:
        """Draw ``count`` latents for balancing a description, or return the pool of draws."""
        z, logits = None, None
        reads = self.unguided.reads
        if self.unguided.is_unconditional:
            z, logits = self._shared_draws.z, self._shared_logits(self.likelihood.require_attributes().name)
        else:
            key = description_key(self.likelihood, words, expression)
            generator = torch_generator(self._seed, "balance", self.name, key, device=str(words.device))
            parts = [min(_LATENTS, count - start) for start in range(0, count, _LATENTS)]
            z = torch.cat([self.unguided.draw(words, part, generator)[:, 0] for part in parts])
        log_words = self.likelihood.log_prob(z, words, expression, logits, reads).double()
        likelihood_of_base = torch.zeros_like(log_words)
        if reads and self.likelihood.specified_modalities(words):
            likelihood_of_base = self.likelihood.log_prob(z, words, None, logits, reads).double()
        return Candidates(z, self.guidance.weight * log_words, log_words - likelihood_of_base, log_words, logits)

    def _log_normalisers(self, words: Batch) -> list[tuple[bytes, tuple[float, float]]]:
        """Return a key of each description, with log Z_w and its standard error."""
        expression = self._expression
        name = self.find_guiding_modality(words) if expression is None else self.likelihood.require_attributes().name
        pairs = []
        for row in range(words.size):
            if name is None:
                pairs.append((b"", (0.0, 0.0)))
                continue
            description = words[slice(row, row + 1)]
            codes = b"".join(part.cpu().numpy().tobytes() for part in self.likelihood.codes(description).values())
            key = name.encode() + codes + (b"" if expression is None else repr(expression.key).encode())
            if key not in self._normalisers:
                self._normalisers[key] = self._estimate_normaliser(description, name, key)
            pairs.append((key, self._normalisers[key]))
        return pairs

    @torch.no_grad()
    def _estimate_normaliser(self, description: Batch, name: str, key: bytes) -> tuple[float, float]:
        if self._expression is None and not description.present[name].any():
            return 0.0, 0.0
        generator = torch_generator(self._seed, "normaliser", self.name, key.hex(), device=str(description.device))
        parts = [self._shared_weights(description, self._expression)] if self.unguided.is_unconditional else []
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

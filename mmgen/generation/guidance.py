r"""Guided posteriors: a density over z, tilted by what the model's own decoder of words says of it.

.. math:: q_w(z|y) = \frac{q(z|y) \, p(y|z)^w}{Z_w(y)}, \quad Z_w(y) = E_{q(z|y)}[p(y|z)^w]

q is any density that latents can be drawn from: fitted to the aggregate or to the true posterior, the model's own
q(z|y), the prior p(z), or a learned prior q(z). w = 0 leaves it as it is; under p(z), w = 1 is the model's own p(z|y).

Draws are by self-normalised importance resampling: of M candidates from q one is taken with probability proportional to
p(y|z)^w, and as M grows it has the density q_w. Attributes that are not given are left out of p(y|z).

References:
    Latent Constraints: Learning to Generate Conditionally from Unconditional Generative Models (Engel, Hoffman,
    Roberts, 2018), arXiv:1711.05772
    Controllable and Compositional Generation with Latent-Space Energy-Based Models (Nie, Vahdat, Anandkumar, 2021),
    arXiv:2110.10873
    Diffusion Models Beat GANs on Image Synthesis (Dhariwal, Nichol, 2021), arXiv:2105.05233
"""

import math

import numpy as np
import torch
from torch import Tensor

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.expressions import Expression
from mmgen.generation._candidates import Chosen, Pool, log_mean, resample
from mmgen.generation.files import LatentSampler, ModelFiles
from mmgen.modalities.attributes import Attributes
from mmgen.naming import Guidance
from mmgen.seeding import torch_generator

__all__ = ["Guide", "Guides", "check_weight"]

_MOST = 1e6
"""The largest weight: far beyond it only the likeliest candidate is left."""
_ENOUGH = 10.0
"""Effective sample size of the candidates of a draw below which the draws are said to be few."""
_POOLS = 2
"""Pools that are kept."""
_GUIDES = 8
"""Guided posteriors that are kept with what they have drawn."""
_ERROR = 0.01
"""Standard error of log Z that is worked for, nats."""
_FIRST_NORMALISER, _MOST_NORMALISER = 4096, 262_144
_LATENTS = 32_768
"""Latents that go through a density at once."""


def check_weight(weight: float) -> float:
    """A weight that guidance can have.

    Raises:
        UsageError: It is no finite number of at least 0.
    """
    if not (isinstance(weight, int | float) and 0 <= weight <= _MOST):
        raise UsageError(f"guidance got {weight}, expected a number from 0 to {_MOST:,.0f}, such as 3")
    return float(weight)


class Guide:
    """One guided posterior: draws from it, and its density.

    Args:
        files: The model or aggregate.
        posterior: What is guided, one of ``files.posteriors``.
        weight: w > 0.
        seed: Seed of the pool of draws where q does not depend on the description.
        pools: Draws from densities that no description changes, shared by all weights of guidance.
    """

    def __init__(
        self, files: ModelFiles, posterior: str, weight: float, seed: int, pools: dict[tuple[str, int], Pool]
    ) -> None:
        self._files = files
        self._pools = pools
        self.posterior = posterior
        self.weight = check_weight(weight)
        self._seed = seed
        self._draw: LatentSampler = files.latent_sampler(posterior)
        self._log_prob = files.latent_log_prob(posterior)
        self._read = files.reads(posterior)
        self._effective: list[float] = []
        self._most = 0
        self._few: list[float] = []
        self._normalisers: dict[bytes, tuple[float, float]] = {}

    @property
    def base(self) -> str:
        """What is guided: the posterior's name, or "learned prior" for an aggregate that is given nothing."""
        return self._files.base_of(self.posterior)

    @property
    def told(self) -> Guidance:
        """By what was guided, and what is to be said of the draws so far."""
        notice = ""
        if self._few:
            some = f"for {len(self._few):,} of {len(self._effective):,} descriptions"
            least = f"(the least {min(self._few):,.1f})"
            notice = (
                f"guidance {self.weight:g} found little that says the words: {some} the effective sample size among "
                f"{self._most:,} candidates was small {least}, so that draws resemble each other; use a smaller "
                "weight, or another posterior to guide"
                if self._read
                else f"guidance {self.weight:g} draws from one pool of {self._most:,}: {some} its effective sample "
                f"size is below the number of draws {least}, so that these repeat each other and vary less than they "
                "should; ask for fewer, use a smaller weight, or guide a posterior that is fitted to descriptions"
            )
        weights = self._files.weights_of(self.posterior, self.weight)
        return Guidance(self.base, weights["guidance"], notice, weights.get("text_weight"))

    @property
    def diagnostics(self) -> dict[str, float | int]:
        """Effective sample sizes of candidates over the descriptions drawn so far; empty where none was."""
        if not self._effective:
            return {}
        return {
            "smallest_effective_sample_size": min(self._effective),
            "median_effective_sample_size": float(np.median(self._effective)),
            "candidates": self._most,
        }

    def __call__(self, condition: Batch, n: int, generator: torch.Generator | None) -> Tensor:
        """z [n, B, D]: n draws for each of B descriptions."""
        return torch.cat([self.sample(condition[slice(b, b + 1)], n, generator) for b in range(condition.size)], 1)

    @torch.no_grad()
    def sample(
        self, condition: Batch, n: int, generator: torch.Generator | None, expression: Expression | None = None
    ) -> Tensor:
        """z [n, 1, D] for one description; ``expression`` takes its place in p(y|z), not as a condition of q.

        Raises:
            UsageError: The model has no p(y|z) for the words given.
        """
        said = self._said(condition)
        if expression is None and not said:
            return self._draw(condition, n, generator)  # p(nothing | z) = 1
        if self._read and not set(said) & set(self._read) and self._reads_captions:
            raise UsageError(
                f"posterior '{self.posterior}' of {self._files.path} reads whole captions, and '{expression or said}' "
                "is none: guide from the prior, or from what is fitted to attributes or given nothing"
            )
        chosen: Chosen
        if not self._read:
            chosen = self._pool.resample(self._pool_weights(condition, expression), n, generator)
            enough = max(_ENOUGH, n)  # of fewer in effect, draws repeat each other and look less varied than q_w is
        else:
            chosen = resample(
                lambda count: self._draw(condition, count, generator)[:, 0],
                lambda z: self.weight * self.log_likelihood(z, condition, expression).double(),
                n,
                _ENOUGH,
                _LATENTS,
                generator,
            )
            enough = _ENOUGH
        self._effective.append(chosen.effective)
        self._most = max(self._most, chosen.candidates)
        if chosen.effective < enough:
            self._few.append(chosen.effective)
        return chosen.z[:, None]

    @property
    def _reads_captions(self) -> bool:
        """Whether q reads captions alone, which are there or not."""
        return self._files.text is not None and self._read == (self._files.text.name,)

    @property
    def _pool(self) -> Pool:
        """The draws of a q that no description changes."""
        known, key = self._pools, (self.posterior, self._seed)
        if key not in known:
            while len(known) >= _POOLS:
                del known[next(iter(known))]
            files, device = self._files, str(self._files.device)
            generator = torch_generator(self._seed, "guidance pool", self.posterior, device=device)
            name = files.generated_words[0]  # a batch of one description, whatever it says
            one = Batch(
                {name: torch.zeros(1, 1, dtype=torch.int64, device=device)},
                {name: torch.zeros(1, dtype=torch.bool, device=device)},
            )
            known[key] = Pool.draw(lambda count: self._draw(one, count, generator)[:, 0], files.model.latent_size)
        return known[key]

    @torch.no_grad()
    def _pool_weights(self, condition: Batch, expression: Expression | None) -> Tensor:
        """w log p(y|z) of the pool [P]; what the decoder of attributes says of each draw is kept."""
        pool, files = self._pool, self._files
        name = files.attributes.name if expression is not None and files.attributes else self._weighed(condition)
        if files.attributes is not None and name == files.attributes.name and name not in pool.logits:
            with torch.autocast(pool.z.device.type, enabled=False):
                parts = [files.model.decode(name, z) for z in pool.z.split(_LATENTS)]
            pool.logits[name] = torch.cat(parts)
        known = pool.logits.get(name)
        found = []
        for start in range(0, len(pool.z), _LATENTS):
            rows = slice(start, start + _LATENTS)
            logits = None if known is None else known[rows]
            found.append(self.log_likelihood(pool.z[rows], condition, expression, logits).double())
        return self.weight * torch.cat(found)

    def _said(self, condition: Batch) -> tuple[str, ...]:
        """Modalities by which a description says something, whether the model generates them or not."""
        parts = (part for part in (self._files.attributes, self._files.text) if part is not None)
        names = [part.name for part in parts if part.name in condition.values]
        return tuple(name for name in names if bool(condition.present[name].any()))

    def _weighed(self, condition: Batch) -> str:
        """The modality y of p(y|z): that which q reads, else text before attributes, of those that are said.

        Raises:
            UsageError: The model generates nothing of what is said.
        """
        files, said = self._files, self._said(condition)
        able = [name for name in files.generated_words if name in said]
        if not able:
            raise UsageError(
                f"guidance needs p({' and '.join(said) or 'words'} | z), but {files.model_path} generates "
                f"{' and '.join(files.generated_words)} alone: describe by that"
                f"{' in whole captions' if files.text and files.text.name in files.generated_words else ''}"
            )
        return next((name for name in self._read if name in able), able[0])

    @torch.no_grad()
    def log_likelihood(
        self, z: Tensor, condition: Batch, expression: Expression | None = None, parameters: Tensor | None = None
    ) -> Tensor:
        """log p(y|z) in nats, at least fp32: z [..., B, D] -> [..., B], or [K, D] of one description -> [K].

        Args:
            z: Latents.
            condition: The B descriptions.
            expression: Negation and alternatives, in their place.
            parameters: What the decoder makes of z [K, D], where that is known already.

        Raises:
            UsageError: The model has no p(y|z) for the words given.
        """
        if expression is None and not self._said(condition):
            return z.new_zeros(z.shape[:-1])
        if expression is not None:
            name = _attributes_of(self._files).name
        else:
            name = self._weighed(condition)
        with torch.autocast(z.device.type, enabled=False):
            model, alone = self._files.model, z.dim() == 2
            if parameters is None:
                parameters = model.decode(name, z)
            if alone:
                parameters = parameters[:, None]
            if expression is not None:
                found = _of_expression(_attributes_of(self._files), parameters, expression)
            else:
                found = model.modalities[name].log_prob(parameters, condition.values[name], condition.present[name])
            return found[:, 0] if alone else found

    def words(self, condition: Batch) -> str | None:
        """The modality y of the p(y|z) that guides for these descriptions; None where they say nothing."""
        return self._weighed(condition) if self._said(condition) else None

    @torch.no_grad()
    def normaliser(self, condition: Batch) -> tuple[Tensor, Tensor]:
        """log Z_w of B descriptions [B] and its standard errors [B], nats; each distinct description once."""
        found = [value for _, value in self._normalised(condition)]
        values, errors = torch.tensor(found, dtype=torch.float64, device=condition.device).unbind(1)
        return values, errors

    def normaliser_error(self, condition: Batch) -> float:
        """Standard error that log Z_w brings to a mean over B descriptions: those that are equal share theirs.

        Where one pool answers all, all errors may be the same: they are added up.
        """
        errors: dict[bytes, float] = {}
        for key, (_, error) in self._normalised(condition):
            errors[key] = errors.get(key, 0.0) + error
        total = sum(errors.values()) if not self._read else math.hypot(*errors.values())
        return total / condition.size

    def _normalised(self, condition: Batch) -> list[tuple[bytes, tuple[float, float]]]:
        """The key of each description, and its log Z_w with its error."""
        name = self.words(condition)
        known = [part.name for part in (self._files.attributes, self._files.text) if part is not None]
        described, found = condition.select(known), []
        for row in range(condition.size):
            if name is None:
                found.append((b"", (0.0, 0.0)))
                continue
            one = described[slice(row, row + 1)]
            parts = [torch.where(one.present[part].reshape(1, -1), one.values[part], -1) for part in one.values]
            key = name.encode() + b"".join(part.cpu().numpy().tobytes() for part in parts)
            if key not in self._normalisers:
                self._normalisers[key] = self._normalise(one, name, key)
            found.append((key, self._normalisers[key]))
        return found

    @torch.no_grad()
    def _normalise(self, one: Batch, name: str, key: bytes) -> tuple[float, float]:
        if not one.present[name].any():
            return 0.0, 0.0
        generator = torch_generator(self._seed, "normaliser", self.posterior, key.hex(), device=str(one.device))
        parts = [] if self._read else [self._pool_weights(one, None)]
        have = sum(len(part) for part in parts)
        wanted = max(have, _FIRST_NORMALISER)
        while True:
            while have < wanted:
                count = min(_LATENTS, wanted - have)
                z = self._draw(one, count, generator)[:, 0]
                parts.append(self.weight * self.log_likelihood(z, one).double())
                have += count
            value, error = log_mean(torch.cat(parts))
            if error <= _ERROR or wanted >= _MOST_NORMALISER:
                return value, error
            wanted = min(_MOST_NORMALISER, 2 * wanted)

    def log_prob(self, z: Tensor, condition: Batch) -> Tensor:
        """log q_w(z | y) [..., B], nats, up to the error of :meth:`normaliser`: z [..., B, D]."""
        log_z, _ = self.normaliser(condition)
        return self._log_prob(z, condition) + self.weight * self.log_likelihood(z, condition) - log_z


class Guides:
    """Guided posteriors of the same files, with what they have drawn.

    Args:
        files: The model or aggregate.
    """

    def __init__(self, files: ModelFiles) -> None:
        self._files = files
        self._known: dict[tuple[str, float, int], Guide] = {}
        self.pools: dict[tuple[str, int], Pool] = {}

    def get(self, posterior: str, weight: float, seed: int) -> Guide:
        """A guided posterior; see :class:`Guide`."""
        key = posterior, weight, seed
        if key not in self._known:
            while len(self._known) >= _GUIDES:
                del self._known[next(iter(self._known))]
            self._known[key] = Guide(self._files, posterior, weight, seed, self.pools)
        return self._known[key]


def _attributes_of(files: ModelFiles) -> Attributes:
    """The attributes that a model generates.

    Raises:
        UsageError: It generates none.
    """
    info = files.attributes
    modality = files.model.modalities.get(info.name) if info is not None else None
    if not isinstance(modality, Attributes):
        raise UsageError(
            f"NOT and OR need p(attributes | z), but {files.model_path} generates "
            f"{' and '.join(files.generated_words)} alone: describe by that"
        )
    return modality


def _of_expression(modality: Attributes, logits: Tensor, expression: Expression) -> Tensor:
    r"""log p(expression | z), exactly: attributes are independent given z. Logits [..., S] -> [...], fp64.

    .. math:: \log \sum_{parts} \prod_k \sum_{v \in part_k} p(y_k = v \mid z)
    """
    table = modality.log_probabilities(logits).double()  # [..., A, V]
    found = torch.full(logits.shape[:-1], -math.inf, dtype=torch.float64, device=logits.device)
    for part in expression.parts:
        allowed = torch.from_numpy(part).to(logits.device)
        rows = (~allowed).any(1).nonzero().flatten()
        sums = table[..., rows, :].masked_fill(~allowed[rows], -math.inf).logsumexp(-1)
        found = torch.logaddexp(found, sums.sum(-1))
    return found

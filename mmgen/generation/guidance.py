r"""Guided posteriors: a density over z, tilted by what the model's own decoder of words says of it.

.. math:: q_w(z|y) = \frac{q(z|y) \, p(y|z)^w}{Z_w(y)}, \quad Z_w(y) = E_{q(z|y)}[p(y|z)^w]

q is any density that latents can be drawn from: fitted to the aggregate or to the true posterior, the model's own
q(z|y), the prior p(z), or a learned prior q(z). w = 0 leaves it as it is; under p(z), w = 1 is the model's own p(z|y).

Draws are by self-normalised importance resampling: of M candidates from q one is taken with probability proportional to
p(y|z)^w, and as M grows it has the density q_w. Attributes that are not given are left out of p(y|z); balanced
guidance keeps their shares (:mod:`mmgen.generation.balance`).

References:
    Latent Constraints: Learning to Generate Conditionally from Unconditional Generative Models (Engel, Hoffman,
    Roberts, 2018), arXiv:1711.05772
    Controllable and Compositional Generation with Latent-Space Energy-Based Models (Nie, Vahdat, Anandkumar, 2021),
    arXiv:2110.10873
    Diffusion Models Beat GANs on Image Synthesis (Dhariwal, Nichol, 2021), arXiv:2105.05233
"""

import math

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.seeding import torch_generator
from mmgen.descriptions import Expression
from mmgen.generation._candidates import Chosen, Pool, log_mean, resample
from mmgen.generation._counts import Counts
from mmgen.generation._readings import attributes_of, codes_of, log_of_expression
from mmgen.generation.balance import Balance, Candidates, key_of
from mmgen.generation.files import LatentSampler, ModelFiles
from mmgen.generation.tilt import CANDIDATES, Tilt
from mmgen.results.naming import Guidance

__all__ = ["Guide", "Guides"]

_POOLS = 2
"""Pools that are kept."""
_GUIDES = 8
"""Guided posteriors that are kept with what they have drawn."""
_ERROR = 0.01
"""Standard error of log Z that is worked for, nats."""
_FIRST_NORMALISER, _MOST_NORMALISER = 4096, 262_144
_LATENTS = 32_768
"""Latents that go through a density at once."""


class Guide:
    """One guided posterior: draws from it, and its density.

    Args:
        files: The model or aggregate.
        posterior: What is guided, one of ``files.posteriors``.
        tilt: w > 0, from how many candidates, and whether attributes that are left out keep their shares.
        seed: Seed of the pool of draws where q does not depend on the description, and of what is balanced by.
        pools: Draws from densities that no description changes, shared by all weights of guidance.

    Raises:
        UsageError: It is to be balanced and cannot be.
    """

    def __init__(
        self, files: ModelFiles, posterior: str, tilt: Tilt, seed: int, pools: dict[tuple[str, int], Pool]
    ) -> None:
        self._files = files
        self._pools = pools
        self.posterior = posterior
        self.tilt, self.weight = tilt, tilt.weight
        self._seed = seed
        self._draw: LatentSampler = files.latent_sampler(posterior)
        self._log_prob = files.latent_log_prob(posterior)
        self._read = files.reads(posterior)
        self._counts = Counts(tilt, pooled=not self._read)
        self._normalisers: dict[bytes, tuple[float, float]] = {}
        self._balance = Balance(files, posterior, self._candidates) if tilt.balanced else None

    @property
    def base(self) -> str:
        """What is guided: the posterior's name, or "learned prior" for an aggregate that is given nothing."""
        return self._files.base_of(self.posterior)

    @property
    def told(self) -> Guidance:
        """By what was guided, and what is to be said of the draws so far."""
        notices = [*self._counts.notices, self._balance.notice if self._balance is not None else ""]
        weights = self._files.weights_of(self.posterior, self.tilt)
        notice = "; ".join(filter(None, notices))
        return Guidance(self.base, weights["guidance"], notice, weights.get("text_weight"), self.tilt.balanced)

    @property
    def diagnostics(self) -> dict[str, float | int]:
        """Effective sample sizes of candidates over the descriptions drawn so far, and how well they are balanced."""
        return self._counts.diagnostics | (self._balance.diagnostics if self._balance is not None else {})

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
        else:
            chosen = resample(
                lambda count: self._draw(condition, count, generator)[:, 0],
                lambda z: self.log_weight(z, condition, expression),
                n,
                self.tilt.effective,
                _LATENTS,
                generator,
                self.tilt.candidates,
            )
        self._counts.add(chosen, n)
        return chosen.z[:, None]

    @property
    def _reads_captions(self) -> bool:
        """Whether q reads captions alone, which are there or not."""
        return self._files.text is not None and self._read == (self._files.text.name,)

    @property
    def _pool(self) -> Pool:
        """The draws of a q that no description changes."""
        more = f", {self.tilt.candidates}" if self.tilt.candidates > CANDIDATES else ""  # its pool may be larger
        known, key = self._pools, (self.posterior + more, self._seed)
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
            known[key] = Pool.draw(
                lambda count: self._draw(one, count, generator)[:, 0], files.model.latent_size, self.tilt.candidates
            )
        return known[key]

    def _pool_logits(self, name: str) -> Tensor:
        """What the decoder of attributes makes of the pool [P, S]."""
        pool = self._pool
        if name not in pool.logits:
            with torch.no_grad(), torch.autocast(pool.z.device.type, enabled=False):
                parts = [self._files.model.decode(name, z) for z in pool.z.split(_LATENTS)]
            pool.logits[name] = torch.cat(parts)
        return pool.logits[name]

    @torch.no_grad()
    def _pool_weights(self, condition: Batch, expression: Expression | None) -> Tensor:
        """Log weights of the pool [P]."""
        pool, files = self._pool, self._files
        name = files.attributes.name if expression is not None and files.attributes else self._weighed(condition)
        known = self._pool_logits(name) if files.attributes is not None and name == files.attributes.name else None
        found = []
        for start in range(0, len(pool.z), _LATENTS):
            rows = slice(start, start + _LATENTS)
            logits = None if known is None else known[rows]
            found.append(self.log_weight(pool.z[rows], condition, expression, logits))
        return torch.cat(found)

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
            parameters: What the decoder of attributes makes of z, where that is known already; not used for a caption.

        Raises:
            UsageError: The model has no p(y|z) for the words given.
        """
        if expression is None and not self._said(condition):
            return z.new_zeros(z.shape[:-1])
        if expression is not None:
            name = attributes_of(self._files).name
        else:
            name = self._weighed(condition)
        with torch.autocast(z.device.type, enabled=False):
            model, alone = self._files.model, z.dim() == 2
            if parameters is None or self._files.attributes is None or name != self._files.attributes.name:
                parameters = model.decode(name, z)
            if alone:
                parameters = parameters[:, None]
            if expression is not None:
                found = log_of_expression(attributes_of(self._files), parameters, expression)
            else:
                found = model.modalities[name].log_prob(parameters, condition.values[name], condition.present[name])
            return found[:, 0] if alone else found

    def _candidates(self, condition: Batch, expression: Expression | None, count: int) -> Candidates:
        """So many draws that a description is balanced by, or the pool.

        The shares that are to stay are those of what q reads of the description, and at w = 1 of what it does not.
        """
        z, logits = None, None
        if not self._read:
            z, logits = self._pool.z, self._pool_logits(attributes_of(self._files).name)
        else:
            key = key_of(self._files, condition, expression)
            generator = torch_generator(self._seed, "balance", self.posterior, key, device=str(condition.device))
            z = torch.cat(
                [
                    self._draw(condition, min(_LATENTS, count - start), generator)[:, 0]
                    for start in range(0, count, _LATENTS)
                ]
            )
        likelihood = self.log_likelihood(z, condition, expression, logits).double()
        read = torch.zeros_like(likelihood)
        if self._read and self._said(condition):
            read = self.log_likelihood(z, condition, None, logits).double()
        return Candidates(z, self.weight * likelihood, likelihood - read, likelihood, logits)

    @torch.no_grad()
    def log_weight(
        self, z: Tensor, condition: Batch, expression: Expression | None = None, parameters: Tensor | None = None
    ) -> Tensor:
        """What guidance adds to log q(z | y), nats, up to log Z, fp64: w log p(y|z), and what balances it.

        Takes and gives what :meth:`log_likelihood` does.
        """
        if self._balance is not None:
            name = attributes_of(self._files).name
            if expression is None and (said := self._said(condition)) and name not in said:
                raise UsageError(
                    "balanced guidance got a caption, which does not say what it leaves out; describe by attributes, "
                    "or guide without :balanced"
                )
            if parameters is None:  # once, for both parts read it
                with torch.autocast(z.device.type, enabled=False):
                    parameters = self._files.model.decode(name, z)
        found = self.weight * self.log_likelihood(z, condition, expression, parameters).double()
        if self._balance is None:
            return found
        return found + self._balance(z, condition, expression, parameters)

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
        found = []
        for row in range(condition.size):
            if name is None:
                found.append((b"", (0.0, 0.0)))
                continue
            one = condition[slice(row, row + 1)]
            key = name.encode() + b"".join(part.cpu().numpy().tobytes() for part in codes_of(self._files, one).values())
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
                parts.append(self.log_weight(z, one))
                have += count
            value, error = log_mean(torch.cat(parts))
            if error <= _ERROR or wanted >= _MOST_NORMALISER:
                return value, error
            wanted = min(_MOST_NORMALISER, 2 * wanted)

    def log_prob(self, z: Tensor, condition: Batch) -> Tensor:
        """log q_w(z | y) [..., B], nats, up to the error of :meth:`normaliser`: z [..., B, D].

        It is the density that draws have as candidates grow without end. Those of :meth:`sample` come from as many
        candidates as the tilt asks for, and so have that of finitely many, which lies a little nearer to q(z | y).
        """
        log_z, _ = self.normaliser(condition)
        return self._log_prob(z, condition) + self.log_weight(z, condition) - log_z


class Guides:
    """Guided posteriors of the same files, with what they have drawn.

    Args:
        files: The model or aggregate.
    """

    def __init__(self, files: ModelFiles) -> None:
        self._files = files
        self._known: dict[tuple[str, Tilt, int], Guide] = {}
        self.pools: dict[tuple[str, int], Pool] = {}

    def get(self, posterior: str, tilt: Tilt, seed: int) -> Guide:
        """A guided posterior; see :class:`Guide`."""
        key = posterior, tilt, seed
        if key not in self._known:
            while len(self._known) >= _GUIDES:
                del self._known[next(iter(self._known))]
            self._known[key] = Guide(self._files, posterior, tilt, seed, self.pools)
        return self._known[key]

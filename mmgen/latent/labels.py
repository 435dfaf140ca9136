"""Densities over labels that are part of z (one-hot attributes side by side), and over labels and a style together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.likelihoods import full_precision

IMPOSSIBLE = -50.0
"""Log-probability in nats of values that contradict a known attribute: negligible, but finite."""


@dataclass(frozen=True)
class Labels:
    r"""Distribution q(y) of labels y: independent categorical attributes, :math:`q(y) = \prod_k q(y_k)`.

    Attributes:
        log_probs: Normalised log-probabilities of the values of all attributes side by side [B, S], nats.
        sizes: Number of values of each of the A attributes; they add up to S.
    """

    log_probs: Tensor
    sizes: tuple[int, ...]

    @classmethod
    def from_logits(cls, logits: Tensor, sizes: tuple[int, ...]) -> "Labels":
        """Build the distribution from logits [B, S] of the values of all attributes, side by side."""
        parts = full_precision(logits).split(sizes, -1)
        return cls(torch.cat([part.log_softmax(-1) for part in parts], -1), sizes)

    @property
    def probs(self) -> Tensor:
        """Probabilities [B, S] of the values of all attributes, side by side."""
        return self.log_probs.exp()

    def condition_on(self, codes: Tensor, present: Tensor) -> "Labels":
        """Return the distribution with attributes fixed to ``codes`` int64 [B, A] where ``present`` bool [B, A]."""
        parts = []
        for k, (part, size) in enumerate(zip(self.log_probs.split(self.sizes, -1), self.sizes, strict=True)):
            certain = (1 - torch.nn.functional.one_hot(codes[:, k], size).to(part.dtype)) * IMPOSSIBLE
            parts.append(torch.where(present[:, k : k + 1], certain, part))
        return Labels(torch.cat(parts, -1), self.sizes)

    def log_prob(self, one_hot: Tensor) -> Tensor:
        """Return the log-probability log q(y) of one-hot labels [..., B, S], in nats [..., B]."""
        return (one_hot * self.log_probs).sum(-1)

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw one-hot labels [*shape, B, S]; no gradient passes through them."""
        drawn = []
        for part in self.probs.detach().split(self.sizes, -1):
            spread = part.expand(*shape, *part.shape)
            codes = torch.multinomial(spread.reshape(-1, part.shape[-1]), 1, generator=generator)
            drawn.append(torch.zeros_like(spread).scatter(-1, codes.reshape(*spread.shape[:-1], 1), 1.0))
        return torch.cat(drawn, -1)

    def sample_relaxed(self, temperature: float, generator: torch.Generator | None = None) -> Tensor:
        """Draw relaxed labels [B, S], which pass gradients (Concrete distribution; Maddison et al., 2017, Eq. 10)."""
        noise = torch.rand(
            self.log_probs.shape, generator=generator, device=self.log_probs.device, dtype=self.log_probs.dtype
        )
        gumbel = -(-noise.clamp(1e-20, 1 - 1e-7).log()).log()
        parts = ((self.log_probs + gumbel) / temperature).split(self.sizes, -1)
        return torch.cat([part.softmax(-1) for part in parts], -1)

    def likeliest(self) -> Tensor:
        """Return the most probable value of each attribute, one-hot [B, S]."""
        return round_to_one_hot(self.log_probs, self.sizes)

    def kl(self, other: "Labels") -> Tensor:
        """Return the divergence KL(self || other) in nats [B], in closed form."""
        return (self.probs * (self.log_probs - other.log_probs)).sum(-1)


def round_to_one_hot(values: Tensor, sizes: Sequence[int]) -> Tensor:
    """Round weights [..., S] of the values of all attributes to one-hot: 1 at the largest of each attribute."""
    parts = values.split(list(sizes), -1)
    return torch.cat([torch.zeros_like(part).scatter(-1, part.argmax(-1, keepdim=True), 1.0) for part in parts], -1)


@dataclass(frozen=True)
class LabelledStyle:
    r"""Joint density q(y) q(z|y) of labels y and a style z: a mixture with a Gaussian for each value of the labels.

    Points are [..., B, S + D]: one-hot labels, then the style. Labels are rounded to one-hot, so that a little noise on
    them changes nothing.

    Attributes:
        labels: q(y).
        style: Function from one-hot labels [..., B, S] to q(z | y).
    """

    labels: Labels
    style: Callable[[Tensor], DiagonalGaussian]

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw labels and style [*shape, B, S + D]; gradients pass through the style, but not through the labels."""
        one_hot = self.labels.sample(generator, shape)
        return torch.cat([one_hot, self.style(one_hot).sample(generator)], -1)

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the joint log density log q(y, z) at labels and style [..., B, S + D], in nats [..., B]."""
        label_term, style_term = self.log_prob_terms(z)
        return label_term + style_term

    def log_prob_terms(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return log q(y) and log q(z | y) at labels and style [..., B, S + D], in nats [..., B] each."""
        size = sum(self.labels.sizes)
        one_hot, style = round_to_one_hot(z[..., :size], self.labels.sizes), z[..., size:]
        return self.labels.log_prob(one_hot), self.style(one_hot).log_prob(style)

"""Autoregressive likelihood of sentences: each word given the words before it and z.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 2
"""

from typing import Protocol

import torch
from torch import Tensor

from mmgen.likelihoods._base import full_precision

__all__ = ["Autoregressive"]


class Speaker(Protocol):
    """Protocol of a recurrent decoder of words: V words and, as the last class, "no word"; M means any axes."""

    def logits(self, context: Tensor, tokens: Tensor) -> Tensor:
        """Return logits [M, T, V+1] of each word given the words before it, from context [M, F] and tokens [M, T]."""

    def start(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """Return the initial state [M, H] and the code [M] that is the input of the first step."""

    def step(self, context: Tensor, state: Tensor, previous: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next state and the logits of the next word [M, V+1]."""


class Autoregressive:
    r"""Exact likelihood of a sentence of at most T words: each word given the words before it and z.

    .. math:: \log p(y|z) = \sum_{t=1}^{T} \log p(y_t \mid y_{<t}, z)  \qquad \text{(CK Figure 2)}

    A sentence shorter than T ends with padding (code V). The first padding is a word like the others, and all later
    ones are certain, so the probabilities of all sentences of up to T words add up to 1.

    A decoder returns a context, from which a :class:`Speaker` generates words; so the methods of this likelihood,
    unlike those of images, take a network.

    Args:
        words: V, the number of words; V is also the code of padding.
    """

    def __init__(self, words: int) -> None:
        self.padding = words

    def log_probabilities(self, logits: Tensor, tokens: Tensor) -> Tensor:
        """Convert logits [..., T, V+1] to log p(word_t | words before, z); after the end, "no word" is certain."""
        table = full_precision(logits).log_softmax(-1)
        is_end = (tokens == self.padding).long()
        ended = ((is_end.cumsum(-1) - is_end) > 0).expand(table.shape[:-1]).unsqueeze(-1)
        certain = torch.full_like(table[..., :1, :].detach(), -torch.inf)
        certain[..., self.padding] = 0.0
        return torch.where(ended, certain, table)

    def log_prob(self, speaker: Speaker, context: Tensor, tokens: Tensor) -> Tensor:
        """Return log p(tokens | context) in nats [...] of sentences [..., T], given features [..., F] of z."""
        if torch.is_grad_enabled():
            logits = speaker.logits(context, tokens)
            return self._gather_words(self.log_probabilities(logits, tokens), tokens).sum(-1)
        # Importance sampling has thousands of contexts: word by word, so that no [..., T, H] is held.
        state, previous = speaker.start(context)
        total = full_precision(context).new_zeros(context.shape[:-1])
        ended = torch.zeros_like(tokens[..., 0], dtype=torch.bool)
        for t in range(tokens.shape[-1]):
            state, logits = speaker.step(context, state, previous)
            table = full_precision(logits).log_softmax(-1)
            previous = tokens[..., t]
            total = total + self._gather_words(table, previous).masked_fill(ended, 0.0)
            ended = ended | (previous == self.padding)
        return total

    def _gather_words(self, table: Tensor, tokens: Tensor) -> Tensor:
        return table.gather(-1, tokens.expand(table.shape[:-1]).unsqueeze(-1)).squeeze(-1)

    def sample(
        self,
        speaker: Speaker,
        context: Tensor,
        length: int,
        generator: torch.Generator | None = None,
        greedy: bool = False,
    ) -> Tensor:
        """Draw sentences [..., T] word by word, or take the likeliest word at each step if ``greedy``."""
        state, previous = speaker.start(context)
        ended = torch.zeros(context.shape[:-1], dtype=torch.bool, device=context.device)
        tokens = []
        for _ in range(length):
            state, logits = speaker.step(context, state, previous)
            if greedy:
                word = logits.argmax(-1)
            else:
                probability = full_precision(logits).softmax(-1)
                word = torch.multinomial(probability.flatten(0, -2), 1, generator=generator).reshape(ended.shape)
            previous = word.masked_fill(ended, self.padding)
            ended = ended | (previous == self.padding)
            tokens.append(previous)
        return torch.stack(tokens, -1)

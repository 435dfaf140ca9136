"""Autoregressive likelihood of sentences: each word given the words before it and z.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 2
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.likelihoods._base import full_precision

__all__ = ["Autoregressive"]


class Speaker(Protocol):
    """Protocol of a recurrent decoder of words: V words and, as the last class, "no word"; M means any axes."""

    def logits(self, context: Tensor, previous: Tensor, sizes: list[int]) -> Tensor:
        """Return logits [N, V+1] of the words of R sentences, the longest first, in the order of their steps.

        Args:
            context: Of each sentence [R, F].
            previous: Code of the word before each word [N]: of all sentences at the first step, then at the second.
            sizes: How many sentences have a word at each step, falling; N in all.
        """

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

    def probabilities(self, speaker: Speaker, context: Tensor, tokens: Tensor) -> Tensor:
        """Return p(word_t | words before t, context) [..., T, V+1]; after the end padding has probability 1."""
        state, previous = speaker.start(context)
        logits = []
        for word in tokens.unbind(-1):
            state, each = speaker.step(context, state, previous)
            logits.append(each)
            previous = word
        return self.log_probabilities(torch.stack(logits, -2), tokens).exp()

    def log_probabilities(self, logits: Tensor, tokens: Tensor) -> Tensor:
        """Convert logits [..., T, V+1] to log p(word_t | words before, z); after the end, "no word" is certain."""
        table = full_precision(logits).log_softmax(-1)
        ended = self._has_ended(tokens).expand(table.shape[:-1]).unsqueeze(-1)
        certain = torch.full_like(table[..., :1, :].detach(), -torch.inf)
        certain[..., self.padding] = 0.0
        return torch.where(ended, certain, table)

    def log_prob(self, speaker: Speaker, context: Tensor, tokens: Tensor) -> Tensor:
        """Return log p(tokens | context) in nats [...] of sentences [..., T], given features [..., F] of z."""
        if torch.is_grad_enabled():
            return self._log_prob_at_once(speaker, context, tokens)
        # Importance sampling has thousands of contexts: word by word, so that no [..., T, H] is held. Sentences that
        # have ended are left out of each step.
        total = full_precision(context).new_zeros(context.shape[:-1])
        running = torch.ones_like(tokens[..., 0], dtype=torch.bool).expand(total.shape)
        tokens = tokens.expand(*total.shape, -1)
        context, state, previous = context[running], *speaker.start(context[running])
        for t in range(tokens.shape[-1]):
            words = tokens[..., t][running]
            state, logits = speaker.step(context, state, previous)
            total[running] -= F.cross_entropy(full_precision(logits), words, reduction="none")
            goes_on = words != self.padding
            if not goes_on.any():
                break
            context, state, previous = context[goes_on], state[goes_on], words[goes_on]
            running = running.masked_scatter(running, goes_on)
        return total

    def _log_prob_at_once(self, speaker: Speaker, context: Tensor, tokens: Tensor) -> Tensor:
        """Return log p(tokens | context) [...] with gradients; words after the end of sentences take no time."""
        shape, rows = context.shape[:-1], context.flatten(0, -2)
        tokens = tokens.expand(*shape, -1).flatten(0, -2)
        order = (~self._has_ended(tokens)).sum(-1).argsort(descending=True, stable=True)
        tokens = tokens.index_select(0, order).t()  # [T, R], the longest sentences first
        counted = ~self._has_ended(tokens.t()).t()
        first = speaker.start(rows)[1].expand(1, len(rows))
        sizes = [size for size in counted.sum(1).tolist() if size]
        previous = torch.cat([first, tokens[:-1]])[counted]
        logits = speaker.logits(rows.index_select(0, order), previous, sizes)
        log_p = -F.cross_entropy(full_precision(logits), tokens[counted], reduction="none")
        total = log_p.new_zeros(tokens.shape).masked_scatter(counted, log_p).sum(0)
        return total.index_select(0, order.argsort()).reshape(shape)

    def _has_ended(self, tokens: Tensor) -> Tensor:
        """Return whether a sentence [..., T] has ended before each word: after the first padding."""
        is_end = (tokens == self.padding).long()
        return (is_end.cumsum(-1) - is_end) > 0

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

    def likeliest(self, speaker: Speaker, contexts: Tensor, length: int) -> Tensor:
        """Return sentences [B, T] of the likeliest word at each step, averaged over S draws of contexts [S, B, F]."""
        draws, size = contexts.shape[:2]
        words = torch.full((size, length), self.padding, dtype=torch.int64, device=contexts.device)
        so_far = contexts.new_zeros(draws, size, dtype=torch.float64)  # log p(words so far | context)
        ended = torch.zeros(size, dtype=torch.bool, device=contexts.device)
        state, previous = speaker.start(contexts)
        for place in range(length):
            state, logits = speaker.step(contexts, state, previous)
            table = logits.double().log_softmax(-1)
            mixture = (so_far.log_softmax(0).unsqueeze(-1) + table).logsumexp(0)
            word = mixture.argmax(-1).masked_fill(ended, self.padding)
            chosen = word.expand(draws, size).unsqueeze(-1)
            so_far = so_far + table.gather(-1, chosen).squeeze(-1).masked_fill(ended, 0.0)
            words[:, place], previous, ended = word, word, word == self.padding
            if ended.all():
                break
        return words

    def compare(self, true: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor]:
        """Return where two sentences [B, T] have the same word, bool [B, T], and where either has one."""
        counted = (true != self.padding) | (predicted != self.padding)
        return (true == predicted) & counted, counted

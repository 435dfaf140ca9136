"""Likelihood of sets of words: each word of a vocabulary is present or not by itself; the decoder gives logits.

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Section 5.2: attributes as words in
    random order, there spelled word by word
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mmgen.likelihoods._base import full_precision

__all__ = ["WordSet"]


class WordSet:
    r"""Exact likelihood of a set S of words of a vocabulary, given a logit of each word [..., V].

    .. math:: \log p(S|z) = \sum_{v \in S} \log p_v(z) + \sum_{v \notin S} \log (1 - p_v(z))

    The probabilities of all 2^V sets add up to 1. The order of words, and words that come twice, change nothing. As a
    sentence a set is its words in the order of their codes. Methods are those of
    :class:`~mmgen.likelihoods.autoregressive.Autoregressive`, and need no network over words.

    Args:
        words: V, the number of words; V is also the code of padding.
    """

    def __init__(self, words: int) -> None:
        self.padding = words

    def log_prob(self, speaker: Any, logits: Tensor, tokens: Tensor) -> Tensor:
        """Return log p(set | logits) in nats [..., B] of codes [B, T], given logits [..., B, V]."""
        logits = full_precision(logits)
        present = self._membership(tokens).to(logits.dtype).expand(logits.shape)
        return -F.binary_cross_entropy_with_logits(logits, present, reduction="none").sum(-1)

    def sample(
        self,
        speaker: Any,
        logits: Tensor,
        length: int,
        generator: torch.Generator | None = None,
        greedy: bool = False,
    ) -> Tensor:
        """Draw a set for each row of logits, codes int64 [..., T], or take the likeliest set if ``greedy``.

        Of more than T words the T likeliest are kept.
        """
        probability = full_precision(logits).sigmoid()
        chosen = probability > 0.5 if greedy else torch.bernoulli(probability, generator=generator).bool()
        return self._list_words(probability, chosen, length)

    def probabilities(self, speaker: Any, logits: Tensor, tokens: Tensor) -> Tensor:
        r"""Return p(word_t | words before t, logits) [..., T, V+1] of sets that are listed in the order of their codes.

        .. math:: p(v \mid u) = p_v \prod_{u < w < v} (1 - p_w)

        After word u; the last column is "no further word". Codes in another order are sorted first.
        """
        tokens = tokens.sort(-1).values
        shape = torch.broadcast_shapes(logits.shape[:-1], tokens.shape[:-1])
        each = full_precision(logits).expand(*shape, -1).unsqueeze(-2).expand(*shape, tokens.shape[-1], -1)
        tokens = tokens.expand(*shape, -1)
        before = torch.cat([torch.full_like(tokens[..., :1], -1), tokens[..., :-1]], -1).unsqueeze(-1)  # [..., T, 1]
        absent = F.pad(F.logsigmoid(-each).cumsum(-1), (1, 0))  # log p(none of the first n words), n = 0 .. V
        skipped = absent - absent.gather(-1, (before + 1).clamp(max=self.padding))
        table = torch.cat([F.logsigmoid(each) + skipped[..., :-1], skipped[..., -1:]], -1).exp()
        codes = torch.arange(self.padding + 1, device=tokens.device)
        table = torch.where(codes > before, table, 0.0)
        return torch.where(before == self.padding, (codes == self.padding).to(table.dtype), table)

    def likeliest(self, speaker: Any, logits: Tensor, length: int) -> Tensor:
        """Return the likeliest set [B, T] by probabilities that are averaged over S draws of logits [S, B, V]."""
        probability = full_precision(logits).sigmoid().mean(0)
        return self._list_words(probability, probability > 0.5, length)

    def compare(self, true: Tensor, predicted: Tensor) -> tuple[Tensor, Tensor]:
        """Return which words two texts [B, T] share, bool [B, V], and which either has."""
        one, other = self._membership(true), self._membership(predicted)
        return one & other, one | other

    def _membership(self, tokens: Tensor) -> Tensor:
        """Return whether each word is among codes [B, T], bool [B, V]."""
        found = tokens.new_zeros(len(tokens), self.padding + 1).scatter(1, tokens, 1)
        return found[:, : self.padding].bool()

    def _list_words(self, probability: Tensor, chosen: Tensor, length: int) -> Tensor:
        """Return the codes of chosen words [..., V] in their order, [..., T]; of more than T the likeliest."""
        kept = min(length, self.padding)
        best = probability.masked_fill(~chosen, -1.0).topk(kept, -1)
        codes = best.indices.masked_fill(best.values < 0, self.padding).sort(-1).values
        return F.pad(codes, (0, length - kept), value=self.padding)

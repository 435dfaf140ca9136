"""Sets of words: p(text | z) of words without order, each present or not by itself."""

from typing import TYPE_CHECKING

from mmgen.modalities.text import Text

if TYPE_CHECKING:
    import torch
    from torch import Tensor

__all__ = ["WordSet"]


class WordSet(Text):
    r"""Sets of words of a vocabulary with codes 0 .. V-1; decoder outputs are a logit for each word [..., V].

    .. math:: \log p(S|z) = \sum_{v \in S} \log p_v(z) + \sum_{v \notin S} \log (1 - p_v(z))

    The probabilities of all 2^V sets add up to 1. The order of words, and words that come twice, change nothing. As a
    sentence a set is its words in the order of their codes.
    """

    def log_prob(self, parameters: "Tensor", value: "Tensor", present: "Tensor") -> "Tensor":
        """Return log p(set | logits) [..., B] of logits [..., B, V] and codes [B, T]; 0 for examples without a text."""
        import torch.nn.functional as F

        from mmgen.likelihoods import full_precision

        logits = full_precision(parameters)
        said = self._membership(value).to(logits.dtype).expand(logits.shape)
        total = -F.binary_cross_entropy_with_logits(logits, said, reduction="none").sum(-1)
        return total.masked_fill(~present, 0.0)

    def sample(
        self, parameters: "Tensor", generator: "torch.Generator | None" = None, greedy: bool = False
    ) -> "Tensor":
        """Draw a set for each row of logits, codes int64 [..., T]; with ``greedy`` take the likeliest set.

        Of more than T words the T likeliest are kept.
        """
        import torch

        probability = parameters.float().sigmoid()
        chosen = probability > 0.5 if greedy else torch.bernoulli(probability, generator=generator).bool()
        return self._list_words(probability, chosen)

    def probabilities(self, parameters: "Tensor", tokens: "Tensor") -> "Tensor":
        r"""Return p(word_t | words before t, logits) [..., T, V+1] of sets that are listed in the order of their codes.

        .. math:: p(v \mid u) = p_v \prod_{u < w < v} (1 - p_w)

        After word u; the last column is "no further word". Codes in another order are sorted first.
        """
        import torch
        import torch.nn.functional as F

        tokens = tokens.sort(-1).values
        shape = torch.broadcast_shapes(parameters.shape[:-1], tokens.shape[:-1])
        logits = parameters.float().expand(*shape, -1).unsqueeze(-2).expand(*shape, tokens.shape[-1], -1)  # [..., T, V]
        tokens = tokens.expand(*shape, -1)
        before = torch.cat([torch.full_like(tokens[..., :1], -1), tokens[..., :-1]], -1).unsqueeze(-1)  # [..., T, 1]
        absent = F.pad(F.logsigmoid(-logits).cumsum(-1), (1, 0))  # log p(none of the first n words), n = 0 .. V
        skipped = absent - absent.gather(-1, (before + 1).clamp(max=self.padding))
        table = torch.cat([F.logsigmoid(logits) + skipped[..., :-1], skipped[..., -1:]], -1).exp()
        codes = torch.arange(self.padding + 1, device=tokens.device)
        certain = (codes == self.padding).to(table.dtype)
        table = torch.where(codes > before, table, 0.0)
        return torch.where(before == self.padding, certain, table)

    def likeliest(self, parameters: "Tensor") -> "Tensor":
        """Return the likeliest set [B, T] by probabilities that are averaged over S draws of logits [S, B, V]."""
        probability = parameters.float().sigmoid().mean(0)
        return self._list_words(probability, probability > 0.5)

    def compare(self, true: "Tensor", predicted: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return which words two texts [B, T] share, bool [B, V], and which either has."""
        one, other = self._membership(true), self._membership(predicted)
        return one & other, one | other

    def _membership(self, tokens: "Tensor") -> "Tensor":
        """Return whether each word is among codes [B, T], bool [B, V]."""
        found = tokens.new_zeros(len(tokens), self.padding + 1).scatter(1, tokens, 1)
        return found[:, : self.padding].bool()

    def _list_words(self, probability: "Tensor", chosen: "Tensor") -> "Tensor":
        """Return the codes of chosen words [..., V] in their order, [..., T]; of more than T the likeliest."""
        import torch.nn.functional as F

        kept = min(self.length, self.padding)
        best = probability.masked_fill(~chosen, -1.0).topk(kept, -1)
        codes = best.indices.masked_fill(best.values < 0, self.padding).sort(-1).values
        return F.pad(codes, (0, self.length - kept), value=self.padding)

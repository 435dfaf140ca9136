"""Product of experts: one per modality (one per attribute) and p(z), for any subset (WG Section 2)."""

from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.gaussian import DiagonalGaussian
from mmgen.inference._base import AttributeExperts, Given, ImagePosterior, Inference, Parts, product, universal_expert

__all__ = ["ProductOfExperts"]


class ProductOfExperts(Inference):
    """q(z | X) proportional to p(z) prod_{m in X} q(z | x_m): 2^M posteriors from M networks."""

    def __init__(self, parts: Parts, queries: frozenset[Given]) -> None:
        super().__init__()
        self.names = frozenset(parts.names)
        self.experts = nn.ModuleDict()
        self._image = parts.image.name if parts.image else None
        if parts.image:
            self.experts["image"] = ImagePosterior(parts)
        if parts.attributes:
            self.experts["attributes"] = AttributeExperts(parts)

    def answers(self, given: Given) -> bool:
        return bool(given) and frozenset(given) <= self.names

    def infer(self, batch: Batch, given: Given) -> DiagonalGaussian:
        votes: list[tuple[DiagonalGaussian, Tensor]] = []
        for name in given:
            if name == self._image:
                votes.append((self.experts["image"](batch), batch.present[name]))
            else:
                votes += self.experts["attributes"](batch)
        return product(votes, universal_expert(votes[0][0].mean))

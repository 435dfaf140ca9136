"""Product of experts: one per modality (one per attribute) and p(z), for any subset (WG Section 2)."""

from collections.abc import Sequence

from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.gaussian import DiagonalGaussian
from mmgen.inference._base import (
    AttributeExperts,
    Given,
    ImagePosterior,
    Inference,
    Parts,
    TextPosterior,
    product,
    universal_expert,
)

__all__ = ["ProductOfExperts"]


class ProductOfExperts(Inference):
    """q(z | X) proportional to p(z) prod_{m in X} q(z | x_m): 2^M posteriors from M networks."""

    def __init__(self, parts: Parts, queries: frozenset[Given]) -> None:
        super().__init__()
        self.names = frozenset(parts.names)
        self.experts = nn.ModuleDict()
        self._whole: dict[str, str] = {}  # modalities that have one expert, by name
        if parts.image:
            self.experts["image"] = ImagePosterior(parts)
            self._whole[parts.image.name] = "image"
        if parts.attributes:
            self.experts["attributes"] = AttributeExperts(parts)
        if parts.text:
            self.experts["text"] = TextPosterior(parts)
            self._whole[parts.text.name] = "text"

    def answers(self, given: Given) -> bool:
        return bool(given) and frozenset(given) <= self.names

    def infer(self, batch: Batch, given: Given) -> DiagonalGaussian:
        return self.infer_all(batch, [given])[0]

    def infer_all(self, batch: Batch, queries: Sequence[Given]) -> list[DiagonalGaussian]:
        votes = {name: self._votes(batch, name) for name in sorted({name for given in queries for name in given})}
        found = []
        for given in queries:
            experts = [vote for name in given for vote in votes[name]]
            found.append(product(experts, universal_expert(experts[0][0].mean)))
        return found

    def _votes(self, batch: Batch, name: str) -> list[tuple[DiagonalGaussian, Tensor]]:
        """The Gaussian experts of one modality, each with its presence [B]."""
        if name in self._whole:
            return [(self.experts[self._whole[name]](batch), batch.present[name])]
        votes: list[tuple[DiagonalGaussian, Tensor]] = self.experts["attributes"](batch)
        return votes

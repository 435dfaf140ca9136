"""The base of products and quotients of experts: posteriors composed from one network per modality.

Whatever the composition, an expert adds to the natural parameters of p(z) = N(0, I): something to the precision and
something to precision times mean. So all posteriors that are asked for are two sums over experts with masks, after each
network has run once.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.inference._base import AttributeExperts, Inference, Inputs, ModalityPosterior, Parts, Unit
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes

__all__ = ["ExpertInference"]


class ExpertInference(Inference):
    """Base of compositions of experts: 2^M posteriors from M networks."""

    any_subset: ClassVar[bool] = True

    def __init__(self, parts: Parts, queries: frozenset[Inputs]) -> None:
        super().__init__()
        self.experts = nn.ModuleDict()
        for name, modality in parts.modalities.items():
            if isinstance(modality, Attributes) and parts.attribute_network.experts == "each":
                self.experts[name] = AttributeExperts(parts, modality)
            else:
                self.experts[name] = ModalityPosterior(parts, modality)

    @abstractmethod
    def vote(self, expert: DiagonalGaussian) -> tuple[Tensor, Tensor]:
        """Return precision, at least 0, and precision times mean of experts [..., D]."""

    def has_posterior(self, inputs: Inputs) -> bool:
        return bool(inputs) and set(inputs) <= self.experts.keys()

    def infer(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        return self.infer_all(batch, [inputs])[0]

    def infer_all(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        names = list(dict.fromkeys(name for inputs in queries for name in inputs))
        chosen = [[name in inputs for name in names] for inputs in queries]
        every = self.infer_subsets(batch, [(name, None) for name in names], chosen)
        return [DiagonalGaussian(*one) for one in zip(every.mean, every.log_sd, strict=True)]

    def infer_subsets(self, batch: Batch, units: Sequence[Unit], chosen: Sequence[Sequence[bool]]) -> DiagonalGaussian:
        votes = {name: self._votes(batch, name) for name in dict.fromkeys(name for name, _ in units)}
        precisions, weighted, columns = [], [], []
        for number, (name, attribute) in enumerate(units):
            precision, mean = votes[name]
            which = slice(None) if attribute is None else slice(attribute, attribute + 1)
            precisions.append(precision[which])
            weighted.append(mean[which])
            columns += [number] * len(precisions[-1])
        mask = torch.tensor(chosen, device=batch.device)[:, columns].to(precisions[0].dtype)  # [S, E]
        with torch.autocast(batch.device.type, enabled=False):  # precisions do not survive bf16
            precision = 1 + torch.einsum("se,ebd->sbd", mask, torch.cat(precisions))
            mean = torch.einsum("se,ebd->sbd", mask, torch.cat(weighted)) / precision
        return DiagonalGaussian(mean, -0.5 * precision.log())

    def _votes(self, batch: Batch, name: str) -> tuple[Tensor, Tensor]:
        """Return precisions and weighted means of a modality's experts [E, B, D]; 0 where its observation is
        missing.
        """
        network, present = self.experts[name], batch.present[name]
        if isinstance(network, AttributeExperts):
            every = network(batch)
            expert = DiagonalGaussian(every.mean.transpose(0, 1), every.log_sd.transpose(0, 1))
            there = present.transpose(0, 1).unsqueeze(-1)
            return _masked(self.vote(expert), there)
        known = present if present.dim() == 1 else present.any(1)
        if bool(known.all()):
            one = network(batch)
            return self._alone(one)
        # Only what is there is encoded: nothing of a blank image reaches batch norm, and none is paid for.
        rows = known.nonzero().squeeze(1)
        read = rows.repeat(2) if len(rows) == 1 else rows  # batch norm has no statistics of one
        precision, mean = (vote[:, : len(rows)] for vote in self._alone(network(batch.select([name])[read])))
        blank = precision.new_zeros(1, batch.size, precision.shape[-1])
        return blank.index_copy(1, rows, precision), blank.index_copy(1, rows, mean)

    def _alone(self, expert: DiagonalGaussian) -> tuple[Tensor, Tensor]:
        precision, mean = self.vote(expert)
        return precision.unsqueeze(0), mean.unsqueeze(0)


def _masked(votes: tuple[Tensor, Tensor], there: Tensor) -> tuple[Tensor, Tensor]:
    precision, mean = votes
    return precision.masked_fill(~there, 0.0), mean.masked_fill(~there, 0.0)

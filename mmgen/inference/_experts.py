"""The base class of products and quotients of experts: posteriors of any set of modalities from one network for each.

In every composition an expert adds to the natural parameters of p(z) = N(0, I): to the precision, and to the precision
times mean. So all posteriors are masked sums over experts, and each network runs once.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.inference._base import AttributeExperts, Inference, InferenceParts, Inputs, ModalityPosterior, Unit
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes

__all__ = ["ExpertInference"]


class ExpertInference(Inference):
    """Base class of inferences that combine M encoders (experts) of one modality each to posteriors of 2^M subsets."""

    any_subset: ClassVar[bool] = True

    def __init__(self, parts: InferenceParts, queries: frozenset[Inputs]) -> None:
        super().__init__()
        self.experts = nn.ModuleDict()
        for name, modality in parts.modalities.items():
            if isinstance(modality, Attributes) and parts.attribute_network.experts == "each":
                self.experts[name] = AttributeExperts(parts, modality)
            else:
                self.experts[name] = ModalityPosterior(parts, modality)

    @abstractmethod
    def natural_parameters(self, expert: DiagonalGaussian) -> tuple[Tensor, Tensor]:
        """Return the contributions of an expert [..., D] to the precision (at least 0) and to precision times mean."""

    def has_posterior(self, inputs: Inputs) -> bool:
        return bool(inputs) and set(inputs) <= self.experts.keys()

    def infer(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        return self.infer_all(batch, [inputs])[0]

    def infer_all(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        names = list(dict.fromkeys(name for inputs in queries for name in inputs))
        chosen = [[name in inputs for name in names] for inputs in queries]
        every = self.infer_subsets(batch, [(name, None) for name in names], chosen)
        return [DiagonalGaussian(*one) for one in zip(every.mean, every.log_sd, strict=True)]

    def infer_subsets(
        self, batch: Batch, units: Sequence[Unit], membership: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        votes = {name: self._modality_parameters(batch, name) for name in dict.fromkeys(name for name, _ in units)}
        precisions, weighted, columns = [], [], []
        for number, (name, attribute) in enumerate(units):
            precision, mean = votes[name]
            which = slice(None) if attribute is None else slice(attribute, attribute + 1)
            precisions.append(precision[which])
            weighted.append(mean[which])
            columns += [number] * len(precisions[-1])
        mask = torch.tensor(membership, device=batch.device)[:, columns].to(precisions[0].dtype)  # [S, E]
        with torch.autocast(batch.device.type, enabled=False):  # precisions do not survive bf16
            precision = 1 + torch.einsum("se,ebd->sbd", mask, torch.cat(precisions))
            mean = torch.einsum("se,ebd->sbd", mask, torch.cat(weighted)) / precision
        return DiagonalGaussian(mean, -0.5 * precision.log())

    def _modality_parameters(self, batch: Batch, name: str) -> tuple[Tensor, Tensor]:
        """Compute precisions and precision-weighted means of a modality's experts [E, B, D]; 0 for missing examples."""
        network, present = self.experts[name], batch.present[name]
        if isinstance(network, AttributeExperts):
            every = network(batch)
            expert = DiagonalGaussian(every.mean.transpose(0, 1), every.log_sd.transpose(0, 1))
            there = present.transpose(0, 1).unsqueeze(-1)
            return _mask_absent(self.natural_parameters(expert), there)
        known = present if present.dim() == 1 else present.any(1)
        if bool(known.all()):
            one = network(batch)
            return self._parameters_of_one(one)
        # Only present examples are encoded: blank images would distort batch norm and cost time.
        rows = known.nonzero().squeeze(1)
        read = rows.repeat(2) if len(rows) == 1 else rows  # batch norm has no statistics of one
        precision, mean = (
            vote[:, : len(rows)] for vote in self._parameters_of_one(network(batch.select([name])[read]))
        )
        blank = precision.new_zeros(1, batch.size, precision.shape[-1])
        return blank.index_copy(1, rows, precision), blank.index_copy(1, rows, mean)

    def _parameters_of_one(self, expert: DiagonalGaussian) -> tuple[Tensor, Tensor]:
        precision, mean = self.natural_parameters(expert)
        return precision.unsqueeze(0), mean.unsqueeze(0)


def _mask_absent(parameters: tuple[Tensor, Tensor], present: Tensor) -> tuple[Tensor, Tensor]:
    precision, mean = parameters
    return precision.masked_fill(~present, 0.0), mean.masked_fill(~present, 0.0)

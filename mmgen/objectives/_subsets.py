"""What objectives over the posteriors of several subsets of modalities share."""

from collections.abc import Sequence
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models import USUAL_NEEDS, Demands, GaussianModel
from mmgen.objectives._base import Modalities, WeightedObjective, relative_weight


class SubsetObjective(WeightedObjective, settings=True):
    """Base of objectives over the posteriors of subsets of modalities, each of which generates all modalities."""

    modalities: Modalities = ("image", "attributes")
    """The modalities, by their names in the dataset; at least two."""
    beta: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """Weight of the divergences."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergences are switched on."""

    def make_demands(self, inference: str, *needs: str) -> Demands:
        """Return the demands of an objective that generates all modalities and infers from any subset of them."""
        if len(self.modalities) < 2:
            raise SettingsError(
                f"objective.modalities got {self.modalities[0]} alone, expected at least two for an objective that "
                "compares modalities; name another one, or use elbo"
            )
        queries = frozenset([self.modalities, *((name,) for name in self.modalities)])
        return Demands(queries, self.modalities, inference=inference, needs=USUAL_NEEDS | {"subsets", *needs})

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return lambda / beta of the bound through the posterior of all modalities."""
        return relative_weight(self.weight(name, kind), self.beta)

    def log_likelihoods(self, model: GaussianModel, z: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return log p(x_m | z) [..., B] in nats of all modalities m for z [..., B, D], unweighted; 0 where unknown."""
        flat = z.flatten(0, -3) if z.dim() > 3 else z
        return {name: model.log_likelihood(name, flat, batch).reshape(z.shape[:-1]) for name in self.modalities}

    def weigh(self, model: GaussianModel, terms: dict[str, Tensor]) -> Tensor:
        """Return the sum over modalities of lambda_m times its term."""
        weights = self.weights_of(model, self.modalities)
        return torch.stack([weights[name] * term for name, term in terms.items()]).sum(0)

    @property
    def is_unweighted(self) -> bool:
        """Whether every likelihood and the divergences count once."""
        return self.beta == 1 and all(each == 1 for each in (*self.weights.values(), *self.short_weights.values()))


def subset_posteriors(
    model: GaussianModel, batch: Batch, names: Sequence[str], subsets: Sequence[Sequence[str]]
) -> DiagonalGaussian:
    """Return q(z | subset) [S, B, D] for S subsets of modalities."""
    units = [(name, None) for name in names]
    return model.subset_posteriors(batch, units, [[name in subset for name in names] for subset in subsets])


def present_modalities(batch: Batch, names: Sequence[str]) -> Tensor:
    """Return which examples have each modality, or any part of it, bool [M, B]."""
    return torch.stack([batch.known(name) for name in names])


def mean_where(terms: Tensor, held: Tensor) -> Tensor:
    """Return the mean over the first axis of those terms [S, B] that ``held`` [S, B] names; 0 where there is none."""
    return torch.where(held, terms, 0.0).sum(0) / held.sum(0).clamp(min=1)

"""A mixture of experts as somebody outside writes it: an objective, and a model with layers of its own.

Nothing of mmgen's own objectives of that kind is used: what a page or a check does not give is missing here.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.core.batch import Batch
from mmgen.models import USUAL_NEEDS, Demands, GaussianModel, MultimodalSettings
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.objectives import CONFIG, Bound, WeightedObjective

__all__ = ["Experts", "ExpertsVae"]


class ExpertsSettings(MultimodalSettings):
    """Settings of the model below."""

    example: ClassVar[Mapping[str, Any]] = {"latent_size": 3, "hidden": 16, "image_network": {"name": "mlp"}}

    name: Literal["experts-vae"] = "experts-vae"  # type: ignore[assignment]  # another kind of model
    """The kind of model."""


class ExpertsVae(MultimodalVAE):
    """Multimodal VAE whose author promises something that no model of mmgen does."""

    settings = ExpertsSettings

    @property
    def capabilities(self) -> frozenset[str]:
        return super().capabilities | {"experts"}


@dataclass(frozen=True, config=CONFIG)
class Experts(WeightedObjective):
    """Importance-weighted bound through the mean of two experts, drawn from each in turn."""

    image_weight: Annotated[float, Field(ge=0)] = 1.0
    """lambda of the image."""
    attributes_weight: Annotated[float, Field(ge=0)] = 1.0
    """lambda of the attributes."""
    text_weight: Annotated[float, Field(ge=0)] = 1.0
    """Without effect here; every weighted objective has it."""
    draws: Annotated[int, Field(ge=1)] = 1
    """K."""

    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({"draws": 4},)

    @property
    def demands(self) -> Demands:
        both = ("image", "attributes")
        return Demands(
            frozenset([both, ("image",), ("attributes",)]),
            both,
            inference="product-of-experts",
            needs=USUAL_NEEDS | {"subsets", "experts"},
        )

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """lambda: the divergence to p(z) is not weighed."""
        return self.weight(name, kind)

    def __call__(self, model: GaussianModel, batch: Batch, step: int | None = None) -> Bound:
        names = ("image", "attributes")
        q = model.subset_posteriors(batch, [(name, None) for name in names], [[True, False], [False, True]])
        z = q.sample(shape=(self.draws,))
        flat = z.flatten(0, 1)
        weights = self.weights_of(model, names)
        terms = {name: model.log_likelihood(name, flat, batch).reshape(z.shape[:-1]) for name in names}
        likelihood = sum(weights[name] * term for name, term in terms.items())
        present = torch.stack([batch.present[name].reshape(batch.size, -1).any(1) for name in names])
        known = present | ~present.any(0)
        each = q.log_prob(z.unsqueeze(2)).masked_fill(~known, -torch.inf)
        log_q = each.logsumexp(2) - known.sum(0).log()
        log_weight = likelihood + model.log_prior(z) - log_q
        bound = log_weight.logsumexp(0) - math.log(self.draws)
        value = (bound * known).sum(0) / known.sum(0)
        exact = all(weight == 1 for weight in weights.values())
        kl = (log_q - model.log_prior(z)).mean((0, 1))
        return Bound(value, {"kl": kl} | {name: term.mean((0, 1)) for name, term in terms.items()}, is_bound=exact)

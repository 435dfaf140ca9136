"""MVAE: the joint bound and the bound of each modality alone, through one product of experts.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), Eq. 5, arXiv:1802.05335
"""

from typing import Annotated

import torch
from pydantic import Field
from pydantic.dataclasses import dataclass

from mmgen.batch import Batch
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.objectives._base import CONFIG, Bound, Objective, prior_kl, warmup

__all__ = ["Mvae"]


@dataclass(frozen=True, config=CONFIG)
class Mvae(Objective):
    r"""Sub-sampled training for two modalities: every subset is a term, so that each expert learns alone too.

    .. math:: ELBO(x, y) + ELBO(x) + ELBO(y)  \qquad \text{(WG Eq. 5; with two modalities there are no other subsets)}
    """

    default_inference = "product-of-experts"

    image_weight: Annotated[float, Field(ge=0)] = 1.0
    """lambda of the image likelihood (WG: 1)."""
    attributes_weight: Annotated[float, Field(ge=0)] = 50.0
    """lambda of the attribute likelihood (WG: 50)."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergences."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergences are switched on."""

    @property
    def queries(self) -> frozenset[tuple[str, ...]]:
        return frozenset([("image", "attributes"), ("image",), ("attributes",)])

    def __call__(self, model: MultimodalVAE, batch: Batch, step: int | None = None) -> Bound:
        scale = self.beta * warmup(step, self.kl_warmup_steps)
        weights = {"image": self.image_weight, "attributes": self.attributes_weight}
        terms = {}
        value = batch.values["image"].new_zeros(batch.size)
        queries = (("image", "attributes"), ("image",), ("attributes",))
        posteriors = model.posteriors(batch, queries)
        z = [q.sample() for q in posteriors]
        for name, weight in weights.items():
            # Each decoder runs once, on the draws of all posteriors that it answers for.
            asked = [number for number, given in enumerate(queries) if name in given]
            found = model.log_likelihood(name, torch.stack([z[number] for number in asked]), batch)
            for number, term in zip(asked, found, strict=True):
                value = value + weight * term
                terms[f"log p({name}|z){_suffix(queries[number])}"] = term
        for given, q in zip(queries, posteriors, strict=True):
            kl = prior_kl(q)
            value = value - scale * kl
            terms[f"kl{_suffix(given)}"] = kl
        return Bound(value, terms, is_bound=False)


def _suffix(given: tuple[str, ...]) -> str:
    return "" if len(given) == 2 else f", {given[0]} alone"

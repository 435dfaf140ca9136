"""Conditional VAE: data given attributes or a caption, p(z) p(x | z, y), such as images of a description.

References:
    Learning Structured Output Representation using Deep Conditional Generative Models (Sohn, Lee, Yan, 2015)
"""

from typing import Annotated

import torch
from pydantic import Field

from mmgen.core.batch import Batch
from mmgen.models import Demands, Model
from mmgen.objectives._base import Bound, Objective, warmup_weight

__all__ = ["Cvae"]


class Cvae(Objective, settings=True):
    r"""Bound on log p(x|y): encoder and decoder are given the description y, which is not generated.

    .. math:: E_{q(z|x,y)}[\log p(x|z,y)] - \beta \, KL(q(z|x,y) \,\|\, p(z|y))

    p(z|y) is N(0, I), or as Sohn et al. have it (Eq. 4) a network's, learned with the model: setting ``model.prior``.
    """

    observation: str = "image"
    """Modality that is generated, x: an image, or data of any other kind."""
    description: str = "attributes"
    """Modality that encoder and decoder see, y: attributes, or text."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergence."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergence is switched on."""
    hidden_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the known attributes, or of the texts, that training hides from encoder and decoder, each at random, so
    that the decoder learns to draw partial descriptions; Sohn et al. hide none."""

    @property
    def demands(self) -> Demands:
        x, y = self.observation, self.description
        return Demands(frozenset([(x, y)]), generates=(x,), conditions_on=(y,))

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return None: y is not generated, so that there is no p(y|z), and nothing of it in p(z|y)."""
        return None

    def __call__(self, model: Model, batch: Batch, step: int | None = None) -> Bound:
        x = self.observation
        if step is not None and self.hidden_share:
            batch = self._hide_descriptions(batch)
        trace = model.trace(batch, (x, self.description), names=(x,))
        likely = trace.expected_log_likelihood[x]
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        value = likely - scale * trace.total_divergence
        return Bound(value, {f"log p({x}|z)": likely} | trace.layer_divergences, scale >= 1)

    def _hide_descriptions(self, batch: Batch) -> Batch:
        """Return the batch with a random share of its known attributes or texts unknown."""
        name = self.description
        present = batch.present[name] & (
            torch.rand(batch.present[name].shape, device=batch.device) >= self.hidden_share
        )
        values = batch.values[name]
        blank = values.masked_fill(~present.reshape(*present.shape, *[1] * (values.dim() - present.dim())), 0)
        return batch | Batch({name: blank}, {name: present})

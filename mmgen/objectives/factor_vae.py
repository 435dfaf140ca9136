"""FactorVAE: the ELBO minus the total correlation of z, which a discriminator estimates.

References:
    Disentangling by Factorising (Kim, Mnih, 2018), arXiv:1802.05983, Eq. 2 and 3, Algorithms 1 and 2
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.models import Demands, GaussianModel
from mmgen.objectives._base import Bound, Modalities
from mmgen.objectives._opponent import Adversarial, Opponent, keep_unchanged

__all__ = ["FactorVae"]

Share = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class FactorVae(Adversarial, settings=True):
    r"""The ELBO minus the weighted total correlation of z, which a discriminator estimates.

    .. math:: E_{q(z|x)}[\log p(x|z)] - KL(q(z|x) \,\|\, p(z)) - \gamma \, KL(q(z) \,\|\, \prod_j q(z_j))
              \qquad \text{(Kim, Mnih, Eq. 2)}

    The last divergence, the total correlation, is taken as the mean of D_0(z) - D_1(z) over q(z) (Eq. 3), the
    difference of the two logits by which the discriminator tells draws of q(z) from draws whose dimensions are permuted
    apart, each over a second batch. With gamma = 0 it is ``elbo``, bit for bit.
    """

    modalities: Modalities = ("image",)
    """What is generated; image alone is the paper's model."""
    given: tuple[str, ...] = ("image",)
    """What the posterior sees."""
    gamma: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 35.0
    """Weight of the total correlation (Kim & Mnih on dSprites: 35, from memory)."""
    discriminator_layers: Annotated[int, Field(ge=1)] = 6
    """Hidden layers of the discriminator (Kim & Mnih, Appendix A)."""
    discriminator_width: Annotated[int, Field(ge=1)] = 1000
    """Their width (Kim & Mnih, Appendix A)."""
    discriminator_learning_rate: Positive = 1e-4
    """Adam's step size for the discriminator; schedule, warm-up, weight decay and gradient clip are those of the
    run."""
    discriminator_betas: tuple[Share, Share] = (0.5, 0.9)
    """Adam's betas for the discriminator (Kim & Mnih, Appendix A)."""

    @property
    def demands(self) -> Demands:
        inference = "image-only" if self.given == ("image",) else "joint"
        return Demands(frozenset([self.given]), generates=self.modalities, inference=inference)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return 1: the total correlation is not part of the divergence of single examples."""
        return 1.0 if self.gamma == 0 else None

    def opponent(self, model: GaussianModel) -> Opponent:
        return _Discriminator(model.latent_size, self)

    def __call__(
        self, model: GaussianModel, batch: Batch, step: int | None = None, opponent: Opponent | None = None
    ) -> Bound:
        trace = model.trace(batch, self.given, None, self.modalities)
        value = sum(trace.expected_log_likelihood.values(), -trace.total_divergence)
        opponent = self.opponent(model).to(trace.z.device) if opponent is None else opponent
        assert isinstance(opponent, _Discriminator), f"got {type(opponent).__name__}, which tells no total correlation"
        log_ratio = opponent.log_ratio(trace.z)
        terms = {
            f"log p({name}|z)": term for name, term in trace.expected_log_likelihood.items()
        } | trace.layer_divergences
        terms["total correlation"] = log_ratio
        # Without it the value is that of elbo, to the last bit.
        return Bound(value - self.gamma * log_ratio if self.gamma else value, terms, is_bound=self.gamma == 0)


class _Discriminator(Opponent):
    """Discriminator that tells draws of q(z) from draws of the product of its marginals (Kim, Mnih, Algorithm 2).

    Args:
        size: D, dimensions of z.
        settings: Its sizes, and how it learns.
    """

    name = "discriminator"

    def __init__(self, size: int, settings: FactorVae) -> None:
        super().__init__()
        widths = [size, *[settings.discriminator_width] * settings.discriminator_layers]
        hidden = [nn.Sequential(nn.Linear(a, b), nn.LeakyReLU(0.2)) for a, b in pairwise(widths)]
        self.layers = nn.Sequential(*hidden, nn.Linear(widths[-1], 2))
        self.settings = settings

    @property
    def training_settings(self) -> Mapping[str, Any]:
        settings = self.settings
        return {
            "optimizer": "adam",
            "learning_rate": settings.discriminator_learning_rate,
            "adam_betas": settings.discriminator_betas,
            "adam_epsilon": 1e-8,
        }

    def logits(self, z: Tensor) -> Tensor:
        """Return logits [B, 2] of the two origins of z [B, D]: q(z), and the product of its marginals."""
        found: Tensor = self.layers(z.to(next(self.parameters()).dtype))
        return found.to(z.dtype)  # fp32 where networks compute in bf16

    def log_ratio(self, z: Tensor) -> Tensor:
        """Return log q(z) - log prod_d q(z_d) [B] in nats for z [B, D], as the discriminator estimates it."""
        logits = self.logits(z)
        return logits[:, 0] - logits[:, 1]

    def forward(self, model: GaussianModel, batch: Batch, other_batch: Batch, step: int | None = None) -> Bound:
        """Return the mean log-probability of the true origin over a draw of either kind; -log 2 is chance."""
        with keep_unchanged(model):
            joint = model.posterior(batch, self.settings.given).sample()
            apart = permute_dimensions(model.posterior(other_batch, self.settings.given).sample())
        known = F.log_softmax(self.logits(joint), -1)[:, 0]
        caught = F.log_softmax(self.logits(apart), -1)[:, 1]
        return Bound((known + caught) / 2, {"log D(z)": known, "log (1 - D(permuted z))": caught})


def permute_dimensions(z: Tensor) -> Tensor:
    """Permute each dimension of z [B, D] over the batch: draws of the product of marginals (Kim, Mnih, Algorithm 1)."""
    return z.gather(0, torch.rand(z.shape, device=z.device).argsort(0))

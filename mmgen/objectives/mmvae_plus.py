"""MMVAE+: MMVAE with layers of z that belong to single modalities, which other modalities' posteriors do not explain.

References:
    MMVAE+: Enhancing the Generative Quality of Multimodal VAEs without Compromises (Palumbo, Daunhawer, Vogt, 2023),
    Eq. 3 and 4
"""

from typing import ClassVar

import torch
from torch import Tensor

from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.mixture import GaussianMixture
from mmgen.models import Demands, GaussianModel
from mmgen.objectives.mmvae import Mmvae

__all__ = ["MmvaePlus"]


class MmvaePlus(Mmvae, settings=True):
    r"""MMVAE over z = (u, w_1, ..., w_M): a modality's posterior infers the shared u and its own w_m.

    .. math:: \frac{1}{M} \sum_m E \log \frac{1}{K} \sum_{k=1}^K p(x_m|u, w_m)^{\lambda_m} \prod_{n \ne m}
              p(x_n|u, \tilde w_n)^{\lambda_n} \Big(\frac{p(u) \, p(w_m)}{q(u|X) \, q(w_m|x_m)}\Big)^\beta

    with u and w_m drawn from q(u|x_m) q(w_m|x_m), the other :math:`\tilde w_n` from N(0, s_n^2) with a learned s_n, and
    q(u|X) the mixture over modalities. Sizes of w are the model's (``model.private_sizes``). Of the paper's Laplace
    posteriors these are the Gaussian counterpart.
    """

    _bounds: ClassVar[bool] = False  # w of other modalities is not drawn from p(w)

    @property
    def demands(self) -> Demands:
        return self.make_demands("mixture-of-experts", "mixture", "private latents")

    def inferred_layers(self, model: GaussianModel) -> Tensor:
        latent = model.latent
        owners = [latent.owners.get(layer, "") for layer, size in latent.layers.items() for _ in range(size)]
        return torch.tensor([[owner in ("", name) for owner in owners] for name in self.modalities]).unsqueeze(1)

    def log_ratio(self, model: GaussianModel, z: Tensor, q: DiagonalGaussian, present: Tensor) -> Tensor:
        layers = model.latent.split(z)
        means, log_sds = model.latent.split(q.mean), model.latent.split(q.log_sd)

        def prior(part: Tensor) -> Tensor:
            return DiagonalGaussian.standard(part.shape[-1], like=part).log_prob(part)

        shared = [layer for layer in layers if layer not in model.latent.owners]
        u = torch.cat([layers[layer] for layer in shared], -1)
        experts = DiagonalGaussian(*(torch.cat([of[layer] for layer in shared], -1) for of in (means, log_sds)))
        ratio = prior(u) - GaussianMixture.even(experts, present).log_prob(u)
        own = []
        for number, name in enumerate(self.modalities):
            mine = [layer for layer, owner in model.latent.owners.items() if owner == name]
            terms = [
                prior(layers[layer][:, number])
                - DiagonalGaussian(means[layer][number], log_sds[layer][number]).log_prob(layers[layer][:, number])
                for layer in mine
            ]
            own.append(torch.stack(terms).sum(0) if terms else torch.zeros_like(ratio[:, number]))
        return ratio + torch.stack(own, 1)

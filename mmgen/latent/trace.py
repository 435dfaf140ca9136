"""The trace of an encoding and decoding x -> z -> x: log-likelihoods and divergences of draws of z.

References:
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114, Eq. 3
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Eq. 8
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Trace"]


@dataclass(frozen=True)
class Trace:
    r"""K draws of z for each of B examples, with log-likelihoods and divergences; a single draw has no axis K.

    Attributes:
        z: The draws [K, B, D].
        log_likelihood: log p(x_m | z) by modality, nats [K, B].
        divergence: KL(q || p) by layer, nats: in closed form if there is one ([B], or [K, B] if it depends on the
            layers below), else log q - log p at the draws [K, B].
        log_ratio: log p(z_l | ...) - log q(z_l | ...) at the draws, by layer, nats [K, B].
    """

    z: Tensor
    log_likelihood: dict[str, Tensor]
    divergence: dict[str, Tensor]
    log_ratio: dict[str, Tensor]

    def log_weight(self, weights: Mapping[str, float] | None = None, scale: float = 1.0) -> Tensor:
        r"""Return log importance weights of the draws, nats [K, B].

        .. math:: \sum_m \lambda_m \log p(x_m|z) + \beta \sum_l \log \frac{p(z_l|\cdot)}{q(z_l|\cdot)}

        Args:
            weights: lambda by modality; by default 1.
            scale: beta, the weight of the divergences.
        """
        likelihoods = [(weights or {}).get(name, 1.0) * term for name, term in self.log_likelihood.items()]
        return torch.stack(likelihoods).sum(0) + scale * torch.stack(list(self.log_ratio.values())).sum(0)

    @property
    def expected_log_likelihood(self) -> dict[str, Tensor]:
        """Means of the log-likelihoods over draws by modality, nats [B]."""
        return {name: self._mean_over_draws(term) for name, term in self.log_likelihood.items()}

    @property
    def cost(self) -> Tensor:
        """Sum of the divergences of all layers, averaged over draws, nats [B]."""
        every = [self._mean_over_draws(term) for term in self.divergence.values()]
        return every[0] if len(every) == 1 else torch.stack(every).sum(0)

    @property
    def costs(self) -> dict[str, Tensor]:
        """Divergences averaged over draws, nats [B], by name in logs: "kl" for a flat z, "kl of z2" for a layer."""
        means = {layer: self._mean_over_draws(term) for layer, term in self.divergence.items()}
        return (
            {"kl": means["z"]} if means.keys() == {"z"} else {f"kl of {layer}": term for layer, term in means.items()}
        )

    def _mean_over_draws(self, term: Tensor) -> Tensor:
        """Average a term [K, B] over draws to [B]; return a term [B] unchanged."""
        several = self.z.dim() == 3 and term.dim() == 2
        return term.mean(0) if several and len(term) > 1 else term[0] if several else term

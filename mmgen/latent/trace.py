"""Log-likelihoods and divergences of draws of z, from encoding and decoding examples (x -> z -> x).

References:
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114, Eq. 3
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Eq. 8
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Trace:
    r"""K draws of z for each of B examples, with their log-likelihoods log p(x | z) and divergences from the prior.

    Attributes:
        z: The draws [K, B, D]; here and below, a single draw has no axis K.
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
        r"""Return the log importance weight of each draw, log p(x, z) - log q(z | x), in nats [K, B].

        .. math:: \sum_m \lambda_m \log p(x_m|z) + \beta \sum_l \log \frac{p(z_l|\cdot)}{q(z_l|\cdot)}

        Args:
            weights: lambda by modality; by default 1.
            scale: beta, the weight of the divergences.
        """
        likelihoods = [(weights or {}).get(name, 1.0) * term for name, term in self.log_likelihood.items()]
        return torch.stack(likelihoods).sum(0) + scale * torch.stack(list(self.log_ratio.values())).sum(0)

    @property
    def expected_log_likelihood(self) -> dict[str, Tensor]:
        """Mean of log p(x_m | z) over draws, in nats [B], by modality m."""
        return {name: self._mean_over_draws(term) for name, term in self.log_likelihood.items()}

    @property
    def total_divergence(self) -> Tensor:
        """Divergence of the posterior from the prior, summed over layers and averaged over draws, in nats [B]."""
        every = [self._mean_over_draws(term) for term in self.divergence.values()]
        return every[0] if len(every) == 1 else torch.stack(every).sum(0)

    @property
    def layer_divergences(self) -> dict[str, Tensor]:
        """Divergence of each layer averaged over draws, nats [B], by its name in logs: "kl", or "kl of z2"."""
        means = {layer: self._mean_over_draws(term) for layer, term in self.divergence.items()}
        return (
            {"kl": means["z"]} if means.keys() == {"z"} else {f"kl of {layer}": term for layer, term in means.items()}
        )

    def _mean_over_draws(self, term: Tensor) -> Tensor:
        """Average a term [K, B] over its K draws; return a term [B] unchanged."""
        several = self.z.dim() == 3 and term.dim() == 2
        return term.mean(0) if several and len(term) > 1 else term[0] if several else term

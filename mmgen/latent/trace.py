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
    r"""K draws of z for each of B examples; without an axis K where a single draw was asked for.

    Attributes:
        z: The draws [K, B, D].
        log_likelihood: log p(x_m | z) by modality, nats [K, B].
        divergence: What z costs, by layer, nats: KL(q || p) in closed form where there is one ([B], or [K, B] where it
            depends on the layers below), else log q - log p at the draws [K, B].
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
            weights: lambda by modality; 1 where it is not named.
            scale: beta, the weight of what z costs.
        """
        of_data = [(weights or {}).get(name, 1.0) * term for name, term in self.log_likelihood.items()]
        return torch.stack(of_data).sum(0) + scale * torch.stack(list(self.log_ratio.values())).sum(0)

    @property
    def expected_log_likelihood(self) -> dict[str, Tensor]:
        """Means of the log-likelihoods over draws by modality, nats [B]."""
        return {name: self._mean(term) for name, term in self.log_likelihood.items()}

    @property
    def cost(self) -> Tensor:
        """Sum of all divergences, a mean over draws, nats [B]."""
        every = [self._mean(term) for term in self.divergence.values()]
        return every[0] if len(every) == 1 else torch.stack(every).sum(0)

    @property
    def costs(self) -> dict[str, Tensor]:
        """Divergences by name for the log, means over draws, nats [B]: "kl" of a flat z, "kl of z2" of layers."""
        means = {layer: self._mean(term) for layer, term in self.divergence.items()}
        return (
            {"kl": means["z"]} if means.keys() == {"z"} else {f"kl of {layer}": term for layer, term in means.items()}
        )

    def _mean(self, term: Tensor) -> Tensor:
        """Return a term [K, B] as its mean over draws [B]; one that is the same for all draws as it is."""
        several = self.z.dim() == 3 and term.dim() == 2
        return term.mean(0) if several and len(term) > 1 else term[0] if several else term

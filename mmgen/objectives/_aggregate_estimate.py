r"""Estimate of log q(z), the aggregated posterior of a dataset, from one batch.

With q(z) the mean of q(z|x_n) over the N examples of the data, a draw z of the i-th example of a batch of B has

.. math:: \hat q(z) = \frac{1}{N} q(z|x_i) + \frac{N - 1}{N (B - 1)} \sum_{j \neq i} q(z|x_j)

which is unbiased, since the others are a random choice of the N - 1 other examples, and exact where the batch is the
data. Chen et al. give one of the others a smaller weight than the rest; this is the mean of theirs over the order of
the batch, of equal expectation and less variance. Its logarithm is still too small on average, and the fewer of the
others reach z the more: with narrow posteriors the mutual information comes out near log N whatever it is. Reports
therefore take q(z) over all examples (metric ``total-correlation``), where I(x; z) is at most log N and the total
correlation is biased upwards as I(x; z) comes near it.

References:
    Isolating Sources of Disentanglement in Variational Autoencoders (Chen et al., 2018), arXiv:1802.04942, Appendix C.2
    Structured Disentangled Representations (Esmaeili et al., 2019), arXiv:1804.02086
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mmgen.core.errors import SettingsError
from mmgen.core.memory import check_memory
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.objectives._base import RunSettings

_MANY = 2**26
"""Densities that any machine can hold."""
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class AggregateDensities:
    """Log densities in nats of draws z [B, D] under q(z|x), q(z), its marginals and p(z), one draw per example.

    Attributes:
        conditional: log q(z_d | x) of every dimension under its own posterior [B, D].
        joint: log q(z) [B].
        groups: log q(z_g) of G groups of dimensions [B, G].
        marginals: log q(z_d) of every dimension [B, D].
        prior: log p(z_d) [B, D].
    """

    conditional: Tensor
    joint: Tensor
    groups: Tensor
    marginals: Tensor
    prior: Tensor

    @property
    def mutual_information(self) -> Tensor:
        """Estimate of the mutual information of x and z: log q(z|x) - log q(z) [B]."""
        return self.conditional.sum(1) - self.joint

    @property
    def total_correlation(self) -> Tensor:
        """Estimate of the total correlation: log q(z) minus the sum of log q(z_d) over dimensions [B]."""
        return self.joint - self.marginals.sum(1)

    @property
    def between_groups(self) -> Tensor:
        """Estimate of the correlation between groups: log q(z) minus the sum of log q(z_g) over groups [B]."""
        return self.joint - self.groups.sum(1)

    @property
    def within_groups(self) -> Tensor:
        """Estimate of the correlation within groups: sum of log q(z_g) minus sum of log q(z_d) [B]."""
        return self.groups.sum(1) - self.marginals.sum(1)

    @property
    def dimension_wise(self) -> Tensor:
        """Estimate of the divergence of single dimensions: sum of log q(z_d) minus sum of log p(z_d) [B]."""
        return (self.marginals - self.prior).sum(1)


def estimate_aggregate(
    z: Tensor, q: DiagonalGaussian, examples: int | None = None, groups: Sequence[int] = ()
) -> AggregateDensities:
    """Estimate log densities of draws z [B, D] under the aggregated posterior q(z), from a batch, in at least fp32."""
    assert not groups or sum(groups) == z.shape[1]
    if (pairs_held := len(z) ** 2 * z.shape[1]) > _MANY and z.device.type == "cpu":
        held = f"densities of {len(z):,} draws under {len(z):,} posteriors"
        check_memory(4 * pairs_held * z.element_size(), held, "use a smaller --batch")
    z, mean, log_sd = (each if each.dtype == torch.float64 else each.float() for each in (z, q.mean, q.log_sd))
    standardised = (z[:, None] - mean) * (-log_sd).exp()
    pairs = -0.5 * standardised.square() - log_sd - _HALF_LOG_2_PI  # [B of z, B of x, D]
    weights = _log_weights(len(z), examples or 0).to(pairs)

    def log_mixture(log_density: Tensor) -> Tensor:
        """Return the log of densities averaged over the examples x of the batch: [B of z, B of x] -> [B]."""
        return (log_density + weights).logsumexp(1)

    marginals = (pairs + weights[..., None]).logsumexp(1)
    grouped = marginals
    if groups:
        grouped = torch.stack([log_mixture(part.sum(-1)) for part in pairs.split(list(groups), -1)], 1)
    prior = -0.5 * z.square() - _HALF_LOG_2_PI
    return AggregateDensities(pairs.diagonal().T, log_mixture(pairs.sum(-1)), grouped, marginals, prior)


def check_examples(examples: int | None, training: RunSettings) -> None:
    """Refuse a setting ``objective.examples`` smaller than the batch."""
    if examples is not None and examples < training.batch:
        raise SettingsError(
            f"objective.examples got {examples:,}, expected at least the {training.batch:,} examples of a batch "
            "(training.batch); leave it out to use the number of training examples"
        )


def _log_weights(size: int, examples: int) -> Tensor:
    """Return log weights [B, B] with which each q(z_i | x_j) counts in the estimate of q(z_i); rows add up to 1.

    Example:
        >>> [round(float(weight), 4) for weight in _log_weights(3, 9).exp()[0] * 9]  # 1 for itself, 8 for the others
        [1.0, 4.0, 4.0]
    """
    examples = max(examples, size)
    if size == 1:
        return torch.zeros(1, 1)  # one example knows of no other
    others = math.log((examples - 1) / (examples * (size - 1)))
    return torch.full((size, size), others).fill_diagonal_(-math.log(examples))

"""How much each dimension of a code says of each factor, and which dimension follows which factor.

References:
    Isolating Sources of Disentanglement in Variational Autoencoders (Chen et al., 2018), arXiv:1802.04942, Section 4
    Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations (Locatello et al., 2019)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmgen.evaluation.factors import Code

__all__ = [
    "BINS",
    "GAP",
    "LEAST",
    "LeadingDimension",
    "chance_information",
    "leading_dimensions",
    "relative_information",
]

BINS = 20
"""Bins of each dimension, of equal width (Locatello et al., 2019)."""
LEAST = 0.1
"""Normalised mutual information, above what chance gives, from which a dimension is said to follow a factor: a tenth of
what there is to know of it."""
GAP = 0.2
"""How much more a dimension has of a factor than the next one, where the factor is said to be found. A dimension of its
own has up to 1, two factors turned by 45 degrees against two dimensions have 0; between them the choice is ours."""


def relative_information(code: Code) -> NDArray[np.float64]:
    """Compute I(v; z) / H(v) [D, K] for each latent dimension z and factor v, from 0 to 1; 0 for a constant factor."""
    return np.stack([_information_on_factor(code, factor) for factor in range(len(code.names))], axis=1)


def chance_information(code: Code) -> NDArray[np.float64]:
    """Return the expected I(v; z) / H(v) [K] of a dimension of pure noise: (bins - 1)(values - 1) / 2N H(v).

    To the leading order in 1/N (Miller, 1955): 0.01 for the 40 angles of dSprites and N = 10,000, 0.03 for N = 3,000.
    """
    found = []
    for column in code.factors.T:
        share = np.bincount(column) / len(column)
        share = share[share > 0]
        entropy = -(share * np.log(share)).sum()
        found.append((BINS - 1) * (len(share) - 1) / (2 * len(column) * entropy) if entropy > 0 else 0.0)
    return np.array(found)


def _information_on_factor(code: Code, factor: int) -> NDArray[np.float64]:
    """Compute I(v; z) / H(v) [D] for each latent dimension z and one factor v."""
    values = code.factors[:, factor]
    share = np.bincount(values) / len(values)
    entropy = -(share[share > 0] * np.log(share[share > 0])).sum()
    if not entropy > 0:
        return np.zeros(code.means.shape[1])
    found = []
    for column in code.means.T:
        edges = np.histogram_bin_edges(column, BINS)
        binned = np.digitize(column, edges[1:-1])
        joint = np.zeros((BINS, len(share)))
        np.add.at(joint, (binned, values), 1 / len(values))
        independent = joint.sum(1, keepdims=True) * joint.sum(0)
        some = joint > 0
        found.append((joint[some] * np.log(joint[some] / independent[some])).sum() / entropy)
    return np.array(found)


@dataclass(frozen=True)
class LeadingDimension:
    """The latent dimension that has the most information on a factor.

    Attributes:
        factor: Name of the factor.
        dimension: Position in z.
        information: I(v; z) / H(v), of 1.
        gap: How much more that is than what the next dimension has of the factor.
        exclusive: Whether the dimension has less of every other factor.
    """

    factor: str
    dimension: int
    information: float
    gap: float
    exclusive: bool

    @property
    def has_own_dimension(self) -> bool:
        """Return True if one dimension has clearly more information on the factor than the next, by :data:`GAP`."""
        return self.exclusive and self.gap >= GAP


def leading_dimensions(information: NDArray[np.float64], names: Sequence[str]) -> list[LeadingDimension]:
    """Find the latent dimension with the most information on each factor.

    Args:
        information: I(v; z) / H(v) [D, K].
        names: The K factors.

    Example:
        >>> x, y = leading_dimensions(np.array([[0.8, 0.1], [0.1, 0.3], [0.0, 0.25]]), ["x", "y"])
        >>> x.dimension, x.has_own_dimension, y.dimension, y.exclusive, y.has_own_dimension
        (0, True, 1, True, False)
    """
    leading = []
    for factor, name in enumerate(names):
        column = information[:, factor]
        dimension = int(column.argmax())
        others = np.delete(column, dimension)
        gap = float(column[dimension] - others.max(initial=0.0))
        exclusive = bool(np.delete(information[dimension], factor).max(initial=-1.0) < column[dimension])
        leading.append(LeadingDimension(name, dimension, float(column[dimension]), gap, exclusive))
    return leading

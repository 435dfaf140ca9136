r"""Balanced guidance: attributes that a description leaves unspecified keep their shares.

Guidance favours latents of which the model predicts the words with certainty. Among draws for "scale=big", digits whose
size is hard to tell become fewer, although the description does not ask for that. Among all densities in which each
value v of each unspecified attribute k has its share s_kv, the one nearest to q_w is (I-projection, or "raking")

.. math:: q_w^b(z|y) \propto q_w(z|y) \exp\Big(\sum_{k,v} \lambda_{kv}\, p(a_k = v \mid z)\Big), \quad
          E_{q_w^b}[p(a_k = v \mid z)] = s_{kv}.

Shares are those in q(z|y) if q reads the description; else those at w = 1, the model's own conditional.

References:
    I-Divergence Geometry of Probability Distributions and Minimization Problems (Csiszar, 1975), Ann. Probability 3
    Calibration Estimators in Survey Sampling (Deville, Sarndal, 1992), JASA 87
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.descriptions import Expression
from mmgen.posteriors._likelihood import WordLikelihood

__all__ = ["Balance", "Balanced", "Candidates", "effective_size", "description_key", "find_multipliers"]

_FIRST, _MOST = 4096, 65_536
"""First and largest number of draws for balancing a description: half determine lambda, half measure its error."""
_ENOUGH, _PER_VALUE = 512.0, 8.0
"""Smallest sufficient effective sample size of a half: in all, and for each unspecified value."""
_FAR = 0.05
"""Distance of shares from their targets, with its error added, above which there is a warning."""
_ERRORS = 2.0
"""Number of standard errors within which a share counts as equal to its target, and that are added to distances."""
_LIFT = 3.0
"""Nats by which lambda may raise some draws above others before the largest number of draws is used."""

_STEPS, _CLOSE = 100, 1e-9
_LEAST_RIDGE = 1e-4


def effective_size(log_weights: Tensor) -> float:
    """Return the effective sample size of draws with log weights [K]; 0 if no weight is finite."""
    size = 1 / float(log_weights.double().softmax(0).square().sum())
    return size if math.isfinite(size) else 0.0


def find_multipliers(log_weights: Tensor, probabilities: Tensor, shares: Tensor) -> Tensor:
    r"""Find multipliers lambda [S] that give weighted draws the target shares, by Newton's method on the convex dual.

    A ridge of one over the effective sample size, which is a prior N(0, 1) on each lambda, limits the influence of few
    draws; shares are missed by the ridge times lambda. If no weight is finite, lambda is 0.

    Args:
        log_weights: Log weights of K draws [K], up to a constant.
        probabilities: p(a_k = v | z) of each draw [K, S], over values of all attributes that are left out.
        shares: Target of their weighted mean [S].

    Example:
        >>> draws = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(5000, 1)
        >>> weights = torch.tensor([2.0, 0.0]).repeat(5000)
        >>> found = find_multipliers(weights, draws, torch.tensor([0.5, 0.5]))
        >>> torch.round((weights + draws.double() @ found).softmax(0) @ draws.double(), decimals=3)
        tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    weights, probabilities, shares = log_weights.double(), probabilities.double(), shares.double()
    values = torch.zeros_like(shares)
    size = effective_size(weights)
    if not size or not torch.isfinite(shares).all():
        return values
    strength = max(_LEAST_RIDGE, 1 / size)
    ridge = strength * torch.eye(len(shares), dtype=values.dtype, device=values.device)

    def dual_objective(values: Tensor) -> Tensor:
        """Return the dual objective of multipliers [S], which is minimal where shares are met."""
        return (weights + probabilities @ values).logsumexp(0) - values @ shares + strength / 2 * values @ values

    value = dual_objective(values)
    for _ in range(_STEPS):
        part = (weights + probabilities @ values).softmax(0)
        mean = part @ probabilities
        slope = mean - shares + strength * values
        bend = (probabilities * part[:, None]).T @ probabilities - torch.outer(mean, mean) + ridge
        step = torch.linalg.solve(bend, slope)
        decrement = float(slope @ step)
        if decrement < _CLOSE:
            break
        length = 1.0
        while (new := dual_objective(values - length * step)) > value - 0.25 * length * decrement and length > 1e-6:
            length /= 2
        values, value = values - length * step, new
    return values


class Candidates(NamedTuple):
    """Draws of q(z|y) with the log weights by which one description is balanced.

    Attributes:
        z: The draws [K, D].
        weights: Their log weights under guidance [K].
        target_weights: Log weights [K] with which attributes have their target shares.
        likelihood: log p(y|z) of the description [K].
        parameters: Output of the decoder of attributes for the draws, if known.
    """

    z: Tensor
    weights: Tensor
    target_weights: Tensor
    likelihood: Tensor
    parameters: Tensor | None = None


class Balanced(NamedTuple):
    """Multipliers that balance one description, with measures of how well they do.

    Attributes:
        multipliers: lambda [S].
        effective: Effective sample size of the held-out draws after balancing.
        miss: Largest distance of a share from its target among held-out draws, plus two standard errors and the mass
            that too few draws may miss; at most 1.
        retained_gain: Fraction of the rise of E[p(y|z)] by guidance that remains; 1 if the rise is below 0.01.
    """

    multipliers: Tensor
    effective: float
    miss: float
    retained_gain: float


def description_key(likelihood: WordLikelihood, words: Batch, expression: Expression | None) -> str:
    """Return a string that is equal for equal descriptions: their codes and their expression."""
    codes = [values.tolist() for values in likelihood.codes(words).values()]
    return repr((codes, None if expression is None else [part.tolist() for part in expression.disjoint_boxes]))


class _ShareErrors(NamedTuple):
    """Distances of attribute values' shares among weighted draws from the target shares.

    Attributes:
        all_within: Whether each distance is within two of its standard errors.
        largest: The largest distance plus two standard errors; 1 if it is not finite.
    """

    all_within: bool
    largest: float


def _compare_shares(log_weights: Tensor, before: Tensor, probabilities: Tensor) -> _ShareErrors:
    """Return how far shares under ``log_weights`` [K] are from those under the log weights ``before`` [K]."""
    part, whole = log_weights.double().softmax(0), before.double().softmax(0)
    mean, shares = part @ probabilities, whole @ probabilities
    influence = part[:, None] * (probabilities - mean) - whole[:, None] * (probabilities - shares)
    distance, error = (mean - shares).abs(), _ERRORS * influence.square().sum(0).sqrt()
    largest = float((distance + error).max())
    return (
        _ShareErrors(bool((distance <= error).all()), largest) if math.isfinite(largest) else _ShareErrors(False, 1.0)
    )


def _bound_missed_mass(log_weights: Tensor, heaviest: float) -> float:
    """Return a bound on the share of probability that K draws miss, given the largest possible log weight."""
    # K draws miss latents that hold 1/K of the density once in three times. They count if they may be heavier than
    # every draw: as likely as the likeliest of them, and lifted by lambda as much as any.
    most = math.exp(min(heaviest - float(log_weights.logsumexp(0)), 50.0))
    return most / (1 + most) if heaviest > float(log_weights.max()) + 1e-9 else 0.0


class Balance:
    """Function of z and a description that returns the term by which balanced guidance changes log weights.

    Args:
        likelihood: p(words | z) of the model.
        draw: Draws at least a number of latents of the guided density for one description, or all that there are.

    Raises:
        UsageError: The model generates no attributes.
    """

    def __init__(self, likelihood: WordLikelihood, draw: Callable[[Batch, Expression | None, int], Candidates]) -> None:
        likelihood.require_attributes("balanced guidance needs", "guide without :balanced")
        self._likelihood = likelihood
        self._draw = draw
        self._results: dict[str, Balanced] = {}

    def __call__(
        self, z: Tensor, condition: Batch, expression: Expression | None, parameters: Tensor | None = None
    ) -> Tensor:
        """Return the sum of lambda p(a_k = v | z) over all v, nats, fp64: z [..., B, D] -> [..., B], [K, D] -> [K]."""
        if z.dim() == 2:
            return self._log_weight(z, condition, expression, parameters)
        rows = []
        for b in range(condition.size):
            row_parameters = None if parameters is None else parameters[..., b, :]
            rows.append(self._log_weight(z[..., b, :], condition[slice(b, b + 1)], expression, row_parameters))
        return torch.stack(rows, -1)

    def _log_weight(
        self, z: Tensor, condition: Batch, expression: Expression | None, parameters: Tensor | None = None
    ) -> Tensor:
        positions = self._unspecified(condition, expression)
        if not positions:
            return torch.zeros(z.shape[:-1], dtype=torch.float64, device=z.device)
        key = description_key(self._likelihood, condition, expression)
        if key not in self._results:
            self._results[key] = self._balance_description(condition, expression, positions)
        return self._likelihood.value_probabilities(z, positions, parameters) @ self._results[key].multipliers

    def _balance_description(
        self, condition: Batch, expression: Expression | None, positions: tuple[int, ...]
    ) -> Balanced:
        """Compute multipliers of one description, from as many draws as its shares need."""
        # lambda comes from every other draw, and the rest measure its error. If shares are within their error without
        # it, or no farther off, lambda is 0, since it would only add noise. A lambda that lifts some latents far above
        # others may lift rare ones, so it has to hold for the maximal number of draws; if these are too few, the mass
        # that they may miss is added to the error.
        number = _FIRST
        while True:
            drawn = self._draw(condition, expression, number)
            probabilities = self._likelihood.value_probabilities(drawn.z, positions, drawn.parameters)
            fit, fresh = slice(0, None, 2), slice(1, None, 2)
            values = find_multipliers(
                drawn.weights[fit], probabilities[fit], drawn.target_weights[fit].softmax(0) @ probabilities[fit]
            )
            weights = drawn.weights + probabilities @ values
            plain = _compare_shares(
                drawn.weights, drawn.target_weights, probabilities
            )  # nothing of it is fitted, so that all draws are fresh
            share_errors = _compare_shares(weights[fresh], drawn.target_weights[fresh], probabilities[fresh])
            if plain.all_within or plain.largest <= share_errors.largest:
                values, weights, share_errors = torch.zeros_like(values), drawn.weights, plain
            effective = effective_size(weights[fresh])
            added = probabilities @ values
            enough = effective >= max(_ENOUGH, _PER_VALUE * probabilities.shape[1]) and share_errors.largest <= _FAR
            if len(drawn.z) != number or number >= _MOST or (enough and float(added.max() - added.min()) <= _LIFT):
                break
            number = 2 * number if not enough else _MOST
        if not enough and values.any():
            missed_mass = _bound_missed_mass(weights[fresh], float(drawn.weights.max() + added.max()))
            share_errors = share_errors._replace(largest=min(share_errors.largest + missed_mass, 1.0))
        means = [
            float(weights_of.softmax(0) @ drawn.likelihood.exp())
            for weights_of in (drawn.target_weights, drawn.weights, weights)
        ]
        rise = means[1] - means[0]
        retained_gain = (means[2] - means[0]) / rise if rise > 0.01 * means[1] else 1.0
        return Balanced(values, effective, share_errors.largest, retained_gain)

    @property
    def diagnostics(self) -> dict[str, float]:
        """Worst measures of balance over all descriptions so far; {} if none of them leaves attributes unspecified."""
        results = list(self._results.values())
        if not results:
            return {}
        return {
            "smallest_balanced_effective_sample_size": min(result.effective for result in results),
            "largest_share_missed": max(result.miss for result in results),
            "smallest_rise_kept": min(result.retained_gain for result in results),
        }

    @property
    def notice(self) -> str:
        """Warning about descriptions whose shares are kept only roughly; "" if there are none."""
        results = list(self._results.values())
        rough = [result for result in results if result.miss > _FAR]
        undoing = [result for result in results if result.retained_gain < 0.5]
        parts = []
        if rough:
            parts.append(
                f"for {len(rough):,} of {len(results):,} descriptions the shares of unspecified attributes are kept "
                f"only roughly, off by up to {max(result.miss for result in rough):.2f} (effective sample size at "
                f"least {min(result.effective for result in rough):,.0f})"
            )
        if undoing:
            parts.append(
                f"for {len(undoing):,} of {len(results):,} descriptions keeping these shares undoes more than half of "
                "the effect of guidance, since specified and unspecified attributes depend on each other in z"
            )
        return (
            f"balanced guidance: {'; '.join(parts)}; use a smaller weight, or guide without :balanced" if parts else ""
        )

    def _unspecified(self, condition: Batch, expression: Expression | None) -> tuple[int, ...]:
        """Return positions of the attributes that a description leaves unspecified; () if it specifies none."""
        name = self._likelihood.require_attributes().name
        specified = (
            condition.present[name][0].cpu().numpy()
            if expression is None
            else np.asarray(expression.restricted_attributes)
        )
        return tuple(np.flatnonzero(~specified).tolist()) if specified.any() else ()

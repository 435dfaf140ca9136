r"""Balanced guidance: attributes that a description leaves unspecified keep their shares.

Guidance favours latents that the model reads clearly. Among draws for "scale=big", digits whose size is hard to tell
become fewer, although the description does not say so. Among all densities in which each value v of each unspecified
attribute k has its share s_kv, the one nearest to q_w is (I-projection; "raking" in surveys)

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

__all__ = ["Balance", "Balanced", "Candidates", "effective_size", "key_of", "multipliers"]

_FIRST, _MOST = 4096, 65_536
"""Draws for balancing a description, at first and at most: half find lambda, half measure the error of shares."""
_ENOUGH, _PER_VALUE = 512.0, 8.0
"""Effective sample size of a half to reach, at least, and for each unspecified value."""
_FAR = 0.05
"""Largest distance of shares from their targets, its error added, without a warning."""
_ERRORS = 2.0
"""Standard errors within which a share equals its target, and that are added to its distance."""
_LIFT = 3.0
"""Nats by which lambda may lift some draws above others before the maximal number of draws is used."""

_STEPS, _CLOSE = 100, 1e-9
_LEAST_RIDGE = 1e-4


def effective_size(log_weights: Tensor) -> float:
    """Return the effective sample size of draws with log weights [K]; 0 if no weight is finite."""
    size = 1 / float(log_weights.double().softmax(0).square().sum())
    return size if math.isfinite(size) else 0.0


def multipliers(log_weights: Tensor, readings: Tensor, shares: Tensor) -> Tensor:
    r"""Return lambda [S] with which weighted draws have the shares, by Newton's method on the convex dual.

    A ridge of one over the effective sample size, which is a prior N(0, 1) on each lambda, limits the influence of few
    draws; shares are missed by the ridge times lambda. If no weight is finite, lambda is 0.

    Args:
        log_weights: Log weights of K draws [K], up to a constant.
        readings: p(a_k = v | z) of each draw [K, S], over values of all attributes that are left out.
        shares: What their weighed mean is to be [S].

    Example:
        >>> draws = torch.tensor([[1.0, 0.0], [0.0, 1.0]]).repeat(5000, 1)
        >>> weights = torch.tensor([2.0, 0.0]).repeat(5000)
        >>> found = multipliers(weights, draws, torch.tensor([0.5, 0.5]))
        >>> torch.round((weights + draws.double() @ found).softmax(0) @ draws.double(), decimals=3)
        tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    weights, readings, shares = log_weights.double(), readings.double(), shares.double()
    values = torch.zeros_like(shares)
    size = effective_size(weights)
    if not size or not torch.isfinite(shares).all():
        return values
    strength = max(_LEAST_RIDGE, 1 / size)
    ridge = strength * torch.eye(len(shares), dtype=values.dtype, device=values.device)

    def dual(at: Tensor) -> Tensor:
        return (weights + readings @ at).logsumexp(0) - at @ shares + strength / 2 * at @ at

    value = dual(values)
    for _ in range(_STEPS):
        part = (weights + readings @ values).softmax(0)
        mean = part @ readings
        slope = mean - shares + strength * values
        bend = (readings * part[:, None]).T @ readings - torch.outer(mean, mean) + ridge
        step = torch.linalg.solve(bend, slope)
        decrement = float(slope @ step)
        if decrement < _CLOSE:
            break
        length = 1.0
        while (new := dual(values - length * step)) > value - 0.25 * length * decrement and length > 1e-6:
            length /= 2
        values, value = values - length * step, new
    return values


class Candidates(NamedTuple):
    """Draws of q(z|y) for balancing a description.

    Attributes:
        z: [K, D].
        weights: Their log weights under guidance [K].
        before: Log weights [K] under which attributes have their target shares.
        likelihood: log p(y|z) of the description [K].
        parameters: Output of the decoder of attributes for them, if known.
    """

    z: Tensor
    weights: Tensor
    before: Tensor
    likelihood: Tensor
    parameters: Tensor | None = None


class Balanced(NamedTuple):
    """Balance of one description and its quality.

    Attributes:
        multipliers: lambda [S].
        effective: Effective sample size, balanced, of the draws that measure the error.
        miss: The largest distance of a share from its target among held-out draws, two standard errors added, and
            the mass that too few draws may miss; 1 at most.
        retained_gain: Share of the rise of E[p(y|z)] by guidance that balance keeps; 1 if the rise is below 0.01.
    """

    multipliers: Tensor
    effective: float
    miss: float
    retained_gain: float


def key_of(likelihood: WordLikelihood, words: Batch, expression: Expression | None) -> str:
    """Return a key of one description: all that q(z|y) may read of it, and its expression."""
    codes = [values.tolist() for values in likelihood.codes(words).values()]
    return repr((codes, None if expression is None else [part.tolist() for part in expression.disjoint_boxes]))


class _Missed(NamedTuple):
    """Distances of shares from their targets.

    Attributes:
        within: Whether each of them is within two of its standard errors.
        most: The largest, two standard errors added; 1 if it is not finite.
    """

    within: bool
    most: float


def _missed(log_weights: Tensor, before: Tensor, readings: Tensor) -> _Missed:
    """Return distances of weighted shares from those under the weights ``before``, with their errors."""
    part, whole = log_weights.double().softmax(0), before.double().softmax(0)
    mean, shares = part @ readings, whole @ readings
    influence = part[:, None] * (readings - mean) - whole[:, None] * (readings - shares)
    distance, error = (mean - shares).abs(), _ERRORS * influence.square().sum(0).sqrt()
    largest = float((distance + error).max())
    return _Missed(bool((distance <= error).all()), largest) if math.isfinite(largest) else _Missed(False, 1.0)


def _unseen(log_weights: Tensor, heaviest: float) -> float:
    """Return the share of probability mass that K draws may have missed."""
    # K draws miss latents that hold 1/K of the density once in three times. They count if they may be heavier than
    # every draw: as likely as the likeliest of them, and lifted by lambda as much as any.
    most = math.exp(min(heaviest - float(log_weights.logsumexp(0)), 50.0))
    return most / (1 + most) if heaviest > float(log_weights.max()) + 1e-9 else 0.0


class Balance:
    """The term that balanced guidance adds to log weights of latents, for any description.

    Args:
        likelihood: p(words | z) of the model.
        draw: Draws at least so many latents of the guided density for one description, or all that there are.

    Raises:
        UsageError: The model generates no attributes.
    """

    def __init__(self, likelihood: WordLikelihood, draw: Callable[[Batch, Expression | None, int], Candidates]) -> None:
        likelihood.attributes("balanced guidance needs", "guide without :balanced")
        self._likelihood = likelihood
        self._draw = draw
        self._known: dict[str, Balanced] = {}

    def __call__(
        self, z: Tensor, condition: Batch, expression: Expression | None, parameters: Tensor | None = None
    ) -> Tensor:
        """Return sum of lambda p(a_k = v | z) in nats and fp64: z [..., B, D] -> [..., B], or [K, D] -> [K]."""
        if z.dim() == 2:
            return self._added(z, condition, expression, parameters)
        rows = []
        for b in range(condition.size):
            read = None if parameters is None else parameters[..., b, :]
            rows.append(self._added(z[..., b, :], condition[slice(b, b + 1)], expression, read))
        return torch.stack(rows, -1)

    def _added(
        self, z: Tensor, condition: Batch, expression: Expression | None, parameters: Tensor | None = None
    ) -> Tensor:
        positions = self._unspecified(condition, expression)
        if not positions:
            return torch.zeros(z.shape[:-1], dtype=torch.float64, device=z.device)
        key = key_of(self._likelihood, condition, expression)
        if key not in self._known:
            self._known[key] = self._balanced(condition, expression, positions)
        return self._likelihood.readings(z, positions, parameters) @ self._known[key].multipliers

    def _balanced(self, condition: Batch, expression: Expression | None, positions: tuple[int, ...]) -> Balanced:
        """Balance a description with enough draws to measure its shares."""
        # lambda comes from every other draw, and the rest measure its error. If shares are within their error without
        # it, or no farther off, lambda is 0, since it would only add noise. A lambda that lifts some latents far above
        # others may lift rare ones, so it has to hold for the maximal number of draws; if these are too few, the mass
        # that they may miss is added to the error.
        number = _FIRST
        while True:
            drawn = self._draw(condition, expression, number)
            read = self._likelihood.readings(drawn.z, positions, drawn.parameters)
            fit, fresh = slice(0, None, 2), slice(1, None, 2)
            values = multipliers(drawn.weights[fit], read[fit], drawn.before[fit].softmax(0) @ read[fit])
            weights = drawn.weights + read @ values
            plain = _missed(drawn.weights, drawn.before, read)  # nothing of it is fitted, so that all draws are fresh
            missed = _missed(weights[fresh], drawn.before[fresh], read[fresh])
            if plain.within or plain.most <= missed.most:
                values, weights, missed = torch.zeros_like(values), drawn.weights, plain
            effective = effective_size(weights[fresh])
            added = read @ values
            enough = effective >= max(_ENOUGH, _PER_VALUE * read.shape[1]) and missed.most <= _FAR
            if len(drawn.z) != number or number >= _MOST or (enough and float(added.max() - added.min()) <= _LIFT):
                break
            number = 2 * number if not enough else _MOST
        if not enough and values.any():
            unseen = _unseen(weights[fresh], float(drawn.weights.max() + added.max()))
            missed = missed._replace(most=min(missed.most + unseen, 1.0))
        means = [float(by.softmax(0) @ drawn.likelihood.exp()) for by in (drawn.before, drawn.weights, weights)]
        rise = means[1] - means[0]
        retained_gain = (means[2] - means[0]) / rise if rise > 0.01 * means[1] else 1.0
        return Balanced(values, effective, missed.most, retained_gain)

    @property
    def diagnostics(self) -> dict[str, float]:
        """The worst values over all descriptions so far; empty if none leaves attributes unspecified."""
        every = list(self._known.values())
        if not every:
            return {}
        return {
            "smallest_balanced_effective_sample_size": min(one.effective for one in every),
            "largest_share_missed": max(one.miss for one in every),
            "smallest_rise_kept": min(one.retained_gain for one in every),
        }

    @property
    def notice(self) -> str:
        """Warning about descriptions that are balanced only roughly; "" if there is none."""
        every = list(self._known.values())
        rough = [one for one in every if one.miss > _FAR]
        undone = [one for one in every if one.retained_gain < 0.5]
        parts = []
        if rough:
            parts.append(
                f"for {len(rough):,} of {len(every):,} descriptions shares of what is left out are kept only roughly, "
                f"off by up to {max(one.miss for one in rough):.2f} (effective sample size "
                f"{min(one.effective for one in rough):,.0f} at least)"
            )
        if undone:
            parts.append(
                f"for {len(undone):,} of {len(every):,} descriptions keeping these shares takes back more than half of "
                "what guidance brings: what is asked for and what is left out hang together in z"
            )
        return (
            f"balanced guidance: {'; '.join(parts)}; use a smaller weight, or guide without :balanced" if parts else ""
        )

    def _unspecified(self, condition: Batch, expression: Expression | None) -> tuple[int, ...]:
        """Positions of unspecified attributes; none for an empty description."""
        name = self._likelihood.attributes().name
        specified = condition.present[name][0].cpu().numpy() if expression is None else np.asarray(expression.mentioned)
        return tuple(np.flatnonzero(~specified).tolist()) if specified.any() else ()

"""Learning-rate schedules by name: functions that return a factor of the learning rate.

The first parameter is the completed fraction of the run; parameters after the ``*`` are settings of ``training`` by
the same name. :func:`warmup_factor` and :func:`decay_factor` apply besides any schedule, and count steps.
"""

import math
from bisect import bisect_right
from itertools import accumulate

__all__ = ["SCHEDULES", "constant", "cosine", "decay_factor", "linear", "stages", "warmup_factor"]

_ROUNDING = 1e-9  # a stage begins at its step, whatever the last bit of a quotient says
_LEAST = 0.01  # where cosine and linear end


def constant(fraction: float) -> float:
    """Return the learning rate's factor 1 at every fraction of the run."""
    return 1.0


def cosine(fraction: float) -> float:
    """Return the learning rate's factor at a fraction of the run: it falls from 1 to 0.01 along half a cosine.

    Example:
        >>> [round(cosine(fraction), 6) for fraction in (0.0, 0.5, 1.0)]
        [1.0, 0.505, 0.01]
    """
    return _LEAST + (1 - _LEAST) * 0.5 * (1 + math.cos(math.pi * fraction))


def linear(fraction: float) -> float:
    """Return the learning rate's factor at a fraction of the run: it falls from 1 to 0.01 linearly.

    Example:
        >>> [round(linear(fraction), 6) for fraction in (0.0, 0.5, 1.0)]
        [1.0, 0.505, 0.01]
    """
    return 1 - (1 - _LEAST) * fraction


def stages(fraction: float, *, stages: tuple[tuple[float, float], ...]) -> float:
    """Return the learning rate's factor at a fraction of the run; ``stages`` are pairs (duration, factor).

    Args:
        fraction: Part of the run that is done, 0 to 1.
        stages: Pairs of a duration and a factor; all durations together are the run.

    Example:
        >>> [stages(fraction, stages=((1, 1.0), (3, 0.5))) for fraction in (0.0, 0.24, 0.25, 1.0)]
        [1.0, 1.0, 0.5, 0.5]
    """
    ends = list(accumulate(duration for duration, _ in stages))
    return stages[min(bisect_right(ends, fraction * ends[-1] + _ROUNDING * ends[-1]), len(ends) - 1)][1]


def warmup_factor(step: int, steps: int) -> float:
    """Return the learning rate's factor at a step of a warm-up: it rises linearly to 1 at step ``steps``.

    Example:
        >>> [warmup_factor(step, 4) for step in (0, 1, 3, 4)], warmup_factor(0, 0)
        ([0.25, 0.5, 1.0, 1.0], 1.0)
    """
    return min(1.0, (step + 1) / max(1, steps))


def decay_factor(step: int, factor: float) -> float:
    """Return the learning rate's factor after ``step`` steps that each multiply it by ``factor``.

    Example:
        >>> [decay_factor(step, 0.5) for step in (0, 1, 2)]
        [1.0, 0.5, 0.25]
    """
    return factor**step


SCHEDULES = {one.__name__: one for one in (constant, cosine, linear, stages)}
"""Choices of ``training.schedule`` by name."""

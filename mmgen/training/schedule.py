"""The learning rate over time, as a factor of its setting."""

import math
from bisect import bisect_right
from itertools import accumulate

from mmgen.training.settings import TrainingSettings

__all__ = ["factor"]

_ROUNDING = 1e-9  # a stage begins at its step, whatever the last bit of a quotient says


def factor(settings: TrainingSettings, done: float) -> float:
    """Factor of the learning rate.

    Args:
        settings: Of the run.
        done: Part of the run that is done, 0 to 1.

    Example:
        >>> staged = TrainingSettings(schedule="stages", stages=((1, 1.0), (3, 0.5)))
        >>> [factor(staged, done) for done in (0.0, 0.24, 0.25, 1.0)]
        [1.0, 1.0, 0.5, 0.5]
    """
    if settings.schedule == "cosine":
        return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done))
    if settings.schedule == "stages":
        ends = list(accumulate(duration for duration, _ in settings.stages))
        return settings.stages[min(bisect_right(ends, done * ends[-1] + _ROUNDING * ends[-1]), len(ends) - 1)][1]
    return 1.0

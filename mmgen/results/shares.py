"""Standard errors of shares, which are never 0: the one home of what all metrics in percent say of their error.

References:
    Approximate is better than "exact" for interval estimation of binomial proportions (Agresti, Coull, 1998), The
    American Statistician 52
"""

import math

__all__ = ["binomial_error", "share_error"]

_ADDED = 2
"""Right ones added, and as many wrong ones (Agresti and Coull's "plus four")."""


def binomial_error(value: float, n: int) -> float:
    """Standard error, in percent, of a share of ``n`` things that are each right or wrong by themselves.

    As if two more had been right and two more wrong. All right out of 100 is no proof that none is ever wrong: a plain
    error of 0 becomes 1.35, and value +- 1.96 errors holds the truth at 99 % too. Far from 0 and 100 %, and of many,
    hardly anything changes.

    Example:
        >>> round(binomial_error(100.0, 100), 2)
        1.35
        >>> round(binomial_error(50.0, 100), 2)
        4.9
    """
    total = n + 2 * _ADDED
    centre = (n * value / 100 + _ADDED) / total
    return 100 * math.sqrt(centre * (1 - centre) / total)


def share_error(value: float, stderr: float, n: int) -> float:
    """The same of a mean share whose error is estimated from a spread, such as that over clusters of pictures.

    Args:
        value: The share in percent.
        stderr: Its standard error as the spread has it, in percent; never made smaller.
        n: How many things were counted: pictures, data points.

    Example:
        >>> round(share_error(100.0, 0.0, 100), 2)
        1.35
        >>> share_error(50.0, 5.0, 100)
        5.0
    """
    share, total = value / 100, n + 2 * _ADDED
    centre = (n * share + _ADDED) / total
    squares = (n * stderr / 100) ** 2 + n * (share - centre) ** 2
    added = _ADDED * ((1 - centre) ** 2 + centre**2)
    return max(stderr, 100 * math.sqrt(squares + added) / total)

"""Choice of some descriptions of many: at random, or so that each pair of words is among a few of them."""

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator

_FEW = 200
"""Descriptions up to which they are chosen so that each pair of words is asked for in turn."""
_CANDIDATES = 5000


def choose_positions(count: int, limit: int | None, seed: int, purpose: str) -> NDArray[np.int64]:
    """Return increasing positions of ``limit`` random items of ``count``; all without a limit."""
    if limit is None or count <= limit:
        return np.arange(count)
    return np.sort(numpy_generator(seed, "some", purpose).permutation(count)[:limit])


def choose_covering(codes: NDArray[np.uint8], limit: int | None, seed: int, purpose: str) -> NDArray[np.int64]:
    """Return increasing positions of ``limit`` of N rows of codes [N, A]; all without a limit.

    A few are no random choice, which leaves pairs of words out: each next one is that with the most pairs that none
    before it has, the first in random order of equal ones, until each pair was there, and then so on anew.
    """
    if limit is None or len(codes) <= limit or limit > _FEW:
        return choose_positions(len(codes), limit, seed, purpose)
    order = numpy_generator(seed, "some", purpose).permutation(len(codes))[:_CANDIDATES]
    one, other = np.triu_indices(codes.shape[1])  # pairs of attributes, each with itself too: single words
    values = codes[order].astype(np.int64)
    keys = (256 * values[:, one] + values[:, other]) * len(one) + np.arange(len(one))
    of = np.unique(keys, return_inverse=True)[1].reshape(keys.shape)
    is_given, is_new = (values[:, one] != UNKNOWN) & (values[:, other] != UNKNOWN), np.ones(of.max() + 1, np.bool_)
    chosen: list[int] = []
    while len(chosen) < limit:
        gain = (is_new[of] & is_given).sum(1)
        gain[chosen] = -1
        if gain.max() <= 0 and not is_new.all():
            is_new[:] = True
            continue
        chosen.append(int(gain.argmax()))
        is_new[of[chosen[-1]]] = False
    return np.sort(order[chosen])

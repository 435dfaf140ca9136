"""The word and the pair of words that are drawn worst, with an error that allows for their having been picked.

References:
    A spatial scan statistic (Kulldorff, 1997), Communications in Statistics 26: the cell for which the likelihood ratio
    says most that it is worse than the rest
"""

from collections import Counter
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.results.standard_errors import LEAST_CORRELATION, binomial_error

if TYPE_CHECKING:
    from mmgen.modalities.attributes import AttributesDescription


RIGHT_COLUMNS = {"all right": "all_right", "worst word": "worst_word", "worst pair": "worst_pair"}
"""Columns of tables, wherever right words are counted."""


def count_right(codes: NDArray[np.uint8], right: NDArray[np.bool_], info: "AttributesDescription") -> dict[str, Any]:
    """Return the percentage of pictures with all known words right, with its error, and the worst words.

    Args:
        codes: Codes of the words of each picture [N, A], ``UNKNOWN`` where they do not count.
        right: Whether each word is right [N, A].
        info: Names and values of the attributes.
    """
    share = 100 * float((right | (codes == UNKNOWN)).all(1).mean())
    error = binomial_error(share, len(codes))
    return {"all_right": share, "all_right_stderr": error, **find_worst(codes, right[:, None], info)}


def find_worst(codes: NDArray[np.uint8], right: NDArray[np.bool_], info: "AttributesDescription") -> dict[str, Any]:
    """Find the word and the pair of words of different attributes that are drawn worst, among those that are given.

    A cell is a word, or a pair, and a picture is right if all of it is. Named is the cell with the largest likelihood
    ratio against the mean of all cells, so that a few wrong pictures among many weigh more than one of two. Of C cells
    value +- 1.96 errors is the interval at 1 - .05 / C (Bonferroni), which holds for the worst of them as for any, by
    the effective number of pictures: answers within a description are correlated by what descriptions of one cell
    differ, over all cells, and by .1 at least where descriptions give further words.

    Args:
        codes: Codes of descriptions [Q, A], ``UNKNOWN`` where not given.
        right: Whether each word of n pictures of each is right [Q, n, A].
        info: Names and values of the attributes.

    Returns:
        ``worst_word`` in percent, ``worst_word_stderr``, ``worst_word_name``, and the same of ``worst_pair``; of each
        what there is.
    """
    from scipy.special import ndtri, rel_entr

    found: dict[str, Any] = {}
    number = right.shape[1]
    for size, key in ((1, "worst_word"), (2, "worst_pair")):
        names, means, counts = list[str](), list[NDArray[np.float64]](), list[NDArray[np.int64]]()
        within = expected = 0.0
        for columns in map(list, combinations(range(codes.shape[1]), size)):
            given = (codes[:, columns] != UNKNOWN).all(1)
            if given.any():
                cells, of = np.unique(codes[given][:, columns], axis=0, return_inverse=True)
                shares = right[given][:, :, columns].all(2).mean(1)
                count = np.bincount(of.reshape(-1))
                mean = np.bincount(of.reshape(-1), shares) / count
                within += np.square(shares - mean[of.reshape(-1)]).sum()
                expected += ((count - 1) * mean * (1 - mean)).sum() / number
                names += [_name_words(info, columns, cell) for cell in cells]
                means.append(mean)
                counts.append(count)
        if names:
            share, usual = np.concatenate(means), float(np.mean(np.concatenate(means)))
            spread = min(number, within / expected) if expected else 1.0
            alike = LEAST_CORRELATION if (codes != UNKNOWN).sum(1).max() > size else 0.0
            n = np.concatenate(counts) * number / max(spread, 1 + alike * (number - 1))
            ratio = n * (rel_entr(share, usual) + rel_entr(1 - share, 1 - usual))
            worst = int(np.where(share <= usual, ratio, -1).argmax())
            found[key], found[f"{key}_name"] = 100 * float(share[worst]), names[worst]
            error = binomial_error(100 * float(share[worst]), float(n[worst]))
            found[f"{key}_stderr"] = error * float(-ndtri(0.025 / len(names))) / 1.96
    return found


def _name_words(info: "AttributesDescription", columns: list[int], cell: NDArray[np.uint8]) -> str:
    """Name words by their values alone, with the attribute where several have a value: "square night"."""
    often = Counter(chain.from_iterable(info.values))
    words = [(info.names[column], info.values[column][code]) for column, code in zip(columns, cell, strict=True)]
    return " ".join(value if often[value] == 1 else f"{name}={value}" for name, value in words)

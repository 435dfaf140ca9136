"""Random streams by number, and splits that are drawn from them.

Random streams for rendering: every image has its own, addressed by number.

A draw is a pure function of (key of the run, index of the image, slot), so nothing depends on how images are divided
among workers or chunks, and draws for a whole chunk are computed at once. The function is SplitMix64's: the stream of
an image is the SplitMix64 sequence that starts at a hash of its index, and slot ``k`` is that sequence's output ``k``.
Only integer arithmetic makes the bits, so neither numpy's version nor the machine can change them.

References:
    Fast splittable pseudorandom number generators (Steele, Lea, Flood, OOPSLA 2014), https://doi.org/10.1145/2714064.2660195
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.core.seeding import stream_key

Bits = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # odd integer nearest to 2^64 / golden ratio
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


def _hash_bits(state: Bits) -> Bits:
    """Apply SplitMix64's output function, a bijection of 64 bits, to ``state`` in place."""
    state ^= state >> np.uint64(30)
    state *= _MULTIPLIER_1
    state ^= state >> np.uint64(27)
    state *= _MULTIPLIER_2
    state ^= state >> np.uint64(31)
    return state


def stream_keys(seed: int, name: str, indices: NDArray[Any]) -> Bits:
    """Return a key [n] of a random stream for each of the images ``indices`` [n]; other names have other streams."""
    base = np.uint64(stream_key(seed, name))
    # Mixed twice: after one round, neighbouring indices would start one step apart on the same sequence.
    return _hash_bits(_hash_bits((indices.astype(np.uint64) + np.uint64(1)) * _GOLDEN + base) ^ base)


def random_bits(keys: Bits, slots: NDArray[Any] | int) -> Bits:
    """Return 64 random bits for each stream key and slot (the number of a draw in a stream); both are broadcast."""
    steps = np.atleast_1d(np.asarray(slots, dtype=np.uint64)) + np.uint64(1)
    return _hash_bits(keys + steps * _GOLDEN)


def random_uniforms(bits: Bits) -> NDArray[np.float64]:
    """Convert random bits to numbers in the open interval (0, 1), the middles of 2^52 equal cells."""
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def random_integers(bits: Bits, n: int | NDArray[np.int64]) -> NDArray[np.int64]:
    """Convert random bits to integers in 0 .. n - 1, for n < 2^31 (multiply and shift; bias below n / 2^32)."""
    return (((bits >> np.uint64(32)) * np.asarray(n, np.uint64)) >> np.uint64(32)).astype(np.int64)


def random_choices(bits: Bits, n: int) -> NDArray[np.uint8]:
    """Convert random bits to bytes in 0 .. n - 1, for n <= 256 (multiply and shift; bias below n / 2^32)."""
    return (((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)).astype(np.uint8)


def random_order(seed: int, name: str, n: int) -> NDArray[np.int64]:
    """Return the numbers 0 .. n - 1 in random order, sorted by a draw from each number's stream."""
    return np.argsort(random_bits(stream_keys(seed, name, np.arange(n)), 0), kind="stable").astype(np.int64)


def truncated_normal(
    u: NDArray[np.float64],
    mean: NDArray[Any] | float,
    sd: float,
    low: NDArray[Any] | float,
    high: NDArray[Any] | float,
) -> NDArray[np.float32]:
    r"""Convert uniform numbers ``u`` to draws of a normal distribution truncated to [low, high].

    .. math:: x = \mu + \sigma \, \Phi^{-1}(\Phi(a) + u (\Phi(b) - \Phi(a))),\quad a = (low - \mu) / \sigma

    Args:
        u: Uniform draws [n] in (0, 1), one for each result.
        mean: Mean of the normal distribution before truncation.
        sd: Its standard deviation.
        low: Lower end of the interval.
        high: Upper end, above the lower one.

    Returns:
        float32, whose rounding hides the last-digit differences between mathematical libraries.
    """
    # SciPy's functions are scalar loops; numpy's vectorised logarithm may round differently in a chunk's last rows.
    from scipy.special import ndtr, ndtri

    a, b = (np.asarray(low) - mean) / sd, (np.asarray(high) - mean) / sd
    # In the right tail Phi is too close to 1 to invert; mirror it to the left.
    right = a > 0
    a, b = np.where(right, -b, a), np.where(right, -a, b)
    lower = ndtr(a)
    z = ndtri(lower + u * (ndtr(b) - lower))
    return np.clip(mean + sd * np.where(right, -z, z), low, high).astype(np.float32)


PARTS = ("train", "val", "test")
_PART_OF_WORD = {**{part: part for part in PARTS}, "training": "train", "validation": "val", "testing": "test"}

Parts = dict[str, NDArray[np.int64]]
"""Row numbers, ascending, by part: train, val, test."""

SplitScheme = tuple[str, Parts]
"""Meaning of a split scheme, and its parts."""

_TRAIN, _VAL = 0.85, 0.05


def part_of(name: str) -> str:
    """Return the part, train, val or test, that a folder's name or a cell means; "" if none.

    Example:
        >>> [part_of(name) for name in ("Training", "VAL", "testing", "train2017", "")]
        ['train', 'val', 'test', '', '']
    """
    return _PART_OF_WORD.get(name.casefold(), "")


def split_by_group(
    groups: NDArray[Any], group_count: int, seed: int, name: str, *, train: float = _TRAIN, val: float = _VAL
) -> Parts:
    """Divide the groups 0 .. group_count - 1 at random into train, val and test, and each image with its group.

    Args:
        groups: Group of each image [N]; images of one group are never separated.
        group_count: Number of groups, with or without images.
        seed: Seed of the dataset.
        name: The scheme's name, so that schemes differ.
        train: Share of the groups.
        val: Likewise; the rest is test.
    """
    order = random_order(seed, f"split {name}", group_count)
    first, second = round(train * group_count), round((train + val) * group_count)
    part_of_group = np.empty(group_count, np.uint8)
    for code, members in enumerate((order[:first], order[first:second], order[second:])):
        part_of_group[members] = code
    part = part_of_group[groups]
    return {name: np.flatnonzero(part == code) for code, name in enumerate(("train", "val", "test"))}


def official_scheme(source: NDArray[Any], source_part: NDArray[Any], seed: int) -> dict[str, SplitScheme]:
    """Return the publisher's split as scheme "official" with its meaning; {} if images show digits of one part only.

    Args:
        source: Number of the source digit of each image [N].
        source_part: The publisher's part of each image's digit [N]: 0 training, 1 test, 2 validation.
        seed: Seed of the dataset, which chooses validation digits if the publisher has none.
    """
    if len(np.unique(source_part)) < 2:
        return {}
    if (source_part == 2).any():
        parts = {name: np.flatnonzero(source_part == code) for name, code in (("train", 0), ("val", 2), ("test", 1))}
        return {"official": ("the publisher's training, validation and test digits", parts)}
    training = np.unique(source[source_part == 0])
    chosen = training[random_order(seed, "split official", len(training))[: len(training) // 12]]
    parts = parts_with_held_out(source_part, np.isin(source, chosen))
    return {"official": ("the publisher's test digits; of the training digits one in twelve is val", parts)}


def parts_with_held_out(source_part: NDArray[Any], val: NDArray[np.bool_]) -> Parts:
    """Return the publisher's parts of images (0 training, 1 test) [N], those of the mask ``val`` [N] held out."""
    return {
        "train": np.flatnonzero((source_part == 0) & ~val),
        "val": np.flatnonzero(val),
        "test": np.flatnonzero(source_part == 1),
    }

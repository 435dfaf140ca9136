"""Random parts of examples, drawn anew in every view: pixels between stored levels, one of several captions.

A draw is a pure function of a key, the example's own number and the place, in integers alone: it does not depend on
which other examples are looked at, in which order, by how many processes or on which device. So a resumed run sees what
an uninterrupted one would have seen.

References:
    On the Quantitative Analysis of Deep Belief Networks (Salakhutdinov, Murray, 2008),
    https://doi.org/10.1145/1390156.1390266: intensities as probabilities
    Fast splittable pseudorandom number generators (Steele, Lea, Flood, OOPSLA 2014),
    https://doi.org/10.1145/2714064.2660195: SplitMix64
"""

import math

import torch
from torch import Tensor

from mmgen.core.seeding import stream_key

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # odd integer nearest to 2^64 / golden ratio; int64 wraps around as uint64 does
_MULTIPLIER_1 = 0xBF58476D1CE4E5B9 - 2**64
_MULTIPLIER_2 = 0x94D049BB133111EB - 2**64


def view_key(seed: int, modality: str, *view: str | int) -> int:
    """Return the key of the random parts of a modality in one view, such as a step of training."""
    return stream_key(seed, "pixels", modality, *view)


def _shift_right(state: Tensor, count: int) -> Tensor:
    """Shift bits right by ``count`` and fill with zeros (torch's shift of int64 repeats the sign)."""
    return (state >> count).bitwise_and_(2 ** (64 - count) - 1)


def _mix_bits(state: Tensor) -> Tensor:
    """Apply the output function of the generator SplitMix64 to each int64, in place."""
    state.bitwise_xor_(_shift_right(state, 30)).mul_(_MULTIPLIER_1)
    state.bitwise_xor_(_shift_right(state, 27)).mul_(_MULTIPLIER_2)
    return state.bitwise_xor_(_shift_right(state, 31))


def draw_pixels(stored: Tensor, numbers: Tensor, key: int) -> Tensor:
    """Draw black and white pixels from stored probabilities: 1 with probability stored / 255, as float32.

    Args:
        stored: uint8 [B, ...].
        numbers: Row numbers of the examples in their file, int64 [B]: each draws from a stream of its own.
        key: Key of this view, from :func:`view_key`.

    Example:
        >>> grey = torch.full((2, 1, 2, 2), 128, dtype=torch.uint8)
        >>> one = draw_pixels(grey, torch.tensor([3, 8]), key=1)
        >>> one[1:].equal(draw_pixels(grey[:1], torch.tensor([8]), key=1))
        True
        >>> one.equal(draw_pixels(grey, torch.tensor([3, 8]), key=2))
        False
    """
    # Uniform in 0 .. 254, so that 255 is always and 0 never white.
    threshold = _random_bits(stored, numbers, key).mul_(255).bitwise_right_shift_(32)
    return (threshold < stored.flatten(1)).to(torch.float32).reshape(stored.shape)


def dequantise(stored: Tensor, numbers: Tensor, key: int) -> Tensor:
    """Add uniform noise to stored levels v from 0 to 255: (v + u) / 256 with u in (0, 1), as float64.

    So a density of the values is bounded by the probabilities of the levels (Theis, van den Oord, Bethge, 2016,
    arXiv:1511.01844, Section 3.1).

    Args:
        stored: uint8 [B, ...].
        numbers: Row numbers of the examples in their file, int64 [B]: each draws from a stream of its own.
        key: Key of this view, from :func:`view_key`.

    Example:
        >>> values = dequantise(torch.full((2, 3), 7, dtype=torch.uint8), torch.tensor([3, 8]), key=1)
        >>> bool(((values * 256).floor() == 7).all())
        True
    """
    noise = _random_bits(stored, numbers, key).to(torch.float64).add_(0.5).mul_(2.0**-32)
    return ((stored.flatten(1) + noise) / 256.0).reshape(stored.shape)


def draw_choices(counts: Tensor, numbers: Tensor, key: int) -> Tensor:
    """Draw for each example one of ``counts`` [B] things, all equally likely: int64 [B] from 0 to ``counts`` - 1.

    Args:
        counts: Numbers of things, int64 [B], at least 1.
        numbers: Row numbers of the examples in their file, int64 [B]: each draws from a stream of its own.
        key: Key of this view, from :func:`view_key`.

    Example:
        >>> drawn = draw_choices(torch.tensor([1, 5, 5]), torch.tensor([3, 8, 9]), key=1)
        >>> int(drawn[0]), bool((drawn[1:] < 5).all())
        (0, True)
    """
    return _random_bits(counts[:, None], numbers, key)[:, 0].mul_(counts).bitwise_right_shift_(32)


def _random_bits(stored: Tensor, numbers: Tensor, key: int) -> Tensor:
    """Return 32 random bits, as int64 [B, pixels], for every pixel of ``stored`` [B, ...]."""
    pixels = math.prod(stored.shape[1:])
    examples = _mix_bits(_mix_bits((numbers.to(stored.device) + 1) * _GOLDEN + key).bitwise_xor_(torch.tensor(key)))
    # Two pixels share the 64 bits of a draw.
    steps = torch.arange(1, (pixels + 1) // 2 + 1, device=stored.device) * _GOLDEN
    bits = _mix_bits(examples[:, None] + steps)
    return torch.cat([_shift_right(bits, 32), bits.bitwise_and_(2**32 - 1)], 1)[:, :pixels]

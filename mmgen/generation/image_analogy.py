"""Image analogies: pixels change as the pixels that are most like them change between pairs of other pictures.

References:
    Image Analogies (Hertzmann, Jacobs, Oliver, Curless, Salesin, 2001), SIGGRAPH 2001
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter
from scipy.spatial import KDTree

_BLURS = ((3, 0.5), (7, 1.0), (15, 0.5))
"""Surroundings of a pixel: sides of squares, for pictures of 64 pixels, and weights of their mean colours."""
_REACH = 0.4
"""Distance of a match at which the change fades: what is like nothing in the other pictures stays as it is."""
_POOLED = 32
"""Largest side at which whole pictures are compared."""

Picture = NDArray[np.float32]
"""Pixels [C, H, W] from 0 to 1."""


@dataclass(frozen=True)
class Way:
    """How pixels change with a word.

    Attributes:
        place: Weight of a pixel's place among its features: small for a word that recolours, large for one that
            redraws.
        matches: Number of pixels that are averaged.
        votes: Distance, in pixels, up to which a match has a say in its neighbours' change.
        sources: Number of sources whose results have their median taken; several suit combinations of one picture.
    """

    place: float
    matches: int
    votes: int
    sources: int


WAYS = (Way(0.2, 3, 0, 5), Way(3.0, 1, 2, 5), Way(0.2, 3, 0, 1), Way(3.0, 1, 2, 1))


def change_alike(picture: Picture, pairs: Sequence[tuple[NDArray[np.uint8], NDArray[np.uint8]]], way: Way) -> Picture:
    """Change a picture as others change: A to its counterpart as each C to its B.

    Args:
        picture: A, [C, H, W].
        pairs: Pictures (C, B), pixels uint8 [C, H, W] each.
        way: How pixels are compared and averaged.
    """
    channels, height, width = picture.shape
    before = [np.asarray(one / np.float32(255), np.float32) for one, _ in pairs]
    after = [np.asarray(other / np.float32(255), np.float32) for _, other in pairs]
    known = np.concatenate([_features(one, way.place) for one in before])
    tree = KDTree(known, balanced_tree=False, compact_nodes=False)
    distances, places = tree.query(_features(picture, way.place), way.matches, eps=0.5)
    distances, places = (each.reshape(height * width, way.matches) for each in (distances, places))
    nearest = distances[:, :1]
    weights = np.exp(-(distances - nearest) / (0.02 + nearest))
    weights *= np.exp(-((distances / _REACH) ** 2)) / weights.sum(1, keepdims=True)
    change = (np.stack(after) - np.stack(before)).transpose(0, 2, 3, 1)
    where, pixel = np.divmod(places, height * width)
    rows, columns = np.divmod(pixel, width)
    reach = way.votes
    total = np.zeros((height + 2 * reach, width + 2 * reach, channels), np.float32)
    count = np.zeros((height + 2 * reach, width + 2 * reach, 1), np.float32)
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            near = change[where, (rows + down).clip(0, height - 1), (columns + right).clip(0, width - 1)]
            here = slice(reach + down, reach + down + height), slice(reach + right, reach + right + width)
            total[here] += (weights[..., None] * near).sum(1).reshape(height, width, channels)
            count[here] += 1
    inside = slice(reach, reach + height), slice(reach, reach + width)
    moved = (total[inside] / count[inside]).transpose(2, 0, 1)
    return np.asarray((picture + moved).clip(0, 1), np.float32)


def _features(picture: Picture, place: float) -> NDArray[np.float32]:
    """Return what pixels are compared by, [H * W, F]: colour, mean colours around, and place."""
    height, width = picture.shape[1:]
    sides = [(max(1, round(side * height / 64)) | 1, weight) for side, weight in _BLURS]
    around = [weight * uniform_filter(picture, (0, side, side), mode="nearest") for side, weight in sides]
    grid = place * np.mgrid[0:height, 0:width].astype(np.float32) / max(height, width)
    return np.concatenate([picture, *around, grid]).reshape(-1, height * width).T.astype(np.float32)


def pool(picture: Picture) -> NDArray[np.float32]:
    """Return mean colours of squares, flattened, so that no side is above 32."""
    square = -(-max(picture.shape[1:]) // _POOLED)
    channels, height, width = picture.shape
    cut = picture[:, : height // square * square, : width // square * square]
    return cut.reshape(channels, height // square, square, width // square, square).mean((2, 4)).reshape(-1)

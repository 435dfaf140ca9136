"""A palette: a training picture that differs in one word, its colours mapped as between others of these two words.

It is a rival of models: no network, and told which word changes colours alone. Words that change the drawing are more
than it can do.
"""

import numpy as np
from numpy.typing import NDArray

from mmgen.core.seeding import numpy_generator

_LEVELS = 32
"""Levels of a channel, to which colours are rounded before they are counted."""
_SOURCES, _PAIRS, _HIDDEN = 5, 64, 24
"""Training pictures to recolour, pairs to learn a palette from, and pictures hidden to choose the word, at most."""
Bytes = NDArray[np.uint8]


def recolour(pictures: Bytes, codes: Bytes, wanted: Bytes, attribute: int) -> Bytes | None:
    """Return the picture of the words ``wanted`` of which most colours are known, [C, H, W]; None without a source.

    Args:
        pictures: Training pictures [N, C, H, W].
        codes: Their words [N, A].
        wanted: Words of the picture [A].
        attribute: The word in which a source may differ.
    """
    others = np.arange(codes.shape[1]) != attribute
    channels, size = pictures.shape[1], _LEVELS ** pictures.shape[1]
    rows_of = {tuple(code): row for row, code in enumerate(codes.tolist())}
    best: tuple[int, Bytes] | None = None

    def read(row: int) -> NDArray[np.int64]:
        levels = pictures[row].reshape(channels, -1).astype(np.int64) * _LEVELS // 256
        return _LEVELS ** np.arange(channels) @ levels

    twins = [rows_of.get(tuple(code)) for code in np.where(others, codes, wanted).tolist()]
    for source in np.flatnonzero((codes[:, others] == wanted[others]).all(1))[:_SOURCES]:
        number, total = np.zeros(size), np.zeros((channels, size))
        alike = np.flatnonzero(codes[:, attribute] == codes[source, attribute]).tolist()
        pairs = [(row, other) for row in alike if (other := twins[row]) is not None][:_PAIRS]
        for row, other in pairs:
            number += np.bincount(colours := read(row), minlength=size)
            for channel in range(channels):
                total[channel] += np.bincount(colours, pictures[other, channel].ravel(), size)
        unknown = number[colours := read(int(source))] == 0
        own = pictures[source].reshape(channels, -1)
        mapped = np.where(unknown, own, total[:, colours] / np.maximum(number[colours], 1))
        if pairs and (best is None or unknown.sum() < best[0]):
            best = int(unknown.sum()), mapped.round().astype(np.uint8).reshape(pictures[source].shape)
    return None if best is None else best[1]


def choose_attribute(pictures: Bytes, codes: Bytes, seed: int) -> int:
    """Return the word whose change a palette draws best, by hidden training pictures; the first if it draws none."""
    hidden = numpy_generator(seed, "palette").permutation(len(codes))[:_HIDDEN]
    errors: dict[int, list[float]] = {}
    for row, kept in ((row, (codes != codes[row]).any(1)) for row in hidden):
        for attribute in range(codes.shape[1]):
            if (drawn := recolour(pictures[kept], codes[kept], codes[row], attribute)) is not None:
                errors.setdefault(attribute, []).append(float(np.square(drawn - pictures[row].astype(float)).mean()))
    return min(errors, key=lambda attribute: float(np.mean(errors[attribute])), default=0)

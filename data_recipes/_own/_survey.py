"""A look at every picture before anything is written: sizes, kinds, what cannot be read."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import FittedPicture, Fitting, fit_picture
from mmgen.core.progress import Progress
from mmgen.data_recipes._base import Workers, in_order
from mmgen.data_recipes._own._source import File, Source

__all__ = ["Seen", "fitted_rows", "look_at"]

_TRAITS = {
    "turned": "turned upright as their Exif says",
    "see-through": "see-through in parts, over the background",
    "16 bits": "of 16 bits, brought to 8",
    "CMYK": "in CMYK, made RGB",
    "moving": "moving, of which the first picture is taken",
}


@dataclass
class Seen:
    """What was seen of N examples with I pictures each.

    Attributes:
        digests: sha256 of the files, uint8 [N, I, 32].
        sizes: Width and height, int32 [N, I, 2]; 0 where unreadable.
        traits: How many pictures have each trait.
        unreadable: Why an example's pictures cannot be read, by row.
    """

    digests: NDArray[np.uint8]
    sizes: NDArray[np.int32]
    traits: Counter[str]
    unreadable: dict[int, str]

    def said(self, fitting: Fitting) -> list[str]:
        """What there is to say about them."""
        known = self.sizes[self.sizes[..., 0] > 0]
        if not len(known):
            return []
        different, counts = np.unique(known, axis=0, return_counts=True)
        width, height = different[counts.argmax()]
        small, large = known.min(0), known.max(0)
        if len(different) == 1:
            sizes = f"all of {width} x {height} pixels"
        else:
            sizes = (
                f"{small[0]} to {large[0]} pixels wide and {small[1]} to {large[1]} high, "
                f"{counts.max():,} of {width} x {height}"
            )
        shape = "x".join(map(str, fitting.shape))
        how = "" if len(different) == 1 and (width, height) == (fitting.width, fitting.height) else f" ({fitting.fit})"
        lines = [f"pictures: {len(known):,}, {sizes}; they become {shape}{how}"]
        lines += [f"  {self.traits[name]:,} are {words}" for name, words in _TRAITS.items() if self.traits[name]]
        if self.traits["grey"] == len(known) and not fitting.grey:
            lines.append("  all of them are grey; --grey keeps one channel instead of three")
        return lines


Looked = list[list[tuple[bytes, tuple[int, int], tuple[str, ...], str]]]
"""For each picture of each row: sha256, size, traits, why it cannot be read."""


def _fitted(file: File, fitting: Fitting) -> FittedPicture:
    if isinstance(file, str):
        raise CannotReadError(file)
    return fit_picture(file, fitting)


def _digest(file: File) -> bytes:
    return hashlib.sha256(file.encode() if isinstance(file, str) else file).digest()


def look(rows: Sequence[Sequence[File]], fitting: Fitting) -> Looked:
    """What there is to see of some rows' pictures; runs in a worker."""
    found: Looked = []
    for files in rows:
        seen = []
        for file in files:
            try:
                picture = _fitted(file, fitting)
                seen.append((_digest(file), picture.size, picture.traits, ""))
            except CannotReadError as error:
                seen.append((_digest(file), (0, 0), (), str(error)))
        found.append(seen)
    return found


def look_at(source: Source, fitting: Fitting, workers: Workers, chunk: int, seen: Seen) -> Iterator[Progress]:
    """Look at all pictures of a source; ``seen`` is filled in."""
    done = 0
    calls = ((files, fitting) for _, files in source.chunks(range(len(source)), chunk))
    for looked in in_order(look, calls, workers):
        for row, pictures in enumerate(looked, done):
            for place, (digest, size, traits, why) in enumerate(pictures):
                seen.digests[row, place] = np.frombuffer(digest, np.uint8)
                seen.sizes[row, place] = size
                seen.traits.update(traits)
                if why:
                    seen.unreadable.setdefault(row, why)
        done += len(looked)
        yield Progress(done)


def fitted_rows(rows: Sequence[Sequence[File]], fitting: Fitting) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Pixels uint8 [I, n, C, H, W] of n rows' pictures, and the files' sha256 [n, I, 32]; runs in a worker.

    Raises:
        CannotReadError: One cannot be read any more.
    """
    pictures = [[_fitted(file, fitting).pixels for file in files] for files in rows]
    digests = [[np.frombuffer(_digest(file), np.uint8) for file in files] for files in rows]
    return np.stack([np.stack(each) for each in zip(*pictures, strict=True)]), np.array(digests)

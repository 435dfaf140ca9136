"""Inspection of every picture before anything is written: hashes, sizes, traits, errors."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import FittedPicture, Fitting, fit_picture
from mmgen.core.progress import Progress
from mmgen.data_recipes._base import Workers, map_in_order
from mmgen.data_recipes._own._source import File, Source

__all__ = ["Inspection", "fit_rows", "inspect_pictures"]

_TRAITS = {
    "turned": "turned upright as their Exif says",
    "see-through": "see-through in parts, over the background",
    "16 bits": "of 16 bits, brought to 8",
    "CMYK": "in CMYK, made RGB",
    "moving": "moving, of which the first picture is taken",
}


@dataclass
class Inspection:
    """Hashes, sizes and faults of the files of N examples with I pictures each.

    Attributes:
        digests: sha256 of the files, uint8 [N, I, 32].
        sizes: Width and height, int32 [N, I, 2]; 0 where unreadable.
        traits: Number of pictures with each trait.
        unreadable: Reason why an example's pictures cannot be read, by row.
    """

    digests: NDArray[np.uint8]
    sizes: NDArray[np.int32]
    traits: Counter[str] = field(default_factory=Counter)
    unreadable: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of_unread_files(cls, number: int, images: int) -> Self:
        """Return a placeholder for files that are not read yet, with a different hash for each example."""
        digests = np.zeros((number, images, 32), np.uint8)
        digests[:, 0, :8] = np.arange(number, dtype=np.uint64).view(np.uint8).reshape(number, 8)
        return cls(digests, np.zeros((number, images, 2), np.int32))

    def notes(self, fitting: Fitting) -> list[str]:
        """Return sentences on the sizes and traits of the pictures."""
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


Facts = list[list[tuple[bytes, tuple[int, int], tuple[str, ...], str]]]
"""sha256, size, traits and error of each picture of each row."""


def _fit_file(file: File, fitting: Fitting) -> FittedPicture:
    if isinstance(file, str):
        raise CannotReadError(file)
    return fit_picture(file, fitting)


def _sha256(file: File) -> bytes:
    return hashlib.sha256(file.encode() if isinstance(file, str) else file).digest()


def inspect_rows(rows: Sequence[Sequence[File]], fitting: Fitting) -> Facts:
    """Return hash, size, traits and fault of each picture of n examples; runs in a worker."""
    facts: Facts = []
    for files in rows:
        row = []
        for file in files:
            try:
                picture = _fit_file(file, fitting)
                row.append((_sha256(file), picture.size, picture.traits, ""))
            except CannotReadError as error:
                row.append((_sha256(file), (0, 0), (), str(error)))
        facts.append(row)
    return facts


def inspect_pictures(
    source: Source, fitting: Fitting, workers: Workers, chunk: int, pictures: Inspection
) -> Iterator[Progress]:
    """Inspect all pictures of a source and fill in ``pictures``; yields progress."""
    done = 0
    calls = ((files, fitting) for _, files in source.file_chunks(range(len(source)), chunk))
    for facts in map_in_order(inspect_rows, calls, workers):
        for row, images in enumerate(facts, done):
            for place, (digest, size, traits, why) in enumerate(images):
                pictures.digests[row, place] = np.frombuffer(digest, np.uint8)
                pictures.sizes[row, place] = size
                pictures.traits.update(traits)
                if why:
                    pictures.unreadable.setdefault(row, why)
        done += len(facts)
        yield Progress(done)


def fit_rows(rows: Sequence[Sequence[File]], fitting: Fitting) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Crop and resize I pictures of n examples, uint8 [I, n, C, H, W]; return them with files' SHA-256 [n, I, 32]."""
    pictures = [[_fit_file(file, fitting).pixels for file in files] for files in rows]
    digests = [[np.frombuffer(_sha256(file), np.uint8) for file in files] for files in rows]
    return np.stack([np.stack(each) for each in zip(*pictures, strict=True)]), np.array(digests)

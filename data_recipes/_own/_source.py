"""A source of pictures (names, columns, parts, the bytes of files), and one look at each of its pictures."""

import hashlib
import json
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.artifacts.elements import NAME
from mmgen.core.errors import DataError, UsageError
from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import MOST_BYTES as MOST_PICTURE_BYTES, FittedPicture, Fitting, fit_picture, picture_side
from mmgen.core.progress import Progress
from mmgen.data_recipes._base import Workers, map_in_order
from mmgen.data_recipes._own._files import Files
from mmgen.data_recipes._own._tables import Cell, Columns, Several

_AT_ONCE_BYTES = 2**25
"""Bytes of files that one worker gets at a time, besides the last file."""

_CHUNK = 128  # examples that a worker gets at a time
_CHUNK_PIXELS = 2**25  # numbers of their pictures at most

_LARGE = 48  # pixels from which pictures justify the larger size
_LEAST_SHARE, _LEAST_LEVELS = 0.1, 64  # of pictures and of a picture's area; between darkest and brightest
_TRAITS = {
    "turned": "turned upright as their Exif says",
    "see-through": "see-through in parts, over the background",
    "16 bits": "of 16 bits, brought to 8",
    "CMYK": "in CMYK, made RGB",
    "moving": "moving, of which the first picture is taken",
}

File = bytes | str
"""A file's bytes, or a string with the reason why they cannot be read."""


@dataclass
class Source(ABC):
    """Base of sources of the user's pictures: N examples with one or several pictures each.

    Attributes:
        where: Description for errors.
        names: Names of the examples [N].
        pictures: Place of each example's picture [N], by modality.
        columns: Cells by column; the first of several texts.
        several: All texts of examples with several, by column and example.
        parts: The user's part of each example [N]; None without parts.
        left_out: Sentences on what is not used.
        notes: Further lines for people.
        classes: Columns that cannot hold parts, whatever their cells.
        or_else: Clause for errors with another remedy if its parts differ from those of a column.
    """

    where: str
    names: list[str] = field(default_factory=list)
    pictures: dict[str, list[Any]] = field(default_factory=dict)
    columns: Columns = field(default_factory=dict)
    several: Several = field(default_factory=dict)
    parts: list[str] | None = None
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    or_else: str = ""

    def median_side(self) -> int:
        """Return the median of the shorter sides of all pictures that can be read, in pixels; 0 without any."""
        sides = []
        for place in (place for places in self.pictures.values() for place in places):
            with suppress(CannotReadError):
                sides.append(picture_side(self.read_picture(place)))
        return int(np.median(sides)) if sides else 0

    @abstractmethod
    def read_picture(self, place: Any) -> bytes:
        """Return the bytes of a picture's file."""

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Close open files."""

    def __len__(self) -> int:
        return len(self.names)

    def file_chunks(self, limit: int) -> Iterator[list[list[File]]]:
        """Yield the files of each example, in groups of at most ``limit`` examples."""
        chunk: list[list[File]] = []
        size = 0
        for places in zip(*self.pictures.values(), strict=True):
            chunk.append([self._read_file(place) for place in places])
            size += sum(map(len, chunk[-1]))
            if len(chunk) >= limit or size >= _AT_ONCE_BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _read_file(self, place: Any) -> File:
        try:
            return self.read_picture(place)
        except CannotReadError as error:
            return str(error)

    def sha256(self, rows: NDArray[np.int64], digests: NDArray[np.uint8]) -> str:
        """Return the SHA-256 of the content in ``rows``: names, files' ``digests``, cells, parts."""
        whole = hashlib.sha256(json.dumps([list(self.pictures), list(self.columns)]).encode())
        for row in rows.tolist():
            cells: list[Cell] = [column[row] for column in self.columns.values()]
            part = self.parts[row] if self.parts is not None else ""
            texts = {name: sorted(each[row]) for name, each in self.several.items() if row in each}
            whole.update(json.dumps([self.names[row], part, cells, *([texts] if texts else [])]).encode())
            whole.update(digests[row].tobytes())
        return whole.hexdigest()


class FileSource(Source):
    """Base of sources whose pictures are files of a folder or a zip.

    Args:
        path: The folder or zip.
        or_else: As in :class:`Source`.
    """

    def __init__(self, path: Path, or_else: str = "") -> None:
        super().__init__(str(path), or_else=or_else)
        self._files = Files(path)

    def close(self) -> None:
        self._files.close()

    def read_picture(self, place: str) -> bytes:
        return self._files.read(place, MOST_PICTURE_BYTES)


def usual_size(side: int) -> int:
    """Return the height and width to make pictures of, by the median of their shorter sides."""
    return 64 if side >= _LARGE else 32


def modality_names(columns: Sequence[str], suffix: str = "") -> dict[str, str]:
    """Return the image modality of each column, without ``suffix``; the first is "image" if none is called so.

    Example:
        >>> modality_names(["file_name", "mask_file_name"], "_file_name")
        {'file_name': 'image', 'mask_file_name': 'mask'}
    """
    modalities = {name: name.removesuffix(suffix).replace(" ", "_") if suffix else name for name in columns}
    if "image" not in modalities.values() and columns:
        modalities[columns[0]] = "image"
    for column, name in modalities.items():
        others = [other for one, other in modalities.items() if one != column]
        if not NAME.match(name) or name in ("attributes", "text", *others):
            raise UsageError(
                f"the column '{column}' would be the image modality '{name}', expected letters, digits, '_' and '-', "
                "and no name that is taken, as attributes and text are; rename the column (in a WebDataset: names of "
                "files without a point before the ending)"
            )
    return modalities


@dataclass
class Inspection:
    """The files of N examples with I pictures each: fitted pixels, hashes, sizes and faults.

    Attributes:
        pixels: Fitted pictures, uint8 [N, I, C, H, W], in a temporary file; zeros where unreadable.
        digests: sha256 of the files, uint8 [N, I, 32].
        sizes: Width and height, int32 [N, I, 2]; 0 where unreadable.
        traits: Number of pictures with each trait.
        unreadable: Reason why an example's pictures cannot be read, by row.
        plain: Number of examples whose first picture is of one colour.
        levels: Darkest and brightest number in all pictures.
    """

    pixels: NDArray[np.uint8]
    digests: NDArray[np.uint8]
    sizes: NDArray[np.int32]
    traits: Counter[str] = field(default_factory=Counter)
    unreadable: dict[int, str] = field(default_factory=dict)
    plain: int = 0
    levels: tuple[int, int] = (255, 0)

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
        dark, bright = self.levels
        kept = known.min(1) / known.max(1) if fitting.fit == "crop" else np.ones(1)
        area = f"; {100 * kept.mean():.0f} % of their area is kept, at least {100 * kept.min():.2g} %"
        levels = f"{self.plain:,} of one colour; the darkest number of all is {dark}, the brightest {bright}"
        lines.append(f"  {levels}{area if kept.min() < 1 else ''}")
        if self.plain >= _LEAST_SHARE * len(self.sizes):
            lines.append(
                f"warning: {self.plain:,} of {len(self.sizes):,} pictures are of one colour, with nothing to learn; "
                "of see-through ones another --background may show more"
            )
        elif bright - dark < _LEAST_LEVELS:
            lines.append(f"warning: numbers of all pictures are {dark} to {bright}, of 0 to 255; stretch them before")
        if kept.min() < _LEAST_SHARE:
            few = (kept < _LEAST_SHARE).sum()
            lines.append(f"warning: pictures of which the crop keeps less than a tenth: {few:,}; --fit pad keeps all")
        return lines


def inspect_pictures(source: Source, fitting: Fitting, workers: Workers) -> Generator[Progress, None, Inspection]:
    """Decode and fit every picture of a source, once; yields progress."""
    number, images = len(source), len(source.pictures)
    shape = (number, images, *fitting.shape)
    found = Inspection(
        _temporary_array(shape), np.zeros((number, images, 32), np.uint8), np.zeros((number, images, 2), np.int32)
    )
    chunk = max(1, min(_CHUNK, _CHUNK_PIXELS // int(np.prod(shape[1:]))))
    done = 0
    for fitted in map_in_order(_fit_files, ((files, fitting) for files in source.file_chunks(chunk)), workers):
        for row, pictures in enumerate(fitted, done):
            for place, (digest, picture) in enumerate(pictures):
                found.digests[row, place] = np.frombuffer(digest, np.uint8)
                if isinstance(picture, str):
                    found.unreadable.setdefault(row, picture)
                    continue
                found.pixels[row, place] = picture.pixels
                found.sizes[row, place] = picture.size
                found.traits.update(picture.traits)
                found.plain += place == 0 and bool((picture.pixels == picture.pixels[:, :1, :1]).all())
                dark, bright = found.levels
                found.levels = min(dark, int(picture.pixels.min())), max(bright, int(picture.pixels.max()))
        done += len(fitted)
        yield Progress(done)
    return found


def _fit_files(rows: Sequence[Sequence[File]], fitting: Fitting) -> list[list[tuple[bytes, FittedPicture | str]]]:
    """Return each file's sha256, and its picture or the reason why there is none; runs in a worker."""
    return [[_fit_file(file, fitting) for file in files] for files in rows]


def _fit_file(file: File, fitting: Fitting) -> tuple[bytes, FittedPicture | str]:
    if isinstance(file, str):
        return hashlib.sha256(file.encode()).digest(), file
    try:
        return hashlib.sha256(file).digest(), fit_picture(file, fitting)
    except CannotReadError as error:
        return hashlib.sha256(file).digest(), str(error)


def _temporary_array(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return zeros in a temporary file, which vanishes with the array."""
    size, folder = int(np.prod(shape, dtype=np.int64)), tempfile.gettempdir()
    if size > shutil.disk_usage(folder).free:
        raise DataError(
            f"the fitted pictures take {size:,} bytes for a while, more than are free in {folder}; name another folder "
            "with the variable TMPDIR, or choose a smaller --size"
        )
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, np.uint8, shape=shape)

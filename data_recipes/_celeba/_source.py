"""CelebA's lists (attributes, partition, landmarks) and images, in the user's folder or zip."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError
from mmgen.core.parsing import printable
from mmgen.core.plain_text import NotTextError, decode_text
from mmgen.data_recipes._own._files import Files
from mmgen.data_recipes._published import SourceComparison, different_source, unverified_source
from mmgen.data_recipes._separated import read_separated

LandmarkUse = Literal["ignored", "optional", "needed"]
"""Whether the list of landmarks is read."""

CELEBA_SIZE = 202_599
"""Images of the whole of CelebA."""

PARTS = {0: ("train", 162_770), 1: ("val", 19_867), 2: ("test", 19_962)}
"""CelebA's own parts by the code in the list: name, and size where all images are there."""

_SPELLED = (
    "5_o_Clock_Shadow Arched_Eyebrows Attractive Bags_Under_Eyes Bald Bangs Big_Lips Big_Nose Black_Hair Blond_Hair "
    "Blurry Brown_Hair Bushy_Eyebrows Chubby Double_Chin Eyeglasses Goatee Gray_Hair Heavy_Makeup High_Cheekbones Male "
    "Mouth_Slightly_Open Mustache Narrow_Eyes No_Beard Oval_Face Pale_Skin Pointy_Nose Receding_Hairline Rosy_Cheeks "
    "Sideburns Smiling Straight_Hair Wavy_Hair Wearing_Earrings Wearing_Hat Wearing_Lipstick Wearing_Necklace "
    "Wearing_Necktie Young"
)
ALL_ATTRIBUTES = tuple(_SPELLED.split())
"""The 40 attributes, in the order of the list."""

PUBLISHED = {
    "list_attr_celeba": "75e246fa4810816ffd6ee81facbd244c",
    "list_eval_partition": "d32c9cbf5e040fd4025c592c306e6668",
    "list_landmarks_align_celeba": "cc24ecafdb5b50baae59b03474781f8c",
}
"""MD5 of the lists as published."""

_DISTINCTIVE = (
    "Bald Bangs Black_Hair Blond_Hair Brown_Hair Bushy_Eyebrows Eyeglasses Gray_Hair Heavy_Makeup Male "
    "Mouth_Slightly_Open Mustache Pale_Skin Receding_Hairline Smiling Straight_Hair Wavy_Hair Wearing_Hat"
)
ATTRIBUTES = tuple(_DISTINCTIVE.split())
"""The 18 that are visually distinctive (VE App. A.7; Perarnau et al., 2016), in alphabetical order."""

_POINTS = [f"{point}_{axis}" for point in ("lefteye", "righteye", "nose", "leftmouth", "rightmouth") for axis in "xy"]

_COORDINATES = range(-218, 2 * 218 + 1)
"""Allowed coordinates of landmarks: inside the picture of 178 x 218, or up to its height outside."""

FindText = Callable[[str], tuple[str, bytes] | None]
"""Function from a list's name without ending to a description of its place and its bytes; None without such a list."""


@dataclass(frozen=True)
class Lists:
    """Attributes, parts and landmarks of N images from CelebA's lists, in the order of the attribute list.

    Attributes:
        names: File names.
        attributes: uint8 [N, 40], 0 or 1.
        part: uint8 [N], codes of :data:`PARTS`.
        points: float32 [N, 5, 2], x and y in pixels of eyes, nose and mouth corners, the picture's left ones first;
            None where there is no list of landmarks.
        sha256: Hash of all that.
    """

    names: tuple[str, ...]
    attributes: NDArray[np.uint8]
    part: NDArray[np.uint8]
    points: NDArray[np.float32] | None
    sha256: str

    def __len__(self) -> int:
        return len(self.names)

    def select(self, rows: NDArray[np.int64]) -> "Lists":
        """Return the lists restricted to the images ``rows`` [n], with the same ``sha256``."""
        points = None if self.points is None else self.points[rows]
        names = tuple(self.names[row] for row in rows)
        return replace(self, names=names, attributes=self.attributes[rows], part=self.part[rows], points=points)


@dataclass(frozen=True)
class _Table:
    """One list: the names of images, and a row of whole numbers for each."""

    where: str
    names: list[str]
    values: NDArray[np.int64]

    def values_in_order_of(self, other: "_Table") -> NDArray[np.int64]:
        """Return the rows of numbers in the order of the images in another list."""
        if self.names == other.names:
            return self.values
        position = {name: row for row, name in enumerate(self.names)}
        missing = [name for name in other.names if name not in position]
        if missing or len(self.names) != len(other.names):
            extra = sorted(set(self.names) - set(other.names))
            raise DataError(
                f"{self.where} and {other.where} do not name the same images: {len(missing)} only in the latter, "
                f"{len(extra)} only in the former, such as {(missing + extra)[0]}; get both from the same place"
            )
        return self.values[[position[name] for name in other.names]]


def _read_lines(where: str, data: bytes, columns: Sequence[str], has_count: bool) -> Iterator[tuple[int, list[str]]]:
    """Check the header of a list, then yield the line number and the cells of each image."""
    if where.endswith(".csv"):
        table = read_separated(data, where)
        named_places = [place for place, name in enumerate(table.names) if name]  # programs number rows without a name
        _check_header([table.names[place] for place in named_places][1:], columns, where)
        yield from ((number, [row[place] for place in named_places]) for number, row in table.rows)
        return
    try:
        lines = decode_text(data).split("\n")
    except NotTextError as error:
        raise DataError(f"cannot read {where}: {error}; download it again") from None
    if has_count:
        count = lines[0].strip() if lines else ""
        rows = sum(1 for line in lines[2:] if line.strip())
        if not count.isdecimal() or int(count) != rows:
            raise DataError(
                f"{where} says '{count[:20]}' in its first line but holds {rows} rows, expected the number of its "
                "rows: it is incomplete or another file; download it again"
            )
        header, first = (lines[1].split() if len(lines) > 1 else []), 2
    else:
        header, first = list(columns), 0
    _check_header(header, columns, where)
    for number, line in enumerate(lines[first:], first + 1):
        if line.strip():
            yield number, line.split()


def _check_header(header: list[str], columns: Sequence[str], where: str) -> None:
    if header != list(columns):
        wrong = next(
            (f"'{g}' for '{c}'" for g, c in zip(header, columns, strict=False) if g != c), f"{len(header)} of them"
        )
        raise DataError(
            f"{where} has other columns than expected ({wrong}): expected {len(columns)}, {columns[0]} to "
            f"{columns[-1]}; use the list as CelebA publishes it"
        )


def _parse_table(where: str, data: bytes, columns: Sequence[str], allowed: set[int] | range, has_count: bool) -> _Table:
    """Parse one list, whose names must be unique and whose cells must be ``allowed`` whole numbers."""
    expected = f"among {', '.join(map(str, sorted(allowed)))}"
    if isinstance(allowed, range):
        expected, allowed = f"from {allowed[0]} to {allowed[-1]}", set(allowed)
    names: list[str] = []
    rows: list[list[int]] = []
    for number, cells in _read_lines(where, data, columns, has_count):
        try:
            row = [int(cell) for cell in cells[1:]]
        except ValueError:
            row = []
        if len(row) != len(columns) or not allowed.issuperset(row):
            raise DataError(
                f"{where} line {number}: expected the name of an image and {len(columns)} whole numbers {expected}, "
                f"got '{' '.join(cells)[:60]}'"
            )
        names.append(cells[0].strip())
        rows.append(row)
    if not names:
        raise DataError(f"{where} names no image; download it again")
    if len(set(names)) < len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise DataError(f"{where} names {repeated} twice, expected every image once; download it again")
    return _Table(where, names, np.array(rows, np.int64))


def read_lists(find_text: FindText, where: str, landmark_use: LandmarkUse) -> Lists:
    """Read CelebA's lists and check that they agree.

    Args:
        find_text: Function that finds a list.
        where: Description of the source, for errors.
        landmark_use: Whether the list of landmarks is read.

    Raises:
        DataError: A list is missing, malformed, or of other images.
    """

    def read_table(
        name: str, columns: Sequence[str], allowed: set[int] | range, has_count: bool = True
    ) -> _Table | None:
        located = find_text(name)
        return None if located is None else _parse_table(located[0], located[1], columns, allowed, has_count)

    def require_list(name: str, one_list: _Table | None) -> _Table:
        if one_list is None:
            raise DataError(
                f"there is no {name}.txt (nor {name}.csv) in {where}: put it there, it comes with CelebA's images"
            )
        return one_list

    attributes = require_list("list_attr_celeba", read_table("list_attr_celeba", ALL_ATTRIBUTES, {-1, 1}))
    partition = require_list(
        "list_eval_partition", read_table("list_eval_partition", ["partition"], {0, 1, 2}, has_count=False)
    )
    points = None if landmark_use == "ignored" else read_table("list_landmarks_align_celeba", _POINTS, _COORDINATES)
    if landmark_use == "needed":
        points = require_list("list_landmarks_align_celeba", points)
    part = partition.values_in_order_of(attributes)[:, 0].astype(np.uint8)
    _check_parts(part, partition.where)
    lists = Lists(
        names=tuple(attributes.names),
        attributes=(attributes.values > 0).astype(np.uint8),
        part=part,
        points=None if points is None else points.values_in_order_of(attributes).reshape(-1, 5, 2).astype(np.float32),
        sha256="",
    )
    digest = hashlib.sha256("\n".join(lists.names).encode())
    digest.update(lists.attributes.tobytes() + lists.part.tobytes())
    if lists.points is not None:
        digest.update(lists.points.astype("<f4").tobytes())
    return replace(lists, sha256=digest.hexdigest())


def _check_parts(part: NDArray[np.uint8], where: str) -> None:
    for code, (name, size) in PARTS.items():
        count = int((part == code).sum())
        expected = f"{size:,}" if len(part) == CELEBA_SIZE else "some"
        if count == 0 or (len(part) == CELEBA_SIZE and count != size):
            raise DataError(
                f"{where} puts {count:,} of {len(part):,} images into part {code} ({name}), expected {expected}; get "
                "it again"
            )


WHERE_TO_GET_IT = (
    "get img_align_celeba.zip, list_attr_celeba.txt, list_eval_partition.txt and list_landmarks_align_celeba.txt from "
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html and name their folder with --celeba"
)

_IMAGE = re.compile(r"[0-9]{6}\.jpg")
_FOLDER = "img_align_celeba"
_MAX_IMAGE_BYTES = 2**22  # CelebA's largest has 33 kB
_MAX_LIST_BYTES = 2**26


class Source:
    """CelebA's images and lists in the user's folder or zip.

    Folders are searched as they come: the lists at the top, in ``Anno`` or in ``Eval``, the images in a folder
    ``img_align_celeba`` or in a zip of that name. Nothing is ever unpacked to disk.

    Args:
        path: The folder or the zip.
        landmark_use: Whether the list of landmarks is read, and must be there.

    Attributes:
        lists: Lists about the images; every image is there.

    Raises:
        DataError: Something is missing, twice there, malformed or does not fit.
    """

    def __init__(self, path: Path, landmark_use: LandmarkUse) -> None:
        self.path = path
        self._opened: list[Files] = []
        self._md5: dict[str, set[str]] = {}
        try:
            self._read_lists_and_find_images(landmark_use)
        except BaseException:
            self.close()
            raise

    def _read_lists_and_find_images(self, landmark_use: LandmarkUse) -> None:
        if not self.path.exists():
            raise DataError(f"there is no folder or zip {self.path}: {WHERE_TO_GET_IT}")
        places = self._open(self.path)
        if self.path.is_dir() and not any(_FOLDER in name.split("/")[:-1] for _, name in places):
            archives = [place for place in places if _base_name(place) == f"{_FOLDER}.zip"]
            _check_unique(f"{_FOLDER}.zip", archives)
            if archives:
                places = [place for place in places if not _IMAGE.fullmatch(_base_name(place))]
                files, name = archives[0]
                places += self._open(self.path / (files.common_folder + name))
        self._listed = [place for place in places if _base_name(place).startswith("list_")]
        self._images = self._images_by_name(places)
        self.lists: Lists = read_lists(self._read_list_file, str(self.path), landmark_use)
        self._check_listed_images()

    def _open(self, path: Path) -> "list[_Place]":
        files = Files(path)
        self._opened.append(files)
        return [(files, name) for name in files.names]

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the zips."""
        for files in self._opened:
            files.close()

    def compare_with_published(self) -> SourceComparison:
        """Compare the user's files with CelebA: lists by hash, images by number."""
        number, names = len(self.lists), [name for name, md5 in self._md5.items() if PUBLISHED[name] not in md5]
        if number != CELEBA_SIZE:
            return different_source("CelebA", self.path, f"it has {number:,} images, expected {CELEBA_SIZE:,}")
        if names:
            return different_source("CelebA", self.path, f"{', '.join(names)} has another content")
        lists = "" if {"list_attr_celeba", "list_eval_partition"} <= {*self._md5} else " and lists in csv"
        return unverified_source("CelebA", self.path, f"images{lists} are counted, and not compared")

    def read(self, name: str) -> bytes | str:
        """Return the bytes of an image's file, or the reason as a string if it cannot be read."""
        files, place = self._images[name]
        try:
            return files.read(place, _MAX_IMAGE_BYTES)
        except CannotReadError as error:
            return str(error)

    def _images_by_name(self, places: "list[_Place]") -> "dict[str, _Place]":
        images = [place for place in places if _IMAGE.fullmatch(_base_name(place))]
        own = [(files, name) for files, name in images if f"/{_FOLDER}/" in f"/{files.common_folder}{name}"]
        by_name: dict[str, _Place] = {}
        for place in own or images:
            base = _base_name(place)
            _check_unique(base, [by_name[base], place] if base in by_name else [])
            by_name[base] = place
        if not by_name:
            raise DataError(
                f"there are no images in {self.path}, expected {_FOLDER}.zip or a folder {_FOLDER} with 000001.jpg "
                f"and so on, and no zip in a zip: {WHERE_TO_GET_IT}"
            )
        return by_name

    def _read_list_file(self, name: str) -> tuple[str, bytes] | None:
        for ending in (".txt", ".csv"):
            lists = [place for place in self._listed if _base_name(place) == name + ending]
            _check_unique(name + ending, lists)
            for files, place in lists:
                where = _describe_place((files, place))
                try:
                    data = files.read(place, _MAX_LIST_BYTES)
                except CannotReadError as error:
                    raise DataError(f"cannot read {where}: {error}; download it again") from None
                if ending == ".txt":
                    unix = data.replace(b"\r\n", b"\n")  # some programs change the ends of lines
                    forms = (data, unix, unix.replace(b"\n", b"\r\n"))
                    self._md5[name] = {hashlib.md5(form, usedforsecurity=False).hexdigest() for form in forms}
                return where, data
        return None

    def _check_listed_images(self) -> None:
        listed = set(self.lists.names)
        missing, extra = sorted(listed - self._images.keys()), sorted(self._images.keys() - listed)
        if missing or extra:
            what = [f"{len(missing):,} that it names are missing, such as {missing[0]}"] if missing else []
            what += [f"{len(extra):,} are there that it does not name, such as {extra[0]}"] if extra else []
            raise DataError(
                f"{self.path} holds {len(self._images):,} images but its list of attributes names {len(listed):,}: "
                f"{', and '.join(what)}; get the images or the list again"
            )


_Place = tuple[Files, str]
"""A file in a folder or in a zip, by name."""


def _base_name(place: _Place) -> str:
    return place[1].rpartition("/")[2]


def _describe_place(place: _Place) -> str:
    """Describe a place for errors, with the file's ending last."""
    files, name = place
    return printable(str(files.path / (files.common_folder + name)))


def _check_unique(name: str, places: list[_Place]) -> None:
    if len(places) > 1:
        first, second = map(_describe_place, places[:2])
        raise DataError(f"{name} is there {len(places)} times, as {first} and {second}; remove one of them")

"""CelebA's images and lists in the user's folder or zip."""

import hashlib
import re
from pathlib import Path

from mmgen.core.errors import DataError
from mmgen.core.foreign import CannotReadError
from mmgen.core.parsing import printable
from mmgen.data_recipes._celeba._lists import CELEBA_SIZE, PUBLISHED, LandmarkUse, Lists, read_lists
from mmgen.data_recipes._own._files import Files
from mmgen.data_recipes._published import SourceComparison, different_source, unverified_source

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

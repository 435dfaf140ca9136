"""The base of CelebA recipes: settings, the user's files and the dataset file."""

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from mmgen.core.errors import DataError, UsageError
from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import image_array
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, map_in_order
from mmgen.data_recipes._celeba._landmarks import WIDTH, crop_and_resize, decode_face
from mmgen.data_recipes._celeba._source import (
    ALL_ATTRIBUTES,
    ATTRIBUTES,
    CELEBA_SIZE,
    PARTS,
    WHERE_TO_GET_IT,
    LandmarkUse,
    Lists,
    Source,
)
from mmgen.data_recipes._streams import SplitScheme

_CHUNK = 128
_MOST_NAMED = 3  # unreadable images that an error names
_RECORDED = 100  # unreadable images that the file names
_EIGHTEEN = [ALL_ATTRIBUTES.index(name) for name in ATTRIBUTES]
_VALUES = ("no", "yes")


@dataclass(frozen=True)
class _Chunk:
    """Rows to store of consecutive images, the images' numbers, and reasons why others are left out."""

    rows: Rows
    numbers: NDArray[np.int64]
    unreadable: dict[str, str]
    faceless: int


@dataclass(frozen=True)
class Faces:
    """Pictures of n readable images of CelebA, with their lists, numbers and seed.

    Attributes:
        images: Pictures of 178 x 218.
        lists: Their lines of CelebA's lists.
        indices: Their numbers among the images that are used [n].
        seed: Seed of the dataset.
        model_hashes: See :meth:`CelebaRecipe.face_model_hashes`.
    """

    images: Sequence[Image.Image]
    lists: Lists
    indices: NDArray[np.int64]
    seed: int
    model_hashes: Mapping[str, str]


class CelebaRecipe(Recipe):
    """Base of recipes for datasets of CelebA's aligned images."""

    celeba: Annotated[Path | None, Field(exclude=True)] = None
    """Folder or zip with CelebA's images and lists, as downloaded."""

    crop: Annotated[int, Field(ge=32, le=WIDTH)] = WIDTH
    """Side in pixels of the central square that is kept of the 178 x 218."""

    size: Annotated[int, Field(ge=16, le=WIDTH, validate_default=True)] = 64
    """Height and width that the square is made."""

    number: Annotated[int | None, Field(ge=20)] = None
    """Images to use, spread evenly over CelebA; all by default."""

    drop_unreadable: Annotated[bool, Field(exclude=True)] = False
    """Leave out images that cannot be read, instead of refusing to make the file."""

    name: ClassVar[str]
    finds_faces: ClassVar[bool] = False

    @field_validator("size")
    @classmethod
    def _check_size(cls, size: int, info: ValidationInfo) -> int:
        crop = info.data.get("crop", WIDTH)
        if size > crop:
            raise PydanticCustomError("size", "expected at most crop, which is {crop}", {"crop": crop})
        return size

    def add_columns(self, writer: Any) -> None:
        """Declare the recipe's modalities and factors in the dataset file; by default the image alone."""
        writer.add_image("image", (3, self.size, self.size), "bytes")

    def make_columns(self, faces: Faces) -> Rows:
        """Make the rows of the columns that :meth:`add_columns` declares."""
        return Rows({"image": self.fit_pictures(faces.images)})

    def storage_mask(self, rows: Rows) -> NDArray[np.bool_]:
        """Return a mask [n] of the finished images that the dataset stores."""
        return np.ones(len(rows), bool)

    @property
    def faceless_advice(self) -> str:
        """Advice for the error that no picture has a face."""
        return ""

    def further_split_schemes(self, numbers: NDArray[np.int64], seed: int) -> dict[str, SplitScheme]:
        """Return split schemes by name besides CelebA's own, for the images with these numbers [N]."""
        return {}

    @property
    def landmark_use(self) -> LandmarkUse:
        """Whether CelebA's list of landmarks is used."""
        return "ignored"

    def face_model_hashes(self) -> dict[str, str]:
        """Return hashes of the files of face models in use, by the setting that records each."""
        return {}

    def require_celeba(self) -> Path:
        """Return the path of the user's copy of CelebA; raise UsageError if none is named."""
        if self.celeba is None:
            raise UsageError(f"{self.name} is made from your own copy of CelebA: {WHERE_TO_GET_IT}")
        return self.celeba

    def setup_work(self) -> Work[Any] | None:
        self.require_celeba()
        return None

    def fit_pictures(self, images: Sequence[Image.Image]) -> NDArray[np.uint8]:
        """Crop and resize n pictures of 178 x 218 to uint8 [n, C, size, size]."""
        return np.stack([image_array(crop_and_resize(image, self.crop, self.size)) for image in images])

    def make_rows(
        self,
        files: Sequence[bytes | str],
        lists: Lists,
        indices: NDArray[np.int64],
        seed: int,
        model_hashes: Mapping[str, str],
    ) -> _Chunk:
        """Make the rows of n images from their files, or the reasons why they are unreadable; runs in a worker."""
        images, readable, unreadable = [], [], dict[str, str]()
        for row, (name, file) in enumerate(zip(lists.names, files, strict=True)):
            try:
                if isinstance(file, str):
                    raise CannotReadError(file)
                images.append(decode_face(file))
                readable.append(row)
            except CannotReadError as error:
                unreadable[name] = str(error)
        if not images:
            return _Chunk(Rows({}), np.zeros(0, np.int64), unreadable, 0)
        lists, indices = lists.select(np.array(readable)), indices[readable]
        rows = self.make_columns(Faces(images, lists, indices, seed, model_hashes))
        rows.columns["attributes"] = lists.attributes[:, _EIGHTEEN]
        rows.factors["number"] = np.array([int(name.split(".")[0]) for name in lists.names], np.uint32)
        rows.factors["partition"], rows.factors["celeba_attributes"] = lists.part, lists.attributes
        stored = self.storage_mask(rows)
        faceless = int((rows.factors["face_found"] == 0).sum()) if self.finds_faces else 0
        return _Chunk(_select_rows(rows, stored), indices[stored], unreadable, faceless)

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = _CHUNK, command: str = ""
    ) -> Work[Path]:
        folder_or_zip = self.require_celeba()
        model_hashes = self.face_model_hashes()
        source = Source(folder_or_zip, self.landmark_use)
        content = source.compare_with_published()
        number = self._image_count(len(source.lists))
        lists = source.lists.select(np.arange(number) * len(source.lists) // number)
        settings = {"recipe": self.name, **self.model_dump(mode="json"), "number": number, **model_hashes}
        settings |= {"lists_sha256": lists.sha256, **content.settings}

        digest = hashlib.sha256()

        def chunk_arguments() -> Iterator[tuple[Any, ...]]:
            for start in range(0, number, chunk):
                indices = np.arange(start, min(start + chunk, number))
                some = lists.select(indices)
                files = [source.read(name) for name in some.names]
                for file in files:
                    digest.update(hashlib.sha256(file.encode() if isinstance(file, str) else file).digest())
                yield files, some, indices, seed, model_hashes

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            numbers: list[int] = []
            unreadable: dict[str, str] = {}
            done = faceless = 0
            with source, DatasetWriter(path, number, settings, seed, command) as writer:
                self._add_elements(writer)
                for one in map_in_order(self.make_rows, chunk_arguments(), workers):
                    done = min(done + chunk, number)
                    unreadable |= one.unreadable
                    faceless += one.faceless
                    if unreadable and not self.drop_unreadable:
                        raise DataError(
                            f"{self._describe_unreadable(unreadable, done)}; download them again, or leave them out "
                            "with --drop-unreadable"
                        )
                    if len(one.numbers):
                        writer.write(len(numbers), one.rows.columns, one.rows.factors)
                        numbers.extend(one.numbers.tolist())
                    yield Progress(done, {"stored": len(numbers)})
                self._check_any_left(len(numbers), unreadable, faceless, number)
                writer.end_early()
                writer.settings["images_sha256"] = digest.hexdigest()
                writer.facts["unreadable"] = len(unreadable)
                writer.facts["unreadable_images"] = list(unreadable)[:_RECORDED]
                if self.finds_faces:
                    writer.facts["faceless"] = faceless
                for scheme, (meaning, parts) in self._make_split_schemes(lists, np.array(numbers), seed).items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        some = f" from {number:,} of CelebA's {CELEBA_SIZE:,} faces" if number != CELEBA_SIZE else ""
        return Work(f"making {self.name}{some}", number, "image", write_dataset, content.notes)

    def _image_count(self, available: int) -> int:
        if self.number is not None and self.number > available:
            raise UsageError(
                f"--number got {self.number:,}, but {self.celeba} holds {available:,} images; ask for fewer"
            )
        return self.number or available

    def _describe_unreadable(self, unreadable: Mapping[str, str], done: int) -> str:
        some = [f"{name} ({why})" for name, why in list(unreadable.items())[:_MOST_NAMED]]
        more = f" and {len(unreadable) - _MOST_NAMED:,} more" if len(unreadable) > _MOST_NAMED else ""
        first = f"{len(unreadable):,} of the first {done:,} images"
        return f"{first} in {self.celeba} cannot be read: {', '.join(some)}{more}"

    def _check_any_left(self, left: int, unreadable: Mapping[str, str], faceless: int, number: int) -> None:
        if left:
            return
        cannot = self._describe_unreadable(unreadable, number)
        if not faceless:
            raise DataError(f"no image is left to store: {cannot}; download them again")
        also = f", and {cannot}" if unreadable else ""
        raise DataError(
            f"no image is left to store: no face found in {faceless:,} of {number:,} images{also}; "
            f"leave out --drop-faceless, or {self.faceless_advice}"
        )

    def _add_elements(self, writer: Any) -> None:
        """Declare all modalities and factors."""
        self.add_columns(writer)
        writer.add_attributes("attributes", dict.fromkeys(ATTRIBUTES, _VALUES))
        writer.add_factor("number", np.uint32, "", "number of the image in CelebA, from 1")
        writer.add_factor("partition", np.uint8, "", "CelebA's own part: 0 train, 1 val, 2 test")
        meaning = f"all of CelebA's attributes, 0 no, 1 yes: {', '.join(ALL_ATTRIBUTES)}"
        writer.add_factor("celeba_attributes", np.uint8, "", meaning, (len(ALL_ATTRIBUTES),))

    def _make_split_schemes(self, lists: Lists, numbers: NDArray[np.int64], seed: int) -> dict[str, SplitScheme]:
        part = lists.part[numbers]
        parts = {name: np.flatnonzero(part == code) for code, (name, _) in PARTS.items()}
        return {
            "iid": ("CelebA's own parts, which share no person", parts),
            "official": ("CelebA's own parts", parts),
            **self.further_split_schemes(numbers, seed),
        }


def _select_rows(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    def select_rows(group: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return {name: array[mask] for name, array in group.items()}

    return Rows(select_rows(rows.columns), select_rows(rows.factors))

"""The base of CelebA recipes: settings, the user's files, resumable work and the dataset file."""

import hashlib
import importlib
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from mmgen.core.errors import ArtifactError, DataError, UsageError
from mmgen.core.foreign import CannotReadError
from mmgen.core.pictures import image_array
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, map_in_order
from mmgen.data_recipes._celeba._landmarks import WIDTH, crop_and_resize, decode_face
from mmgen.data_recipes._celeba._lists import ALL_ATTRIBUTES, ATTRIBUTES, CELEBA_SIZE, PARTS, LandmarkUse, Lists
from mmgen.data_recipes._celeba._source import WHERE_TO_GET_IT, Shard, ShardFolder, Source
from mmgen.data_recipes._streams import Parts

SplitScheme = tuple[str, Parts]
"""Meaning of a split scheme, and its parts."""

_CHUNK = 128
_MOST_NAMED = 3  # unreadable images that an error names
_RECORDED = 100  # unreadable images that the file names
_EIGHTEEN = [ALL_ATTRIBUTES.index(name) for name in ATTRIBUTES]
_VALUES = ("no", "yes")


@dataclass(frozen=True)
class _FinishedShard:
    """A finished shard on disk: numbers of the images in it, and reasons why other images are left out."""

    file: Path
    size: int
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
    libraries: ClassVar[tuple[str, ...]] = ("numpy", "PIL")
    finds_faces: ClassVar[bool] = False
    resumes: ClassVar[bool] = True

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
    ) -> bytes:
        """Make a shard, as bytes, from n images' files or the reasons why they are unreadable; runs in a worker."""
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
            return Shard(Rows({}), np.zeros(0, np.int64), unreadable).to_bytes()
        lists, indices = lists.select(np.array(readable)), indices[readable]
        rows = self.make_columns(Faces(images, lists, indices, seed, model_hashes))
        rows.columns["attributes"] = lists.attributes[:, _EIGHTEEN]
        rows.factors["number"] = np.array([int(name.split(".")[0]) for name in lists.names], np.uint32)
        rows.factors["partition"], rows.factors["celeba_attributes"] = lists.part, lists.attributes
        return Shard(rows, indices, unreadable).to_bytes()

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

        def write_dataset() -> Generator[Progress, None, Path]:
            with source:
                key = settings | {
                    "seed": seed,
                    "chunk": chunk,
                    "drop_faceless": None,
                    "libraries": self._library_versions(),
                }
                folder = ShardFolder(path, key)
                digest = hashlib.sha256()
                try:
                    done = yield from self._make_missing_shards(
                        source, lists, folder, digest, seed, workers, chunk, model_hashes
                    )
                    self._check_shards(done, number, folder)
                    identity = settings | {"images_sha256": digest.hexdigest()}
                    yield from self._assemble(path, folder, done, lists, identity, seed, command)
                finally:
                    folder.remove_if_empty()
            folder.remove()
            return path

        some = f" from {number:,} of CelebA's {CELEBA_SIZE:,} faces" if number != CELEBA_SIZE else ""
        return Work(f"making {self.name}{some}", number, "image", write_dataset, content.notes)

    def _image_count(self, available: int) -> int:
        if self.number is not None and self.number > available:
            raise UsageError(
                f"--number got {self.number:,}, but {self.celeba} holds {available:,} images; ask for fewer"
            )
        return self.number or available

    def _library_versions(self) -> dict[str, str]:
        """Return the versions of libraries, which name the folder of shards: other versions make other shards."""
        return {name: importlib.import_module(name).__version__ for name in self.libraries}

    def _make_missing_shards(
        self,
        source: Source,
        lists: Lists,
        folder: ShardFolder,
        digest: Any,
        seed: int,
        workers: Workers,
        chunk: int,
        model_hashes: Mapping[str, str],
    ) -> Generator[Progress, None, list[_FinishedShard]]:
        """Make the missing shards, add the hash of every image's file to ``digest``, and return all shards."""
        done: dict[int, _FinishedShard] = {}
        begun: deque[tuple[int, Path]] = deque()

        def chunk_arguments() -> Iterator[tuple[Any, ...]]:
            for start in range(0, len(lists), chunk):
                indices = np.arange(start, min(start + chunk, len(lists)))
                some = lists.select(indices)
                files = [source.read(name) for name in some.names]
                own = hashlib.sha256()
                for file in files:
                    one = hashlib.sha256(file.encode() if isinstance(file, str) else file).digest()
                    own.update(one)
                    digest.update(one)
                place = folder.file(start, own.hexdigest())
                shard = folder.load(place)
                if shard is not None:
                    done[start] = self._summarise_shard(place, shard)
                    continue
                begun.append((start, place))
                yield files, some, indices, seed, model_hashes

        for data in map_in_order(self.make_rows, chunk_arguments(), workers):
            start, place = begun.popleft()
            folder.store(place, data)
            done[start] = self._summarise_shard(place, Shard.from_bytes(data))
            yield Progress(sum(one.size for one in list(done.values())))
        return [done[start] for start in sorted(done)]

    def _summarise_shard(self, file: Path, shard: Shard) -> _FinishedShard:
        stored = self.storage_mask(shard.rows) if len(shard.numbers) else np.zeros(0, bool)
        faces = shard.rows.factors.get("face_found")
        faceless = 0 if faces is None else int((faces == 0).sum())
        size = len(shard.numbers) + len(shard.unreadable)
        return _FinishedShard(file, size, shard.numbers[stored], shard.unreadable, faceless)

    def _check_shards(self, done: Sequence[_FinishedShard], number: int, folder: ShardFolder) -> None:
        unreadable = {name: why for one in done for name, why in one.unreadable.items()}
        some = [f"{name} ({why})" for name, why in list(unreadable.items())[:_MOST_NAMED]]
        more = f" and {len(unreadable) - _MOST_NAMED:,} more" if len(unreadable) > _MOST_NAMED else ""
        cannot = f"{len(unreadable):,} of {number:,} images in {self.celeba} cannot be read: {', '.join(some)}{more}"
        if unreadable and not self.drop_unreadable:
            raise DataError(
                f"{cannot}; download them again, or leave them out with --drop-unreadable: finished images are kept"
            )
        if any(len(one.numbers) for one in done):
            return
        faceless = sum(one.faceless for one in done)
        if not faceless:
            folder.remove()
            raise DataError(f"no image is left to store: {cannot}; download them again")
        also = f", and {cannot}" if unreadable else ""
        raise DataError(
            f"no image is left to store: no face found in {faceless:,} of {number:,} images{also}; "
            f"leave out --drop-faceless (finished images, in {folder.path}, are kept), or {self.faceless_advice}"
        )

    def _assemble(
        self, path: Path, folder: ShardFolder, done: Sequence[_FinishedShard], lists: Lists, settings: dict[str, Any],
        seed: int, command: str,
    ) -> Generator[Progress, None, None]:  # fmt: skip
        """Write the images of all shards into the dataset file."""
        from mmgen.artifacts import DatasetWriter

        numbers = np.concatenate([one.numbers for one in done])
        facts: dict[str, Any] = {"unreadable": sum(len(one.unreadable) for one in done)}
        facts["unreadable_images"] = [name for one in done for name in one.unreadable][:_RECORDED]
        if self.finds_faces:
            facts["faceless"] = sum(one.faceless for one in done)
        with DatasetWriter(path, len(numbers), settings, seed, command, facts=facts) as writer:
            self.add_columns(writer)
            writer.add_attributes("attributes", dict.fromkeys(ATTRIBUTES, _VALUES))
            writer.add_factor("number", np.uint32, "", "number of the image in CelebA, from 1")
            writer.add_factor("partition", np.uint8, "", "CelebA's own part: 0 train, 1 val, 2 test")
            meaning = f"all of CelebA's attributes, 0 no, 1 yes: {', '.join(ALL_ATTRIBUTES)}"
            writer.add_factor("celeba_attributes", np.uint8, "", meaning, (len(ALL_ATTRIBUTES),))
            start = 0
            for one in done:
                shard = folder.load(one.file)
                if shard is None:
                    raise ArtifactError(f"{one.file} has gone or changed meanwhile; run the same command again")
                if len(one.numbers):
                    rows = _select_rows(shard.rows, self.storage_mask(shard.rows))
                    writer.write(start, rows.columns, rows.factors)
                start += len(one.numbers)
                yield Progress(len(lists), {"stored": start})
            for scheme, (meaning, parts) in self._make_split_schemes(lists, numbers, seed).items():
                writer.add_splits(scheme, **parts, meaning=meaning)

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

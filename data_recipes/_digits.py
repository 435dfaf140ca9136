"""Recipes of single digits, and how a digit becomes an image."""

from abc import abstractmethod
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, check_dataset_size, chunk_indices, map_in_order, write_rows
from mmgen.data_recipes._published import comparison_notes
from mmgen.data_recipes._sources import CollectionName, Digits, Source, check_digit_source, fetch_digits, read_digits
from mmgen.data_recipes._streams import Bits, SplitScheme, official_scheme, random_bits, split_by_group, stream_keys
from mmgen.settings.kinds import Option

PIXEL_SLOT = 64
"""Slots of an image's stream from here on binarise its pixels; those before are for the recipe's own draws."""

Patch = Image.Image
"""A transformed digit, cut to its ink."""

Bytes = NDArray[np.uint8]


def transform_digits(digits: Bytes, factor: NDArray[np.float64], angle: NDArray[np.float32]) -> list[Patch]:
    """Rotate and resize digits, and crop them to their ink.

    Args:
        digits: uint8 [n, H, W].
        factor: Scale of each [n].
        angle: Clockwise rotation of each in degrees [n].
    """
    n, height, width = digits.shape
    # Cutting digits from one tall image is cheaper than making n images from arrays.
    tall = Image.frombytes("L", (width, height * n), digits.tobytes())
    bicubic = Image.Resampling.BICUBIC
    patches = []
    for row, (scale, degrees) in enumerate(zip(factor.tolist(), angle.tolist(), strict=True)):
        digit = tall.crop((0, row * height, width, (row + 1) * height))
        if degrees:
            # Pillow turns counter-clockwise for positive angles.
            digit = digit.rotate(-degrees, bicubic, expand=True)
        size = (max(1, round(digit.width * scale)), max(1, round(digit.height * scale)))
        if size != digit.size:
            digit = digit.resize(size, bicubic)
        patches.append(digit.crop(digit.getbbox() or (0, 0, 1, 1)))  # a digit without ink stays one black pixel
    return patches


def paste_patches(patches: list[Patch], left: NDArray[np.int64], top: NDArray[np.int64], size: int) -> Bytes:
    """Paste n patches on black canvases, uint8 [n, size, size], with upper left pixels at (left, top) [n]."""
    tall = Image.new("L", (size, size * len(patches)))
    for row, (patch, x, y) in enumerate(zip(patches, left.tolist(), top.tolist(), strict=True)):
        tall.paste(patch, (x, row * size + y))
    return np.frombuffer(tall.tobytes(), np.uint8).reshape(len(patches), size, size)


def resize_digits(digits: Bytes, size: int) -> Bytes:
    """Resize digits, uint8 [n, H, W], to [n, size, size], bicubic with antialiasing."""
    n, height, width = digits.shape
    if (height, width) == (size, size):
        return digits
    tall = Image.frombytes("L", (width, height * n), digits.tobytes())
    boxes = [(0, row * height, width, (row + 1) * height) for row in range(n)]
    patches = [tall.crop(box).resize((size, size), Image.Resampling.BICUBIC) for box in boxes]
    zeros = np.zeros(n, np.int64)
    return paste_patches(patches, zeros, zeros, size)


def binarise(images: Bytes, keys: Bits) -> Bytes:
    """Draw each pixel of images [n, H, W] as 0 or 1 with probability intensity / 255 (Salakhutdinov & Murray 2008)."""
    flat = images.reshape(-1)
    inked = np.flatnonzero(flat)
    image, pixel = np.divmod(inked, images[0].size)
    random = random_bits(keys[image], pixel + PIXEL_SLOT) >> np.uint64(32)
    # Uniform in 0 .. 254, so that 255 is always and 0 never on.
    threshold = (random * np.uint64(255)) >> np.uint64(32)
    result = np.zeros_like(flat)
    result[inked] = threshold < flat[inked]
    return result.reshape(images.shape)


def pack_bits(images: Bytes) -> Bytes:
    """Pack binary images [n, H, W] to [n, ceil(HW / 8)] bytes, row by row, first pixel in the highest bit."""
    packed: NDArray[Any] = np.packbits(images.reshape(len(images), -1), axis=1)
    return packed


Vocabulary = dict[str, list[str]]
"""Values of each attribute, by the attribute's name, both in order."""

INK = Option(
    switches={
        "--binarise": (True, "Draw every pixel black or white, once, with its intensity as probability."),
        "--grey": (False, "Keep grey levels."),
        "--dynamic": ("dynamic", "Keep each pixel's probability of white, to be drawn anew in every view."),
    }
)
"""Options of the setting ``binarise``."""

Binarise = Annotated[bool | Literal["dynamic"], INK]
"""Binarisation: none, once, or anew whenever a model sees the image."""

Factor = tuple[str, str, str]
"""Data type, unit and meaning of a generative factor."""

LAYOUTS: dict[Binarise, str] = {True: "bits", False: "bytes", "dynamic": "probabilities"}
"""Layout of stored images by the setting ``binarise``."""

Picture = tuple[NDArray[np.uint8], NDArray[np.uint8], dict[str, NDArray[Any]]]
"""Rendered grey images [n, H, W], attribute codes [n, A], factors [n] by name."""


class SmallPictureRecipe(Recipe):
    """Base of recipes whose images show one source picture each, from MNIST or a set in its form.

    Image i shows source picture ``i mod S`` of the S source pictures, so that the first N images of a larger dataset
    are the dataset of N images (but not its splits, which are exact fractions of what is in the file).
    """

    mnist: Annotated[Path | None, Field(exclude=True)] = None
    """Folder with the four IDX files, MNIST's unless the recipe needs others; downloaded into the cache by default."""

    size: Annotated[int, Field(ge=16, le=512)] = 28
    """Height and width of the canvas in pixels."""

    number: Annotated[int | None, Field(ge=20)] = None
    """Images in all, instead of copies of every digit."""

    copies: Annotated[int, Field(ge=1)] = 1
    """Images of each source digit."""

    binarise: Binarise = False
    """Draw every pixel black or white, once, with its intensity as probability; otherwise keep the grey levels.
    "dynamic" keeps them as probabilities: every view in training and evaluation is a new draw."""

    name: ClassVar[str]
    vocabulary: ClassVar[Vocabulary]
    random_factors: ClassVar[dict[str, Factor]] = {}
    source_noun: ClassVar[str] = "digit"
    """Noun for a source picture."""

    @field_validator("copies")
    @classmethod
    def _check_copies(cls, copies: int, info: ValidationInfo) -> int:
        if info.data.get("number") is not None:
            raise PydanticCustomError("copies", "leave it out with number, which says how many images there are")
        return copies

    @property
    @abstractmethod
    def collection_name(self) -> CollectionName:
        """Name of the published collection of source pictures."""

    def render(self, digits: NDArray[np.uint8], labels: NDArray[np.uint8], keys: NDArray[np.uint64]) -> Picture:
        """Render source digits [n, 28, 28] with labels [n] and random streams [n]; by default resize them."""
        return resize_digits(digits, self.size), labels[:, None], {}

    def further_split_schemes(
        self, source: NDArray[np.int64], part: NDArray[np.uint8], attributes: NDArray[np.uint8], seed: int
    ) -> dict[str, SplitScheme]:
        """Return split schemes by name besides iid and iid-paper; by default the publisher's."""
        return official_scheme(source, part, seed)

    def read_sources(self) -> Digits:
        """Read the source pictures after the work of :meth:`setup_work`."""
        return read_digits(self.collection_name, self.mnist)

    def setup_work(self) -> Work[Path] | None:
        return fetch_digits(self.collection_name, self.mnist)

    def make_rows(
        self,
        digits: NDArray[np.uint8],
        labels: NDArray[np.uint8],
        origin: dict[str, NDArray[Any]],
        indices: NDArray[np.int64],
        seed: int,
    ) -> Rows:
        """Make the images ``indices`` [n] from their source digits [n, 28, 28] in stored form; runs in a worker."""
        keys = stream_keys(seed, self.name, indices)
        images, attributes, factors = self.render(digits, labels, keys)
        stored = pack_bits(binarise(images, keys)) if self.binarise is True else images[:, None]
        return Rows({"image": stored, "attributes": attributes}, factors | origin)

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        digits = self.read_sources()
        size = self.number or len(digits) * self.copies
        check_dataset_size(size, self.size**2, chunk)
        source = np.arange(size) % len(digits)

        def arguments(indices: NDArray[np.int64]) -> tuple[Any, ...]:
            which = source[indices]
            origin = {"source": which.astype(np.uint32), "source_part": digits.part[which]}
            return digits.images[which], digits.labels[which], origin, indices, seed

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = self._recorded_settings(digits, size)
            with DatasetWriter(path, size=size, settings=settings, seed=seed, command=command) as writer:
                writer.add_image("image", (1, self.size, self.size), LAYOUTS[self.binarise])
                writer.add_attributes("attributes", self.vocabulary)
                for name, (dtype, unit, meaning) in (self.random_factors | self.source_factors()).items():
                    writer.add_factor(name, dtype, unit, meaning)
                calls = map(arguments, chunk_indices(size, chunk))
                attributes = yield from write_rows(writer, map_in_order(self.make_rows, calls, workers))
                for scheme, (meaning, parts) in self._make_split_schemes(source, digits, attributes, seed).items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", size, "image", write_dataset, comparison_notes(digits.content))

    def source_factors(self) -> dict[str, Factor]:
        """Return the factors that describe the source picture of an image, by name."""
        number = f"number of the source {self.source_noun}, in published order, training {self.source_noun}s first"
        part = f"0: one of the publisher's training {self.source_noun}s, 1: one of the test {self.source_noun}s"
        return {"source": ("uint32", "", number), "source_part": ("uint8", "", part)}

    def _recorded_settings(self, digits: Digits, size: int) -> dict[str, Any]:
        """Return the settings to record in the dataset file, without paths of the user's files."""
        settings = self.model_dump(exclude={"copies", "number"}) | {"number": size}
        content = digits.content.settings if digits.content is not None else {}
        return {"recipe": self.name, **settings, "source_sha256": digits.sha256, **content}

    def _make_split_schemes(
        self, source: NDArray[np.int64], digits: Digits, attributes: NDArray[np.uint8], seed: int
    ) -> dict[str, SplitScheme]:
        size = len(source)
        by_source = split_by_group(source, min(size, len(digits)), seed, "iid")
        by_image = split_by_group(np.arange(size), size, seed, "iid-paper")
        per_source = f"85/5/10 % of the source {self.source_noun}s: no {self.source_noun} has images in two parts"
        per_image = f"85/5/10 % of the images, as published: copies of a {self.source_noun} lie in several parts"
        return {
            "iid": (per_source, by_source),
            "iid-paper": (per_image, by_image),
            **self.further_split_schemes(source, digits.part[source], attributes, seed),
        }


class DigitRecipe(SmallPictureRecipe):
    """Base of recipes whose images show one handwritten digit each."""

    source: Source = "mnist"
    """Digits: mnist, or digits for the 1,797 that scikit-learn carries (no download)."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        check_digit_source(self.source, self.mnist)
        return self

    @property
    def collection_name(self) -> CollectionName:
        return self.source

"""The base of recipes whose examples show several digits: source digits by part, and the file; subclasses compose."""

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, check_dataset_size, chunk_indices, map_in_order, write_rows
from mmgen.data_recipes._published import comparison_notes
from mmgen.data_recipes._sources import Digits, Source, check_digit_source, fetch_digits, read_digits
from mmgen.data_recipes._streams import Parts, SplitScheme, official_scheme, random_order, split_by_group

if TYPE_CHECKING:
    from mmgen.artifacts import DatasetWriter


PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class DigitPools:
    """Source digits divided into parts, so that no digit occurs in images of two parts.

    Attributes:
        digits: The S source digits.
        pool: Part of each source digit [S]: 0 train, 1 val, 2 test.
        schemes: Meaning of each split scheme by name.
    """

    digits: Digits
    pool: NDArray[np.int64]
    schemes: dict[str, str]

    @classmethod
    def divide(cls, digits: Digits, seed: int) -> "DigitPools":
        """Divide source digits into training, validation and test part as their publisher does, else at random."""
        # Images can be free of leaks in one division of digits only, so ``iid`` is the publisher's where there is one.
        numbers = np.arange(len(digits))
        published = official_scheme(numbers, digits.part, seed)
        parts: Parts
        if published:
            ((name, (meaning, parts)),) = published.items()
            meaning = f"{meaning}; all digits of an image are of its part"
            schemes = {"iid": f"the same as {name}: {meaning}", name: meaning}
        else:
            parts = split_by_group(numbers, len(digits), seed, "iid")
            schemes = {"iid": "85/5/10 % of the source digits; all digits of an image are of its part"}
        pool = np.empty(len(digits), np.int64)
        for code, part in enumerate(PARTS):
            pool[parts[part]] = code
        return cls(digits, pool, schemes)

    def members(self, code: int, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """Return the numbers of a part's source digits, by default of all labels, else of those ``allowed`` [10]."""
        inside = self.pool == code
        return np.flatnonzero(inside if allowed is None else inside & allowed[self.digits.labels])

    def of_images(self, number: int, seed: int, name: str) -> NDArray[np.int64]:
        """Return the part of each of ``number`` images, which take turns with the digits in a random order."""
        order = random_order(seed, f"{name} parts", len(self.digits))
        return self.pool[order[np.arange(number) % len(order)]]


class SeveralDigitsRecipe(Recipe):
    """Base of recipes whose examples show several handwritten digits each, on one canvas or on several."""

    source: Source = "mnist"
    """Digits: mnist, or digits for the 1,797 that scikit-learn carries (no download)."""

    mnist: Annotated[Path | None, Field(exclude=True)] = None
    """Folder with MNIST's four IDX files; downloaded into the cache by default."""

    size: Annotated[int, Field(ge=16, le=512)]
    """Height and width of the canvas in pixels; digits and their places scale with it."""

    number: Annotated[int, Field(ge=20)] = 70_000
    """Images in all."""

    name: ClassVar[str]

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        check_digit_source(self.source, self.mnist)
        return self

    def check_digits(self, pools: DigitPools) -> None:
        """Refuse source digits that are too few; by default any number will do."""

    @abstractmethod
    def choose_digits(
        self, pools: DigitPools, part: NDArray[np.int64], indices: NDArray[np.int64], seed: int
    ) -> tuple[Any, ...]:
        """Return the arguments of :meth:`make_rows` for the images ``indices`` [n], whose parts are ``part`` [n]."""

    @abstractmethod
    def make_rows(self, *arguments: Any) -> Rows:
        """Make images in stored form; runs in a worker."""

    @abstractmethod
    def add_elements(self, writer: "DatasetWriter") -> None:
        """Add modalities and factors to the file."""

    def split_schemes(self, pools: DigitPools, part: NDArray[np.int64], seed: int) -> dict[str, SplitScheme]:
        """Return meaning and parts of each split scheme, given the part of each image [N]."""
        parts = {name: np.flatnonzero(part == code) for code, name in enumerate(PARTS)}
        return {scheme: (meaning, parts) for scheme, meaning in pools.schemes.items()}

    def further_settings(self, seed: int) -> dict[str, Any]:
        """Return what the file records besides the settings and the source; nothing by default."""
        return {}

    def setup_work(self) -> Work[Path] | None:
        return fetch_digits(self.source, self.mnist)

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        check_dataset_size(self.number, self.size**2, chunk)
        digits = read_digits(self.source, self.mnist)
        pools = DigitPools.divide(digits, seed)
        self.check_digits(pools)
        part = pools.of_images(self.number, seed, self.name)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(), "source_sha256": digits.sha256}
            settings |= digits.content.settings if digits.content is not None else {}
            settings |= self.further_settings(seed)
            with DatasetWriter(path, size=self.number, settings=settings, seed=seed, command=command) as writer:
                self.add_elements(writer)
                each = chunk_indices(self.number, chunk)
                calls = (self.choose_digits(pools, part[indices], indices, seed) for indices in each)
                yield from write_rows(writer, map_in_order(self.make_rows, calls, workers))
                for scheme, (meaning, parts) in self.split_schemes(pools, part, seed).items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", self.number, "image", write_dataset, comparison_notes(digits.content))

"""OMNIGLOT: handwritten characters of up to fifty alphabets, described by their alphabet.

References:
    Human-level concept learning through probabilistic program induction (Lake, Salakhutdinov, Tenenbaum, 2015),
    https://doi.org/10.1126/science.aab3050
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5
"""

from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Workers
from mmgen.data_recipes._digits import LAYOUTS, Binarise, SplitScheme, binarise, pack_bits
from mmgen.data_recipes._omniglot import SIDE, Characters, read_characters
from mmgen.data_recipes._published import comparison_notes
from mmgen.data_recipes._streams import random_order, split_by_group, stream_keys

__all__ = ["Omniglot"]

_BURDAS = 24_345
_HELD_OUT, _SEED = 1_345, 123


class Omniglot(Recipe):
    """OMNIGLOT characters of 28 x 28 from the user's own copy.

    Published likelihoods are of ``chardata.mat``. The original drawings of 105 x 105 become the mean ink of 28 x 28
    boxes, which is another picture of the same strokes: the file says which of the two it holds, and their scores are
    not to be compared.
    """

    omniglot: Annotated[Path | None, Field(exclude=True)] = None
    """Your copy of OMNIGLOT: chardata.mat, images_background.zip, or a folder with either."""

    number: Annotated[int | None, Field(ge=20)] = None
    """Characters to use, spread evenly over all; all by default."""

    binarise: Binarise = "dynamic"
    """Draw every pixel black or white, once, with its level as probability, or keep the levels. "dynamic" keeps them as
    probabilities: every view in training and evaluation is a new draw (Burda et al., 2016)."""

    name: ClassVar[str] = "omniglot"

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        characters = read_characters(self.omniglot)
        size = min(self.number or len(characters), len(characters))
        source = np.arange(size) * len(characters) // size

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(), "number": size, "pictures": characters.pictures}
            settings |= {"source_sha256": characters.sha256, **characters.content.settings}
            with DatasetWriter(path, size=size, settings=settings, seed=seed, command=command) as writer:
                writer.add_image("image", (1, SIDE, SIDE), LAYOUTS[self.binarise])
                writer.add_attributes("attributes", {"alphabet": characters.alphabets})
                writer.add_factor("character", "uint16", "", "number of the character in its alphabet; 0 is unknown")
                writer.add_factor("source", "uint32", "", "number of the character in the source, training ones first")
                writer.add_factor("source_part", "uint8", "", "0: one of the training characters, 1: of the test ones")
                for start in range(0, size, chunk):
                    which = source[start : start + chunk]
                    images = characters.images[which]
                    if self.binarise is True:
                        keys = stream_keys(seed, self.name, np.arange(start, start + len(which)))
                        stored = pack_bits(binarise(images, keys))
                    else:
                        stored = images[:, None]
                    factors: dict[str, NDArray[Any]] = {
                        "character": characters.character[which],
                        "source": which.astype(np.uint32),
                        "source_part": characters.part[which],
                    }
                    columns = {"image": stored, "attributes": characters.alphabet[which, None]}
                    writer.write(start, columns, factors)
                    yield Progress(start + len(which))
                for scheme, (meaning, parts) in _split_schemes(characters, source, seed).items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", size, "image", write_dataset, comparison_notes(characters.content))


def _split_schemes(characters: Characters, source: NDArray[np.int64], seed: int) -> dict[str, SplitScheme]:
    """Return split schemes by name; "official" if the source has a test part."""
    size, part = len(source), characters.part[source]
    schemes: dict[str, SplitScheme] = {
        "iid": ("85/5/10 % of the drawings", split_by_group(np.arange(size), size, seed, "iid")),
    }
    if len(np.unique(part)) < 2:
        return schemes
    training = np.flatnonzero(characters.part == 0)
    if len(training) == _BURDAS:
        # As the authors' published code does it: the last of an order drawn by numpy's old generator.
        val = training[np.random.RandomState(_SEED).permutation(_BURDAS)[-_HELD_OUT:]]
        meaning = (
            f"the publisher's test characters; of the training ones {_HELD_OUT:,} are val, as in Burda et al. (2016)"
        )
    else:
        val = training[random_order(seed, "split official", len(training))[: max(1, len(training) // 18)]]
        meaning = "the publisher's test characters; of the training ones one in eighteen is val"
    held = np.isin(source, val)
    parts: dict[str, Any] = {
        "train": np.flatnonzero((part == 0) & ~held),
        "val": np.flatnonzero(held),
        "test": np.flatnonzero(part == 1),
    }
    return {**schemes, "official": (meaning, parts)}

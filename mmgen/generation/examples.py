"""Examples of a dataset: their rows, pictures, attributes and text."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.seeding import numpy_generator

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["Examples", "random_examples", "read_examples"]


@dataclass(frozen=True)
class Examples:
    """Examples of a dataset with their pictures, attributes and text.

    Attributes:
        rows: Rows in the dataset, int [n].
        images: Values of the main modality, such as pictures float32 [n, C, H, W] in [0, 1].
        tokens: Word codes uint16 [n, T]; None for a model without text.
        codes: Attribute codes uint8 [n, A]; None for a model without attributes.
    """

    rows: np.ndarray
    images: np.ndarray
    tokens: np.ndarray | None
    codes: np.ndarray | None

    def first(self, count: int) -> "Examples":
        """Return the first ``count`` examples."""
        tokens, codes = (None if values is None else values[:count] for values in (self.tokens, self.codes))
        return Examples(self.rows[:count], self.images[:count], tokens, codes)


def read_examples(loaded: "TrainedModel", data: Dataset, rows: np.ndarray) -> Examples:
    """Read examples from ``rows`` of a dataset: the model's main modality, attributes and text."""
    main, info, text = loaded.observation, loaded.attributes, loaded.text
    assert main is not None
    return Examples(
        rows,
        data.read_values(main.name, rows),
        data.read_text(text.name, rows) if text is not None else None,
        data.read_attributes(info.name, rows) if info is not None else None,
    )


def random_examples(loaded: "TrainedModel", dataset: Path, split: str, count: int, seed: int) -> Examples:
    """Read ``count`` random examples from a split of a dataset: "train", "val" or "test"."""
    with Dataset.open(dataset) as data:
        every = data.split(loaded.settings.data.split, split)
        chosen = numpy_generator(seed, "examples", split).permutation(len(every))[:count]
        return read_examples(loaded, data, np.sort(every[chosen]))

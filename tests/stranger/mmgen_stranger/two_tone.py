"""Two-tone: squares of one colour, with a bar at one side."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes import (
    Recipe,
    Rows,
    Workers,
    map_in_order,
    random_bits,
    random_choices,
    split_by_group,
    stream_keys,
)

__all__ = ["TwoTone"]


class TwoTone(Recipe):
    """Dark or light squares, with a bar of the other tone at the left or at the right."""

    number: Annotated[int, Field(ge=20)] = 1000
    """Images in all."""

    size: Annotated[int, Field(ge=4, multiple_of=4)] = 16
    """Height and width in pixels."""

    def rows(self, indices: np.ndarray, seed: int) -> Rows:
        """The examples with these numbers."""
        keys = stream_keys(seed, "two-tone", indices)
        light, right = (random_choices(random_bits(keys, slot), 2).astype(np.uint8) for slot in (0, 1))
        images = np.repeat(light, self.size**2).reshape(-1, 1, self.size, self.size)
        for image, tone, side in zip(images, light, right, strict=True):
            bar = slice(self.size // 2, None) if side else slice(None, self.size // 2)
            image[:, :, bar] = 1 - tone
        return Rows({"image": images * 200 + 20, "attributes": np.stack([light, right], 1)})

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        """Make the dataset file."""

        def generate() -> Iterator[Progress]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": "two-tone", **self.model_dump()}
            with DatasetWriter(path, size=self.number, settings=settings, seed=seed, command=command) as writer:
                writer.add_image("image", (1, self.size, self.size), "bytes")
                writer.add_attributes("attributes", {"tone": ["dark", "light"], "side": ["left", "right"]})
                starts = range(0, self.number, chunk)
                calls = ((np.arange(start, min(start + chunk, self.number)), seed) for start in starts)
                done = 0
                for rows in map_in_order(self.rows, calls, workers):
                    writer.write(done, rows.columns, rows.factors)
                    done += len(rows)
                    yield Progress(done)
                writer.add_splits("iid", **split_by_group(np.arange(self.number), self.number, seed, "iid"))
            return path

        return Work("making two-tone", self.number, "image", generate)

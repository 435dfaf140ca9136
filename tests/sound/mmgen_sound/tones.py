"""Tones: waveforms of a pitch and a loudness."""

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
from mmgen_sound.sound import SoundDescription

__all__ = ["Tones"]

_PITCHES, _LOUDNESS = {"c": 2, "e": 3, "g": 5}, {"soft": 0.3, "loud": 0.9}


class Tones(Recipe):
    """Sine waves of three pitches, soft or loud, at any phase."""

    number: Annotated[int, Field(ge=20)] = 1000
    """Sounds in all."""

    length: Annotated[int, Field(ge=16, multiple_of=8)] = 64
    """Samples of each sound."""

    def rows(self, indices: np.ndarray, seed: int) -> Rows:
        """Return the examples with these numbers."""
        keys = stream_keys(seed, "tones", indices)
        pitch, loudness, phase = (
            random_choices(random_bits(keys, 0), 3),
            random_choices(random_bits(keys, 1), 2),
            random_choices(random_bits(keys, 2), 16),
        )
        cycles, level = (np.array(list(table.values())) for table in (_PITCHES, _LOUDNESS))
        turns = np.arange(self.length) / self.length * cycles[pitch][:, None] + phase[:, None] / 64
        waves = level[loudness][:, None] * np.sin(2 * np.pi * turns)
        codes = np.stack([pitch, loudness], 1).astype(np.uint8)
        return Rows({"sound": np.rint(waves * 32767).astype(np.int16), "attributes": codes})

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 2048, command: str = ""
    ) -> Work[Path]:
        """Make the dataset file."""

        def generate() -> Iterator[Progress]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": "tones", **self.model_dump()}
            with DatasetWriter(path, size=self.number, settings=settings, seed=seed, command=command) as writer:
                writer.add(SoundDescription(length=self.length))
                writer.add_attributes("attributes", {"pitch": list(_PITCHES), "loudness": list(_LOUDNESS)})
                starts = range(0, self.number, chunk)
                calls = ((np.arange(start, min(start + chunk, self.number)), seed) for start in starts)
                done = 0
                for rows in map_in_order(self.rows, calls, workers):
                    writer.write(done, rows.columns, rows.factors)
                    done += len(rows)
                    yield Progress(done)
                writer.add_splits("iid", **split_by_group(np.arange(self.number), self.number, seed, "iid"))
            return path

        return Work("making tones", self.number, "sound", generate)

"""CdSprites+: coloured sprites with sentences, of five levels that name one attribute more each.

References:
    Benchmarking Multimodal Variational Autoencoders: CdSprites+ Dataset and Toolkit (Sejnova, Vavrecka, Stepanova,
    2022), arXiv:2209.03048
"""

from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, check_dataset_size, chunk_indices, map_in_order, write_rows
from mmgen.data_recipes._streams import random_bits, random_choices, random_uniforms, split_by_group, stream_keys
from mmgen.data_recipes.dsprites import SHAPES, SIDE, is_inside

__all__ = ["Cdsprites"]

_COLOURS = {
    "red": (220, 40, 40), "green": (40, 160, 70), "blue": (40, 80, 220), "yellow": (240, 210, 40),
    "pink": (240, 130, 190),
}  # fmt: skip
_GROUNDS = {"white": (255, 255, 255), "black": (0, 0, 0)}
_UNCOLOURED = (128, 128, 128)
"""Colour of sprites below level 3; their ground is white below level 5."""
_SCALES = {"large": 1.0, "small": 0.55}
_PLACES = {"top left": (-1, -1), "top right": (1, -1), "bottom left": (-1, 1), "bottom right": (1, 1)}
_ASIDE = 15.0
"""Pixels between the middle of the picture and that of a place, across and down."""
_FINE = 4
"""Samples of a pixel, across and down, so that edges are antialiased."""

_VALUES: dict[str, tuple[str, ...]] = {
    "shape": SHAPES, "size": tuple(_SCALES), "colour": tuple(_COLOURS), "place": tuple(_PLACES),
    "ground": tuple(_GROUNDS),
}  # fmt: skip
"""The attributes in the order in which levels add them."""
_SENTENCES = ("{shape}", "{size} {shape}", "{size} {colour} {shape}", "at {place} {size} {colour} {shape}",
              "at {place} {size} {colour} {shape} on {ground}")  # fmt: skip
_SLOTS = {**{name: number for number, name in enumerate(_VALUES)}, "angle": 5, "x": 6, "y": 7}
_FACTORS = {
    "angle": ("degree", "rotation, counter-clockwise positive"),
    "centre_x": ("pixel", "centre of the sprite, from the left edge"),
    "centre_y": ("pixel", "centre of the sprite, from the top edge"),
}


class Cdsprites(Recipe):
    """Sprites of dSprites in 64 x 64 pixels with a sentence such as "at top left large red ellipse on white".

    A level names shape; size too; colour too; place too; ground too. What it does not name is large, grey, in the
    middle and on white. Angle and place vary a little in all. The pictures are drawn anew from the description of the
    paper: numbers that others publish are of their own files, whose pictures may be harder or easier.
    """

    level: Annotated[int, Field(ge=1, le=5)] = 5
    """Number of attributes that sentences name."""

    number: Annotated[int, Field(ge=20)] = 12_000
    """Pictures to draw."""

    turn: Annotated[float, Field(ge=0, le=180)] = 20.0
    """Largest rotation in degrees, either way."""

    shift: Annotated[float, Field(ge=0, le=3)] = 2.0
    """Largest distance from the middle of a place in pixels, across and down."""

    name: ClassVar[str] = "cdsprites"

    @property
    def values(self) -> dict[str, tuple[str, ...]]:
        """Values of the attributes that this level names, by attribute."""
        return dict([*_VALUES.items()][: self.level])

    def make_rows(self, indices: NDArray[np.int64], seed: int) -> Rows:
        """Draw the pictures ``indices`` [n] in stored form; runs in a worker."""
        keys = stream_keys(seed, f"{self.name} {self.level}", indices)
        draw = {name: random_bits(keys, slot) for name, slot in _SLOTS.items()}
        codes = np.stack([random_choices(draw[name], len(words)) for name, words in self.values.items()], 1)
        turns, *shifts = (2 * random_uniforms(draw[name]) - 1 for name in ("angle", "x", "y"))
        words = [dict(zip(self.values, row, strict=True)) for row in self._words(codes)]
        aside = np.array([_PLACES[one["place"]] if "place" in one else (0, 0) for one in words])
        centres = SIDE / 2 + _ASIDE * aside + self.shift * np.stack(shifts, 1)
        pictures = [
            _draw(one, angle, centre) for one, angle, centre in zip(words, self.turn * turns, centres, strict=True)
        ]
        found = {"angle": self.turn * turns, "centre_x": centres[:, 0], "centre_y": centres[:, 1]}
        factors: dict[str, NDArray[Any]] = {name: value.astype(np.float32) for name, value in found.items()}
        vocabulary = {word: code for code, word in enumerate(self._vocabulary)}
        sentences = [[vocabulary[word] for word in self._sentence(one)] for one in words]
        columns: dict[str, NDArray[Any]] = {
            "image": np.stack(pictures),
            "attributes": codes,
            "text": np.array(sentences, np.uint16),
        }
        return Rows(columns, factors)

    def _words(self, codes: NDArray[np.uint8]) -> list[list[str]]:
        return [[values[code] for values, code in zip(self.values.values(), row, strict=True)] for row in codes]

    def _sentence(self, words: dict[str, str]) -> list[str]:
        return _SENTENCES[self.level - 1].format(**words).split()

    @property
    def _vocabulary(self) -> tuple[str, ...]:
        fixed = [word for word in _SENTENCES[self.level - 1].split() if "{" not in word]
        own = [part for values in self.values.values() for value in values for part in value.split()]
        return tuple(dict.fromkeys([*fixed, *own]))

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int = 256, command: str = ""
    ) -> Work[Path]:
        check_dataset_size(self.number, 3 * SIDE**2, chunk)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(mode="json")}
            with DatasetWriter(path, size=self.number, settings=settings, seed=seed, command=command) as writer:
                writer.add_image("image", (3, SIDE, SIDE), "bytes")
                writer.add_attributes("attributes", {name: list(words) for name, words in self.values.items()})
                length = len(self._sentence({name: words[0] for name, words in self.values.items()}))
                writer.add_text("text", self._vocabulary, length)
                for name, (unit, meaning) in _FACTORS.items():
                    writer.add_factor(name, np.float32, unit, meaning)
                calls = ((indices, seed) for indices in chunk_indices(self.number, chunk))
                yield from write_rows(writer, map_in_order(self.make_rows, calls, workers))
                parts = split_by_group(np.arange(self.number), self.number, seed, "iid")
                writer.add_splits("iid", **parts, meaning="85/5/10 % of the pictures")
            return path

        return Work(f"making {self.name}", self.number, "image", write_dataset)


def _draw(words: dict[str, str], angle: float, centre: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return a picture [3, 64, 64] of one sprite."""
    samples = (np.arange(SIDE * _FINE) + 0.5) / _FINE
    x, y = np.meshgrid(samples - centre[0], samples - centre[1])
    cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))
    scale = _SCALES[words.get("size", "large")]
    u, v = ((cos * x - sin * y) / scale).astype(np.float32), ((sin * x + cos * y) / scale).astype(np.float32)
    covered = is_inside(words["shape"], u, v).reshape(SIDE, _FINE, SIDE, _FINE).mean((1, 3))
    paint = np.array(_COLOURS[words["colour"]] if "colour" in words else _UNCOLOURED, float)
    ground = np.array(_GROUNDS[words.get("ground", "white")], float)
    picture = ground[:, None, None] + (paint - ground)[:, None, None] * covered
    return np.rint(picture).astype(np.uint8)

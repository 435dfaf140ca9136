"""Coloured shapes on coloured grounds, described by attributes and by a sentence: data that mmgen draws itself."""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, check_dataset_size, chunk_indices, map_in_order, write_rows
from mmgen.data_recipes._streams import random_bits, random_choices, random_uniforms, split_by_group, stream_keys

__all__ = ["Shapes"]

Floats = NDArray[np.float64]

_COLOURS = {
    "red": (214, 45, 48), "orange": (242, 143, 24), "yellow": (250, 214, 51), "green": (50, 160, 76),
    "blue": (42, 104, 214), "purple": (140, 62, 178),
}  # fmt: skip
_GROUNDS = {"white": (248, 248, 246), "sand": (233, 208, 162), "sky": (184, 222, 246), "night": (32, 36, 66)}
_SIZES = {"big": 0.34, "small": 0.19}
"""Radius as a share of the picture's side."""
_SIZE_SPREAD = 0.1
"""Largest deviation of a radius, as a share of it."""
_TURN = 25.0
"""Largest rotation in degrees, either way."""
_MARGIN = 1.2
"""Distance of a centre from the edge, in radii."""
_SHADE = 0.16
"""How much lighter the upper left of a shape is than its middle, and how much darker its lower right."""
_SHADOW, _SHADOW_SHIFT, _SHADOW_BLUR = 0.3, 0.14, 0.12
"""Strength of a shadow, and its shift and blur in radii."""

# Draws of a picture, by slot of its stream.
_SLOTS = {"shape": 0, "colour": 1, "size": 2, "ground": 3, "radius": 4, "angle": 5, "x": 6, "y": 7}


def _circle(x: Floats, y: Floats) -> Floats:
    return np.hypot(x, y) - 0.95


def _polygon(x: Floats, y: Floats, corners: Floats) -> Floats:
    """Return signed distances to a polygon with corners [K, 2], negative inside (Quilez: "2D distance functions")."""
    squared = np.full(x.shape, np.inf)
    inside = np.zeros(x.shape, bool)
    for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, 0), strict=True):
        ex, ey, wx, wy = bx - ax, by - ay, x - ax, y - ay
        along = np.clip((wx * ex + wy * ey) / (ex**2 + ey**2), 0, 1)
        squared = np.minimum(squared, (wx - along * ex) ** 2 + (wy - along * ey) ** 2)
        inside ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay if by != ay else 1.0) + ax)
    return np.where(inside, -1.0, 1.0) * np.sqrt(squared)


def _corners(count: int, inner: float = 1.0, turned: float = 0.0) -> Floats:
    """Return the corners of a regular polygon, or of a star with ``count`` tips and inner corners at ``inner``."""
    number = count if inner == 1.0 else 2 * count
    angles = np.radians(turned - 90) + 2 * np.pi * np.arange(number) / number
    radii = np.where(np.arange(number) % 2 == 1, inner, 1.0)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], 1)


def _heart(x: Floats, y: Floats) -> Floats:
    """Return signed distances to a heart (Quilez), about as large as the unit circle."""
    px, py = np.abs(x) / 1.75 * 1.0, (0.92 - y) / 1.75
    above = px + py > 1
    lobe = np.hypot(px - 0.25, py - 0.75) - np.sqrt(2) / 4
    half = 0.5 * np.maximum(px + py, 0)
    tip = np.sqrt(np.minimum(px**2 + (py - 1) ** 2, (px - half) ** 2 + (py - half) ** 2)) * np.sign(px - py)
    return np.where(above, lobe, tip) * 1.75


def _moon(x: Floats, y: Floats) -> Floats:
    return np.maximum(np.hypot(x, y) - 0.97, 0.78 - np.hypot(x - 0.5, y + 0.1))


_SHAPES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "circle": _circle,
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) - 0.8,
    "triangle": lambda x, y: _polygon(x, y, _corners(3) * 1.12 + np.array([0.0, 0.14])),
    "star": lambda x, y: _polygon(x, y, _corners(5, 0.45) * 1.1),
    "heart": _heart,
    "moon": _moon,
}
"""Signed distance to each shape of radius about 1, negative inside; y points downwards."""

_WORDS: dict[str, tuple[str, ...]] = {
    "shape": tuple(_SHAPES), "colour": tuple(_COLOURS), "size": tuple(_SIZES), "ground": tuple(_GROUNDS),
}  # fmt: skip
_VOCABULARY = ("a", "on", *_SIZES, *_COLOURS, *_SHAPES, *_GROUNDS)
_LENGTH = 6
"""Words of a sentence: "a small red star on sand"."""
_FACTORS = {
    "radius": ("pixel", "radius of the shape"),
    "angle": ("degree", "rotation, clockwise positive"),
    "centre_x": ("pixel", "centre of the shape, from the left edge"),
    "centre_y": ("pixel", "centre of the shape, from the top edge"),
}


class Shapes(Recipe):
    """Coloured shapes on coloured grounds, 288 combinations of attributes, with a sentence: "a small red star on sand".

    Labels are uniform. The shape's radius deviates by up to a tenth; rotation and place are uniform, as ``spread``
    says, and all of the shape lies on the picture. Edges are antialiased; a shade and a shadow give it some depth.
    Nothing is read or downloaded.
    """

    size: Annotated[int, Field(ge=16, le=512)] = 64
    """Height and width of the pictures in pixels."""

    number: Annotated[int, Field(ge=1)] = 6_000
    """Pictures to draw."""

    spread: Annotated[float, Field(ge=0, le=1)] = 0.3
    """Share of the free place and of 25 degrees of rotation, either way, that shapes vary by; 0: all in the middle."""

    name: ClassVar[str] = "shapes"

    def make_rows(self, indices: NDArray[np.int64], seed: int) -> Rows:
        """Draw the pictures ``indices`` [n] in stored form; runs in a worker."""
        keys = stream_keys(seed, self.name, indices)
        draw = {name: random_bits(keys, slot) for name, slot in _SLOTS.items()}
        codes = np.stack([random_choices(draw[name], len(values)) for name, values in _WORDS.items()], 1)
        share = np.array([*_SIZES.values()])[codes[:, 2]]
        radius = self.size * share * (1 + _SIZE_SPREAD * (2 * random_uniforms(draw["radius"]) - 1))
        angle = self.spread * _TURN * (2 * random_uniforms(draw["angle"]) - 1)
        free = self.spread * (self.size - 2 * _MARGIN * radius)
        centre = [self.size / 2 + free * (random_uniforms(draw[axis]) - 0.5) for axis in "xy"]
        pictures = np.stack([self._draw(*one) for one in zip(codes, radius, angle, *centre, strict=True)])
        values = {"radius": radius, "angle": angle, "centre_x": centre[0], "centre_y": centre[1]}
        factors: dict[str, NDArray[Any]] = {name: value.astype(np.float32) for name, value in values.items()}
        return Rows({"image": pictures, "attributes": codes, "text": _sentences(codes)}, factors)

    def _draw(self, codes: NDArray[np.uint8], radius: float, angle: float, x: float, y: float) -> NDArray[np.uint8]:
        """Return a picture [3, H, W] of one shape."""
        shape, colour, _, ground = (values[code] for values, code in zip(_WORDS.values(), codes, strict=True))
        pixels = np.arange(self.size) + 0.5
        across, down = np.meshgrid((pixels - x) / radius, (pixels - y) / radius)
        cos, sin = np.cos(np.radians(angle)), np.sin(np.radians(angle))

        def distance(shift: float) -> Floats:
            dx, dy = across - shift, down - shift
            return _SHAPES[shape](cos * dx + sin * dy, cos * dy - sin * dx)

        below, paint = (np.array(table[name], float) for table, name in ((_GROUNDS, ground), (_COLOURS, colour)))
        shadow = _SHADOW * _cover(distance(_SHADOW_SHIFT), _SHADOW_BLUR)
        canvas = below[:, None, None] * (1 - shadow)
        light = np.clip(1 - _SHADE * (across + down) / 2, 0, 2)[None]
        # Lighter parts go towards white, darker ones towards black.
        shaded = np.where(light > 1, 255 - (255 - paint[:, None, None]) * (2 - light), paint[:, None, None] * light)
        inside = _cover(distance(0.0), 0.5 / radius)
        picture = canvas + (shaded - canvas) * inside
        return np.rint(picture).clip(0, 255).astype(np.uint8)

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int | None = None, command: str = ""
    ) -> Work[Path]:
        step = chunk or max(1, 256 * 64**2 // self.size**2)
        check_dataset_size(self.number, 3 * self.size**2, step)

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            settings = {"recipe": self.name, **self.model_dump(mode="json")}
            with DatasetWriter(path, size=self.number, settings=settings, seed=seed, command=command) as writer:
                writer.add_image("image", (3, self.size, self.size), "bytes")
                writer.add_attributes("attributes", {name: list(values) for name, values in _WORDS.items()})
                writer.add_text("text", _VOCABULARY, _LENGTH)
                for name, (unit, meaning) in _FACTORS.items():
                    writer.add_factor(name, np.float32, unit, meaning)
                calls = ((indices, seed) for indices in chunk_indices(self.number, step))
                codes = yield from write_rows(writer, map_in_order(self.make_rows, calls, workers))
                iid = split_by_group(np.arange(self.number), self.number, seed, "iid")
                writer.add_splits("iid", **iid, meaning="85/5/10 % of the pictures")
                sizes = [len(values) for values in _WORDS.values()]
                concepts = np.asarray(np.ravel_multi_index(tuple(codes.T.astype(np.int64)), sizes))
                parts = split_by_group(concepts, int(np.prod(sizes)), seed, "compositional")
                meaning = "85/5/10 % of the 288 combinations of attributes: no combination is in two parts"
                writer.add_splits("compositional", **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", self.number, "image", write_dataset)


def _cover(distance: Floats, blur: float) -> Floats:
    """Return the share of each pixel that a shape covers, given its distance from the edge and half an edge's width."""
    return np.clip(0.5 - distance / (2 * blur), 0, 1)


def _sentences(codes: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Return sentences "a SIZE COLOUR SHAPE on GROUND" as codes [n, 6] of their words."""
    place = {word: code for code, word in enumerate(_VOCABULARY)}
    words = {
        name: np.array([place[value] for value in values])[codes[:, k]]
        for k, (name, values) in enumerate(_WORDS.items())
    }
    fixed = {word: np.full(len(codes), place[word]) for word in ("a", "on")}
    order = [fixed["a"], words["size"], words["colour"], words["shape"], fixed["on"], words["ground"]]
    return np.stack(order, 1).astype(np.uint16)

"""Scenes: one or two objects on a floor, a camera and three lamps, drawn by the rules of CLEVR's generator.

Everything about a scene is a draw from its own numbered stream (:mod:`mmgen.data_recipes._streams`), rounded to
float32. That is what the dataset's factors hold: they are exactly the scene that was rendered.

References:
    CLEVR: A Diagnostic Dataset for Compositional Language and Elementary Visual Reasoning (Johnson, Hariharan, van der
    Maaten, Fei-Fei, Zitnick, Girshick, 2016), arXiv:1612.06890, Section 3 and its published generator

Captions of scenes: relations between two objects, and the choice of a true sentence.

A caption of two objects has nine words, ``size colour material shape relation size colour material shape``; either
object may come first and either true relation may be named (Cremer & Kushman, 2018, Section 5.2, "CK"). A caption of
one object has the four words of its looks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._streams import Bits, random_bits, random_choices, random_uniforms

Floats = NDArray[np.float32]

Words = Mapping[str, tuple[str, ...]]
"""Words of each of an object's four attributes, in the order in which captions say them."""

SceneArrays = dict[str, NDArray[Any]]
"""n scenes as the renderer takes them, see :func:`scene_arrays`."""

VisiblePixels = Callable[[SceneArrays, int], NDArray[np.int64]]
"""Pixels [n, objects] that show each object in an image of the given height and width."""

SIZES = {"small": 0.35, "large": 0.7}
"""Half extent of an object; it rests on the floor, so its centre is as high."""

COLOURS = {
    "cyan": (41, 208, 208),
    "red": (173, 35, 35),
    "gray": (87, 87, 87),
    "blue": (42, 75, 215),
    "yellow": (255, 238, 51),
    "purple": (129, 38, 192),
    "brown": (129, 74, 25),
    "green": (29, 105, 20),
}
"""Reflectance times 255; CLEVR uses these sRGB bytes as linear values."""

LOOKS: Words = {
    "size": tuple(SIZES),
    "colour": tuple(COLOURS),
    "material": ("rubber", "metal"),
    "shape": ("sphere", "cylinder", "cube"),
}
"""All that an object can look like."""

CAMERA = (7.48113, -6.50764, 5.34367)
_CAMERA_JITTER = 0.5  # uniform, to both sides of each coordinate

LAMPS = {
    "key": (6.44671, -2.90517, 4.25840),
    "fill": (-4.67112, -4.01360, 3.01122),
    "back": (-1.16850, 2.64602, 5.81574),
}
"""Where the three lamps are before jitter; they and the camera aim at the origin."""
_LAMP_JITTER = 1.0

_REACH = 3.0  # |x| and |y| of an object's centre
_DISTANCE = 0.25  # least free floor between two objects
_MARGIN = 0.4  # least displacement to the right or left, and to the front or behind
_CUBE_ROUNDING = 0.19  # radius of a cube's edges in half extents

VISIBLE_AT, _VISIBLE = 112, 25
"""Each object shows at least 25 pixels of an image of this size (CLEVR: 200 at 320 x 240)."""

# Draws of a scene, by slot of its stream; what belongs to objects takes one slot each.
_LOOK_SLOT, _ROTATION_SLOT, _CAMERA_SLOT, _LAMP_SLOT = 0, 8, 10, 13
_POSITION_SLOT = 64  # and four more for every attempt
_MOST_ATTEMPTS = 100_000  # about one in three succeeds


@dataclass(frozen=True)
class Scenes:
    """Objects, camera and lamps of n scenes with equally many objects.

    Attributes:
        looks: Codes [n, objects, 4] of size, colour, material and shape.
        x: Centres [n, objects] on the floor.
        y: Likewise.
        rotation: About the vertical [n, objects], radians.
        camera: Positions [n, 3].
        key: Positions [n, 3] of the key lamp.
        fill: Position of the fill lamp.
        back: Position of the back lamp.
        visible: Pixels [n, objects] that show each object at 112 x 112.
    """

    looks: NDArray[np.uint8]
    x: Floats
    y: Floats
    rotation: Floats
    camera: Floats
    key: Floats
    fill: Floats
    back: Floats
    visible: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.looks)

    def __getitem__(self, rows: slice) -> "Scenes":
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def ground_axes(camera: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return unit vectors [n, 2] on the floor towards the camera's right and towards the camera.

    Args:
        camera: Positions [n, 3]; it looks at the origin and stands upright, not straight above.

    Example:
        >>> right, front = ground_axes(np.array([[0.0, -5.0, 3.0]]))
        >>> right.tolist(), front.tolist()
        ([[1.0, 0.0]], [[0.0, -1.0]])
    """
    x, y = camera[:, 0].astype(np.float64), camera[:, 1].astype(np.float64)
    away = np.sqrt(x * x + y * y)
    # 0 + ... turns -0 into 0.
    return 0.0 + np.stack([-y / away, x / away], axis=1), 0.0 + np.stack([x / away, y / away], axis=1)


def footprint_radius(size: NDArray[np.float64], is_cube: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the radius of the circle that an object of this half extent covers in any rotation."""
    corner = np.sqrt(2.0) * (1.0 - _CUBE_ROUNDING) + _CUBE_ROUNDING
    return size * np.where(is_cube, corner, 1.0)


def scene_arrays(scenes: Scenes, words: Words, keys: Bits) -> SceneArrays:
    """Return arrays of numbers from which the renderer draws the scenes, by name; float64 unless stated otherwise.

    Returns:
        ``size`` [n, objects] half extents; ``colour`` [n, objects, 3] linear reflectance; ``metal`` [n, objects] bool;
        ``shape`` [n, objects] int64, 0 sphere, 1 cylinder, 2 cube; ``x``, ``y``, ``rotation`` [n, objects]; ``camera``,
        ``key``, ``fill``, ``back`` [n, 3]; ``seed`` [n] uint64.
    """
    size, colour, material, shape = (scenes.looks[..., column] for column in range(4))
    numbers = {name: getattr(scenes, name).astype(np.float64) for name in ("x", "y", "rotation", "camera", *LAMPS)}
    return numbers | {
        "size": np.array([SIZES[word] for word in words["size"]])[size],
        "colour": np.array([COLOURS[word] for word in words["colour"]])[colour] / 255.0,
        "metal": np.array([word == "metal" for word in words["material"]])[material],
        "shape": np.array([LOOKS["shape"].index(word) for word in words["shape"]])[shape],
        "seed": keys,
    }


def draw_scenes(keys: Bits, objects: int, words: Words, visible_pixels: VisiblePixels) -> Scenes:
    """Draw a scene from each random stream by CLEVR's rules.

    Args:
        keys: Keys of the streams [n].
        objects: Number of objects in each scene.
        words: Possible words of each attribute.
        visible_pixels: Function that counts the pixels of each object; hidden objects are placed again.
    """
    # Looks, rotations, camera and lamps are drawn once. Positions are redrawn, all together, until the objects keep
    # their distance, one clearly lies to the right of the other and one clearly in front, and each shows 25 pixels.
    # Were whole scenes redrawn, there would be too few small objects.
    n, each = len(keys), np.arange(objects)

    def draw_uniform(slots: NDArray[Any], low: NDArray[Any] | float, high: NDArray[Any] | float) -> Floats:
        u = random_uniforms(random_bits(keys[:, None], slots))
        return (low + (np.asarray(high) - low) * u).astype(np.float32)

    def draw_jittered(slot: int, centre: tuple[float, ...], jitter: float) -> Floats:
        middle = np.array(centre)
        return draw_uniform(slot + np.arange(3), middle - jitter, middle + jitter)

    looks = [
        random_choices(random_bits(keys[:, None], _LOOK_SLOT + 4 * each + column), len(some))
        for column, some in enumerate(words.values())
    ]
    lamps = {name: draw_jittered(_LAMP_SLOT + 3 * i, LAMPS[name], _LAMP_JITTER) for i, name in enumerate(LAMPS)}
    scenes = Scenes(
        looks=np.stack(looks, axis=-1),
        x=np.zeros((n, objects), np.float32),
        y=np.zeros((n, objects), np.float32),
        rotation=draw_uniform(_ROTATION_SLOT + each, 0.0, 2.0 * np.pi),
        camera=draw_jittered(_CAMERA_SLOT, CAMERA, _CAMERA_JITTER),
        **lamps,
        visible=np.zeros((n, objects), np.int64),
    )
    _place_objects(scenes, keys, words, visible_pixels)
    return scenes


def _place_objects(scenes: Scenes, keys: Bits, words: Words, visible_pixels: VisiblePixels) -> None:
    """Draw the positions of the objects until all are visible, and fill them in."""
    objects = scenes.x.shape[1]
    arrays = scene_arrays(scenes, words, keys)
    reach = footprint_radius(arrays["size"], arrays["shape"] == 2).sum(axis=1)
    right, front = ground_axes(scenes.camera)
    open_rows = np.arange(len(scenes))
    for attempt in range(_MOST_ATTEMPTS):
        slots = _POSITION_SLOT + 4 * attempt + np.arange(2 * objects)
        drawn = random_uniforms(random_bits(keys[open_rows, None], slots))
        drawn = (_REACH * (2.0 * drawn - 1.0)).astype(np.float32).astype(np.float64)
        x, y = drawn[:, :objects], drawn[:, objects:]
        good = np.ones(len(open_rows), np.bool_)
        if objects == 2:
            dx, dy = x[:, 0] - x[:, 1], y[:, 0] - y[:, 1]
            good &= np.sqrt(dx * dx + dy * dy) - reach[open_rows] >= _DISTANCE
            for axis in (right[open_rows], front[open_rows]):
                good &= np.abs(dx * axis[:, 0] + dy * axis[:, 1]) >= _MARGIN
        rows = open_rows[good]
        trial = {name: values[rows] for name, values in arrays.items()} | {"x": x[good], "y": y[good]}
        visible = visible_pixels(trial, VISIBLE_AT) if len(rows) else np.zeros((0, objects), np.int64)
        is_visible = (visible >= _VISIBLE).all(axis=1)
        rows = rows[is_visible]
        scenes.x[rows], scenes.y[rows], scenes.visible[rows] = (
            x[good][is_visible],
            y[good][is_visible],
            visible[is_visible],
        )
        open_rows = np.setdiff1d(open_rows, rows, assume_unique=True)
        if not len(open_rows):
            return
    raise AssertionError(f"no positions found for {len(open_rows)} scenes")


Bytes = NDArray[np.uint8]

RELATIONS = ("right", "left", "front", "behind")
"""By code; the opposite of code r is r ^ 1. "A left B": A is to the left of B as the camera sees it."""

NO_RELATION = 255
"""Code where neither of two opposite relations holds; drawn scenes always have one."""

_THRESHOLD = 0.2  # displacement from which a relation holds

# Slots of a scene's stream, between those of draw_scenes.
_FIRST_SLOT, _RELATION_SLOT = 32, 33


@dataclass(frozen=True)
class Captions:
    """Words, relations and order of objects in the captions of n scenes.

    Attributes:
        codes: Code [n, A] of each word among the values of its place, see :func:`attribute_words`.
        horizontal: Relation [n] of the scenes' first object to the second, right or left; none for single objects.
        depth: Likewise, front or behind.
        first: Which object [n] the caption begins with, 0 or 1.
    """

    codes: Bytes
    horizontal: Bytes
    depth: Bytes
    first: Bytes

    def __getitem__(self, rows: slice) -> "Captions":
        return Captions(self.codes[rows], self.horizontal[rows], self.depth[rows], self.first[rows])

    def vocabulary_codes(self, words: Words, objects: int) -> NDArray[np.uint16]:
        """Return the words of the captions as codes [n, T] in :func:`caption_vocabulary`."""
        index = {word: code for code, word in enumerate(caption_vocabulary(words, objects))}
        tables = [np.array([index[word] for word in values]) for values in attribute_words(words, objects).values()]
        columns = [table[self.codes[:, place]] for place, table in enumerate(tables)]
        return np.stack(columns, axis=1).astype(np.uint16)


def attribute_words(words: Words, objects: int) -> dict[str, list[str]]:
    """Return the possible words at each place of a caption, by the attribute that the place states."""
    if objects == 1:
        return {name: list(values) for name, values in words.items()}
    first, second = ({f"{name}_{i}": list(values) for name, values in words.items()} for i in (1, 2))
    return first | {"relation": list(RELATIONS)} | second


def caption_vocabulary(words: Words, objects: int) -> list[str]:
    """Return all words that captions of so many objects can have, each once."""
    return [word for values in words.values() for word in values] + (list(RELATIONS) if objects == 2 else [])


def find_relations(scenes: Scenes) -> tuple[Bytes, Bytes]:
    """Return two relations [n] of each scene's first object to its second: left or right, and front or behind."""
    dx, dy = (values[:, 0].astype(np.float64) - values[:, 1] for values in (scenes.x, scenes.y))
    found = []
    for code, axis in zip((0, 2), ground_axes(scenes.camera), strict=True):
        along = dx * axis[:, 0] + dy * axis[:, 1]
        found.append(np.where(along > _THRESHOLD, code, np.where(along < -_THRESHOLD, code + 1, NO_RELATION)))
    return found[0].astype(np.uint8), found[1].astype(np.uint8)


def draw_captions(scenes: Scenes, keys: Bits) -> Captions:
    """Draw one of the true captions of each scene from the scene's random stream."""
    n, objects = scenes.x.shape
    if objects == 1:
        no_relation = np.full(n, NO_RELATION, np.uint8)
        return Captions(scenes.looks[:, 0], no_relation, no_relation, np.zeros(n, np.uint8))
    horizontal, depth = find_relations(scenes)
    first = random_choices(random_bits(keys, _FIRST_SLOT), 2)
    prefers_depth = random_choices(random_bits(keys, _RELATION_SLOT), 2) == 1
    named_relation = np.where((prefers_depth | (horizontal == NO_RELATION)) & (depth != NO_RELATION), depth, horizontal)
    return compose_captions(scenes, horizontal, depth, first, named_relation)


def compose_captions(scenes: Scenes, horizontal: Bytes, depth: Bytes, first: Bytes, named_relation: Bytes) -> Captions:
    """Compose captions of scenes of two objects from the first object and the relation that each names.

    Args:
        scenes: The n scenes.
        horizontal: Relation of object 0 to object 1, right or left [n].
        depth: Likewise, front or behind [n].
        first: Object that the caption begins with, 0 or 1 [n].
        named_relation: Relation of object 0 to object 1 that the caption names [n].
    """
    rows = np.arange(len(scenes))
    relation = (named_relation ^ first)[:, None]  # the opposite holds of the second object to the first
    codes = np.concatenate([scenes.looks[rows, first], relation, scenes.looks[rows, 1 - first]], axis=1)
    return Captions(codes.astype(np.uint8), horizontal, depth, first.astype(np.uint8))

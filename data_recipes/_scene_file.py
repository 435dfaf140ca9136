"""Scenes from a JSON file of another program."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mmgen.core.errors import DataError, format_unknown_name
from mmgen.core.foreign import CannotReadError, read_file
from mmgen.core.plain_text import NotTextError, decode_text
from mmgen.data_recipes._scenes import (
    NO_RELATION,
    Captions,
    Scenes,
    Words,
    attribute_words,
    compose_captions,
    draw_captions,
    find_relations,
)
from mmgen.data_recipes._streams import Bits

_MOST_BYTES = 2**28  # some 400,000 scenes
_FLOOR = 100.0  # units; nothing that is farther away can be seen

Number = Annotated[float, Field(ge=-_FLOOR, le=_FLOOR, allow_inf_nan=False)]
Height = Annotated[float, Field(gt=0, le=_FLOOR, allow_inf_nan=False)]
Point = tuple[Number, Number, Height]


class _SceneObject(BaseModel):
    """Base of the JSON objects in a file of scenes; unknown keys are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Body(_SceneObject):
    """One object of a scene."""

    size: str
    colour: str
    material: str
    shape: str
    x: Number
    y: Number
    rotation_rad: Number


class _Lamps(_SceneObject):
    """Positions of the three lamps."""

    key: Point
    fill: Point
    back: Point


class _Scene(_SceneObject):
    """One scene: camera, lamps, objects and, if there is one, a caption."""

    camera: Point
    lights: _Lamps
    objects: Annotated[list[_Body], Field(min_length=1, max_length=2)]
    caption: str | None = None


@dataclass(frozen=True)
class SceneFile:
    """Scenes and captions from a JSON file.

    Attributes:
        scenes: All of them; ``visible`` is not known yet and 0.
        captions: The caption of each scene, None where one has to be drawn.
        sha256: Hash of the file, hexadecimal.
        path: The file.
    """

    scenes: Scenes
    captions: tuple[str | None, ...]
    sha256: str
    path: Path


def read_scene_file(path: Path, objects: int, words: Words) -> SceneFile:
    """Read scenes from a JSON file, and check their objects, words and positions.

    Args:
        path: The file.
        objects: Required number of objects in each scene.
        words: Allowed words of each attribute.

    Raises:
        DataError: The file is missing or malformed, or a scene does not fit.
    """
    # Each is ``{"camera": [x, y, z], "lights": {"key": [x, y, z], "fill": ..., "back": ...}, "objects": [...]}`` and
    # may have a ``"caption"``; an object is ``{"size": "large", "colour": "red", "material": "metal", "shape": "cube",
    # "x": 0.5, "y": -1, "rotation_rad": 0.3}``.
    try:
        content = read_file(path, _MOST_BYTES)
    except CannotReadError as error:
        raise DataError(f"cannot read the scenes in {path}: {error}; check the path") from None
    try:
        entries = TypeAdapter(list[_Scene]).validate_json(decode_text(content))
    except NotTextError as error:
        raise DataError(f"{path} holds no scenes: {error}; docs/two-objects.md shows the format") from None
    except ValidationError as error:
        raise DataError(
            f"{path} holds no scenes: {_describe_first_error(error)}; docs/two-objects.md shows the format"
        ) from None
    if not entries:
        raise DataError(f"{path} holds no scenes: its list is empty; give at least one")
    for number, scene in enumerate(entries):
        if len(scene.objects) != objects:
            raise DataError(
                f"{path}: scene {number} has {len(scene.objects)} object(s), expected {objects}; "
                "all scenes of a file have as many as --objects says"
            )
        if max(abs(scene.camera[0]), abs(scene.camera[1])) < 1e-3:
            raise DataError(f"{path}: the camera of scene {number} is straight above the origin; move it to a side")

    def to_array(rows: Sequence[Any]) -> NDArray[np.float32]:
        return np.array(rows, np.float32)

    looks = [
        [_appearance_codes(thing, number, words, path) for thing in scene.objects]
        for number, scene in enumerate(entries)
    ]
    scenes = Scenes(
        looks=np.array(looks, np.uint8),
        x=to_array([[thing.x for thing in scene.objects] for scene in entries]),
        y=to_array([[thing.y for thing in scene.objects] for scene in entries]),
        rotation=to_array([[thing.rotation_rad for thing in scene.objects] for scene in entries]),
        camera=to_array([scene.camera for scene in entries]),
        key=to_array([scene.lights.key for scene in entries]),
        fill=to_array([scene.lights.fill for scene in entries]),
        back=to_array([scene.lights.back for scene in entries]),
        visible=np.zeros((len(entries), objects), np.int64),
    )
    return SceneFile(scenes, tuple(scene.caption for scene in entries), hashlib.sha256(content).hexdigest(), path)


def _describe_first_error(error: ValidationError) -> str:
    """Describe pydantic's first error: ``scene 3, objects.0.x: field required``."""
    first, *others = error.errors(include_url=False)
    place = [str(part) for part in first["loc"]]
    where = f"scene {place[0]}{', ' if place[1:] else ''}{'.'.join(place[1:])}: " if place else ""
    return f"{where}{first['msg'][0].lower()}{first['msg'][1:]}" + (f" (and {len(others)} more)" if others else "")


def _appearance_codes(body: _Body, number: int, words: Words, path: Path) -> list[int]:
    codes = []
    for name, values in words.items():
        word = getattr(body, name)
        if word not in values:
            raise DataError(f"{path}: scene {number}: {format_unknown_name(name, word, values)}")
        codes.append(values.index(word))
    return codes


def caption_scenes(file: SceneFile, words: Words, keys: Bits) -> Captions:
    """Return a caption of each scene: the one in the file, else a drawn one; raise DataError for a false caption."""
    objects = file.scenes.x.shape[1]
    if objects == 2:
        horizontal, depth = find_relations(file.scenes)
        if unrelated := np.flatnonzero((horizontal == NO_RELATION) & (depth == NO_RELATION)).tolist():
            raise DataError(
                f"{file.path}: in scene {unrelated[0]} both objects are at one place; move them 0.2 units apart"
            )
    drawn = draw_captions(file.scenes, keys)
    codes, first = drawn.codes.copy(), drawn.first.copy()
    places = list(attribute_words(words, objects).values())
    for number, caption in enumerate(file.captions):
        if caption is None:
            continue
        true = _true_captions(file.scenes[number : number + 1])
        words_of_caption = caption.split()
        matching = [one for one in true if [places[i][code] for i, code in enumerate(one.codes[0])] == words_of_caption]
        if not matching:
            raise DataError(f"{file.path}: the caption of scene {number} is not true of it: {caption[:200]!r}")
        codes[number], first[number] = matching[0].codes[0], matching[0].first[0]
    return Captions(codes, drawn.horizontal, drawn.depth, first)


def _true_captions(scene: Scenes) -> list[Captions]:
    """Return all true captions of one scene: two beginnings times at most two relations."""
    if scene.x.shape[1] == 1:
        return [draw_captions(scene, np.zeros(1, np.uint64))]
    horizontal, depth = find_relations(scene)
    holding = [relation for relation in (horizontal, depth) if relation[0] != NO_RELATION]
    first = (np.zeros(1, np.uint8), np.ones(1, np.uint8))
    return [compose_captions(scene, horizontal, depth, one, relation) for one in first for relation in holding]

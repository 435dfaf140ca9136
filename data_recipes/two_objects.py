"""Two Objects: CLEVR-like scenes of two objects, with captions of nine words.

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Section 5.2 ("CK")
    CLEVR: A Diagnostic Dataset for Compositional Language and Elementary Visual Reasoning (Johnson, Hariharan, van der
    Maaten, Fei-Fei, Zitnick, Girshick, 2016), arXiv:1612.06890
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from mmgen.core.errors import format_unknown_name
from mmgen.core.progress import Progress, Work
from mmgen.data_recipes._base import Recipe, Rows, Workers, check_dataset_size, chunk_indices, map_in_order, write_rows
from mmgen.data_recipes._scene_file import SceneFile, caption_scenes, read_scene_file
from mmgen.data_recipes._scenes import (
    LAMPS,
    LOOKS,
    RELATIONS,
    VISIBLE_AT,
    Captions,
    Scenes,
    Words,
    attribute_words,
    caption_vocabulary,
    draw_captions,
    draw_scenes,
    scene_arrays,
)
from mmgen.data_recipes._streams import Parts, random_order, split_by_group, stream_keys

__all__ = ["TwoObjects"]

Factor = tuple[str, Any, str, str, tuple[int, ...]]
"""Name, data type, unit, meaning and further shape of a generative factor."""


def _parse_words(words: Any, info: ValidationInfo) -> Any:
    """Parse a choice of words from a list or a text with commas, and return it in the order of all words."""
    allowed = LOOKS[str(info.field_name).removesuffix("s")]
    some = [word.strip() for word in words.split(",")] if isinstance(words, str) else words
    if not isinstance(some, Sequence) or not some or not all(isinstance(word, str) for word in some):
        raise PydanticCustomError("words", "expected some of " + ",".join(allowed))
    for word in some:
        if word not in allowed:
            raise PydanticCustomError("words", format_unknown_name("word", word, allowed))
    return tuple(word for word in allowed if word in some)


SomeWords = Annotated[tuple[str, ...], BeforeValidator(_parse_words)]


class TwoObjects(Recipe):
    """Scenes of two objects that do not hide each other, with a true sentence about each.

    Attributes and caption say the same: nine words, ``size colour material shape relation size colour material shape``.
    Which object comes first, and which of the two true relations is said, is drawn. Every look is equally likely.
    """

    objects: Literal[1, 2] = 2
    """Objects in each scene. One object has a caption of four words, without relation."""

    size: Annotated[int, Field(ge=16, le=1024)] = 112
    """Height and width of the images in pixels."""

    render: Annotated[Path | None, Field(exclude=True)] = None
    """JSON file of scenes to render, instead of drawn ones."""

    number: Annotated[int, Field(ge=1)] = 100_000
    """Scenes to draw."""

    colours: SomeWords = LOOKS["colour"]
    """Colours of objects."""

    materials: SomeWords = LOOKS["material"]
    """Materials of objects."""

    shapes: SomeWords = LOOKS["shape"]
    """Shapes of objects."""

    masks: bool = False
    """Store which object each pixel shows."""

    samples: Annotated[int, Field(ge=1, le=65_536)] = 64
    """Light paths per pixel of an object."""

    name: ClassVar[str] = "two-objects"

    @field_validator("number")
    @classmethod
    def _check_number(cls, number: int, info: ValidationInfo) -> int:
        if info.data.get("render") is not None:
            raise PydanticCustomError("number", "leave it out with render, which renders every scene of its file")
        return number

    @property
    def words(self) -> Words:
        """Words for sizes, colours, materials and shapes that objects of this dataset can have."""
        return {
            "size": LOOKS["size"],
            "colour": self.colours,
            "material": self.materials,
            "shape": self.shapes,
        }

    def setup_work(self) -> Work[Any] | None:
        if self.render is not None:
            read_scene_file(self.render, self.objects, self.words)  # a bad file is refused before anything long
        from mmgen.data_recipes._clevr import compile_kernels

        return compile_kernels()

    def make_rows(self, indices: NDArray[np.int64], seed: int, from_file: tuple[Scenes, Captions] | None) -> Rows:
        """Make the images ``indices`` [n] of scenes from the file or drawn ones in stored form; runs in a worker."""
        from mmgen.data_recipes import _clevr

        keys = stream_keys(seed, self.name, indices)
        noise = stream_keys(seed, f"{self.name} noise", indices)
        if from_file is None:
            scenes = draw_scenes(keys, self.objects, self.words, _clevr.visible_pixels)
            captions = draw_captions(scenes, keys)
        else:
            scenes, captions = from_file
            visible = _clevr.visible_pixels(scene_arrays(scenes, self.words, noise), VISIBLE_AT)
            scenes = replace(scenes, visible=visible)
        arrays = scene_arrays(scenes, self.words, noise)
        factors = self._factor_values(scenes, captions)
        if self.masks:
            factors["mask"] = _clevr.object_masks(arrays, self.size)
        words = captions.vocabulary_codes(self.words, self.objects)
        images = _clevr.render(arrays, self.size, self.samples)
        return Rows({"image": images, "attributes": captions.codes, "text": words}, factors)

    def make(
        self, path: Path, *, seed: int = 0, workers: Workers = None, chunk: int | None = None, command: str = ""
    ) -> Work[Path]:
        file = None if self.render is None else read_scene_file(self.render, self.objects, self.words)
        number = self.number if file is None else len(file.scenes)
        check_dataset_size(number, 3 * self.size**2, chunk or 1)
        captions = file and caption_scenes(file, self.words, stream_keys(seed, self.name, np.arange(number)))
        step = chunk or self._default_chunk()

        def chunk_arguments() -> Iterator[tuple[Any, ...]]:
            for indices in chunk_indices(number, step):
                rows = slice(indices[0], indices[-1] + 1)
                from_file = (file.scenes[rows], captions[rows]) if file and captions else None
                yield indices, seed, from_file

        def write_dataset() -> Generator[Progress, None, Path]:
            from mmgen.artifacts import DatasetWriter

            attributes = attribute_words(self.words, self.objects)
            settings = self._recorded_settings(number, file)
            with DatasetWriter(path, size=number, settings=settings, seed=seed, command=command) as writer:
                writer.add_image("image", (3, self.size, self.size), "bytes")
                writer.add_attributes("attributes", attributes)
                writer.add_text(
                    "text", caption_vocabulary(self.words, self.objects), len(attributes), tuple(attributes)
                )
                for name, dtype, unit, meaning, shape in self._factors():
                    writer.add_factor(name, dtype, unit, meaning, shape)
                codes = yield from write_rows(writer, map_in_order(self.make_rows, chunk_arguments(), workers))
                for scheme, (meaning, parts) in self._split_schemes(codes, seed).items():
                    writer.add_splits(scheme, **parts, meaning=meaning)
            return path

        return Work(f"making {self.name}", number, "image", write_dataset)

    def _default_chunk(self) -> int:
        """Return the number of images that a worker renders in about a second."""
        seconds = 0.002 + 0.02 * (self.size / VISIBLE_AT) ** 2 * (self.samples / 64)
        return int(np.clip(1.0 / seconds, 1, 256))

    def _recorded_settings(self, number: int, file: SceneFile | None) -> dict[str, Any]:
        """Return the settings to record in the dataset file."""
        # "renderer" is what files of 0.1 say too: the same scenes have the same content id.
        settings = {"recipe": self.name, "renderer": "numba", **self.model_dump(mode="json"), "number": number}
        return settings if file is None else settings | {"scenes_sha256": file.sha256}

    def _factors(self) -> list[Factor]:
        """Return all generative factors of a scene; objects are a and b, in the order in which they were drawn."""
        codes = {name: ", ".join(f"{i} {word}" for i, word in enumerate(values)) for name, values in self.words.items()}
        factors: list[Factor] = []
        for letter in "ab"[: self.objects]:
            of = f"of object {letter}"
            factors += [(f"{name}_{letter}", np.uint8, "", f"{name} {of}: {codes[name]}", ()) for name in codes]
            factors += [(f"{axis}_{letter}", np.float32, "", f"{axis} {of}'s centre", ()) for axis in "xy"]
            factors.append((f"rotation_{letter}", np.float32, "radian", f"rotation {of} about the vertical", ()))
            meaning = f"pixels that show object {letter} in an image of {VISIBLE_AT} x {VISIBLE_AT}"
            factors.append((f"visible_{letter}", np.uint32, "pixel", meaning, ()))
        for name in ("camera", *LAMPS):
            what = "the camera" if name == "camera" else f"the {name} lamp"
            factors += [(f"{name}_{axis}", np.float32, "", f"{axis} of {what}", ()) for axis in "xyz"]
        if self.objects == 2:
            meanings = [f"{code} {word}" for code, word in enumerate(RELATIONS)]
            for name, two in (("horizontal", meanings[:2]), ("depth", meanings[2:])):
                meaning = f"where a lies as seen from b: {', '.join(two)}, 255 neither"
                factors.append((f"relation_{name}", np.uint8, "", meaning, ()))
            factors.append(("first", np.uint8, "", "object that the caption names first: 0 a, 1 b", ()))
        if self.masks:
            meaning = "what each pixel's middle shows: 0 floor, 1 object a" + ", 2 object b" * (self.objects == 2)
            factors.append(("mask", np.uint8, "", meaning, (self.size, self.size)))
        return factors

    def _factor_values(self, scenes: Scenes, captions: Captions) -> dict[str, NDArray[Any]]:
        values: dict[str, NDArray[Any]] = {}
        for index, letter in enumerate("ab"[: self.objects]):
            for column, name in enumerate(self.words):
                values[f"{name}_{letter}"] = scenes.looks[:, index, column]
            for name in ("x", "y", "rotation"):
                values[f"{name}_{letter}"] = getattr(scenes, name)[:, index]
            values[f"visible_{letter}"] = scenes.visible[:, index].astype(np.uint32)
        for name in ("camera", *LAMPS):
            for column, axis in enumerate("xyz"):
                values[f"{name}_{axis}"] = getattr(scenes, name)[:, column]
        if self.objects == 2:
            values["relation_horizontal"], values["relation_depth"] = captions.horizontal, captions.depth
            values["first"] = captions.first
        return values

    def _split_schemes(self, codes: NDArray[np.uint8], seed: int) -> dict[str, tuple[str, Parts]]:
        n = len(codes)
        iid = split_by_group(np.arange(n), n, seed, "iid", train=0.9, val=0.05)
        schemes = {"iid": ("90/5/5 % of the scenes; CK's held-out tenth is halved", iid)}
        part = _hold_out_combinations([len(self.words[name]) for name in ("colour", "material", "shape")], seed)
        if part is not None:
            per_object = np.stack([codes[:, 5 * i + 1 : 5 * i + 4].astype(np.int64) for i in range(self.objects)])
            of_scene = part[tuple(np.moveaxis(per_object, -1, 0))].max(axis=0)
            meaning = (
                f"{(part == 2).sum()} combinations of colour, material and shape occur in test only, "
                f"{(part == 1).sum()} in val and test only, none of these in train"
            )
            parts = {name: np.flatnonzero(of_scene == i) for i, name in enumerate(("train", "val", "test"))}
            schemes["compositional"] = (meaning, parts)
        return schemes


def _hold_out_combinations(sizes: Sequence[int], seed: int) -> NDArray[np.uint8] | None:
    """Return the part of each combination of colour, material and shape (0 train, 1 val, 2 test); None if too few."""
    colours, forms = sizes[0], sizes[1] * sizes[2]
    held_out = min(colours, forms)
    if held_out < 2:
        return None
    part = np.zeros((colours, forms), np.uint8)
    chosen = (
        random_order(seed, "split compositional colours", colours),
        random_order(seed, "split compositional looks", forms),
    )
    n_val = max(1, held_out // 3)
    part[chosen[0][:held_out], chosen[1][:held_out]] = [1] * n_val + [2] * (held_out - n_val)
    return part.reshape(sizes)

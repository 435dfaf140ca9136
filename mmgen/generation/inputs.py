"""Checks of pictures, codes and words from Python against the model's data.

Inputs of another size, range or kind are refused: a density of grey levels under a model of black and white has no
meaning, and a code beyond an attribute's values belongs to another attribute.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import torch
from PIL import Image
from pydantic import SkipValidation
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.core.notation import UNKNOWN
from mmgen.modalities import ROWS
from mmgen.posteriors import tensor_from
from mmgen.settings.arguments import format_value

if TYPE_CHECKING:
    from mmgen.modalities import Description
    from mmgen.modalities.attributes import AttributesDescription
    from mmgen.modalities.image import ImageDescription
    from mmgen.modalities.text import TextDescription

__all__ = [
    "Numbers",
    "Pictures",
    "check_draw_memory",
    "checked_codes",
    "checked_numbers",
    "checked_pictures",
    "checked_values",
    "checked_words",
]

Numbers = Annotated[Tensor | np.ndarray, SkipValidation]
"""Numbers: a tensor, an array, or lists of numbers. Whoever takes them checks them, by the functions below."""

Pictures = Annotated[Tensor | np.ndarray | Image.Image | Sequence[Image.Image], SkipValidation]
"""Images [B, C, H, W] in [0, 1], or pictures of Pillow that have the size of the model's."""


def _sizes(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "no size"


def _of_pillow(what: str, images: Any, info: "ImageDescription") -> Any:
    """Convert Pillow's pictures to bytes [B, C, H, W]; return anything else unchanged."""
    listed = [images] if isinstance(images, Image.Image) else images
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(one, Image.Image) for one in listed):
        return images
    channels, height, width = info.shape
    for one in listed:
        if one.mode.startswith(("I", "F")):  # Pillow cuts them off at 0 and 255 without a word
            raise UsageError(
                f"{what} got a picture of mode {one.mode}, expected 8 bits a channel; divide its levels by the largest "
                "possible and give an array [B, C, H, W] in [0, 1]"
            )
        if one.size != (width, height):
            raise UsageError(
                f"{what} got a picture of {one.size[0]} x {one.size[1]} pixels, expected {width} x {height}; resize it"
            )
    pixels = np.stack([np.asarray(one.convert("L" if channels == 1 else "RGB")) for one in listed])
    planes = pixels[:, None] if channels == 1 else pixels.transpose(0, 3, 1, 2)
    return torch.from_numpy(np.ascontiguousarray(planes)).float() / 255


def checked_pictures(info: "ImageDescription", images: Any) -> Tensor:
    """Check images and convert them to float32 [B, C, H, W] in [0, 1]; only 0 and 1 for a black-and-white model.

    Args:
        info: The image modality.
        images: In [0, 1], bytes as a dataset has them, or pictures of Pillow.

    Raises:
        UsageError: They have another size than the model's, or other values.
    """
    name, expected = info.name, f"[B, {', '.join(map(str, info.shape))}]"
    pixels = tensor_from(name, _of_pillow(name, images, info), f"pictures {expected}")
    if pixels.dim() != 4 or tuple(pixels.shape[1:]) != tuple(info.shape):
        got = _sizes(pixels.shape[1:]) if pixels.dim() == 4 else f"an array {list(pixels.shape)}"
        raise UsageError(
            f"got {name} of {got} (channels x height x width), expected {_sizes(info.shape)} of each of B, "
            f"{expected}; resize them"
        )
    if not len(pixels):
        raise UsageError(f"{name} got no picture, expected at least one, {expected}")
    return _in_range(pixels, info)


def _in_range(pixels: Tensor, info: "ImageDescription") -> Tensor:
    name = info.name
    if pixels.dtype == torch.uint8 and info.layout == "bytes":
        return pixels.float() / 255
    if info.layout == "probabilities" and pixels.dtype == torch.uint8 and (pixels > 1).any():
        raise UsageError(
            f"{name} got probabilities of white, as Dataset.read_image gives them, expected pixels of 0 and 1; "
            "use Dataset.read_pixels, which draws them"
        )
    pixels = pixels.float()
    if not pixels.isfinite().all():
        raise UsageError(f"{name} got values that are not finite, expected 0 to 1")
    if not ((pixels >= 0) & (pixels <= 1)).all():
        raise UsageError(
            f"{name} got values from {float(pixels.min()):g} to {float(pixels.max()):g}, expected 0 to 1, or uint8 "
            "as Dataset.read_image gives them"
        )
    if info.layout != "bytes" and not (grey := (pixels > 0) & (pixels < 1)).logical_not().all():
        raise UsageError(
            f"{name} got the grey level {float(pixels[grey][0]):g}, expected 0 and 1 alone, since the model was "
            "trained on black and white; make them so, such as by images > 0.5"
        )
    return pixels


def checked_values(info: "Description", values: Any) -> Tensor:
    """Check values [B, *event_shape] of a modality of any kind, of at least one example.

    Raises:
        UsageError: They have another shape, are not finite, or are no such pictures.
    """
    from mmgen.modalities.image import ImageDescription

    return checked_pictures(info, values) if isinstance(info, ImageDescription) else checked_numbers(info, values)


def checked_numbers(info: "Description", values: Any) -> Tensor:
    """Check values [B, *event_shape] of a modality without pictures: finite real numbers, or bytes as stored.

    Raises:
        UsageError: They are something else.
    """
    shape, stored = (list(info.event_shape) if info.by_rows else None), info.arrays().get(ROWS)
    expected = _listed("B", *(shape or []))
    numbers = tensor_from(info.name, values, f"real numbers {expected}")
    as_stored = stored is not None and numbers.dtype == torch.uint8 and tuple(numbers.shape[1:]) == tuple(stored.shape)
    if not as_stored:
        if stored is not None and str(numbers.dtype) == f"torch.{stored.dtype}" and not numbers.is_floating_point():
            raise UsageError(
                f"{info.name} got rows as they are stored, expected real numbers as Dataset.read_values gives them"
            )
        numbers = numbers.float()
        if numbers.dim() < 1 or not len(numbers) or (shape is not None and list(numbers.shape[1:]) != shape):
            raise UsageError(f"{info.name} got an array {list(numbers.shape)}, expected {expected}, B at least 1")
    if not numbers.isfinite().all():
        raise UsageError(f"{info.name} got values that are not finite; leave such examples out")
    return numbers


def _listed(*sizes: object) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _codes(what: str, value: Any, width: int, rows: int | None, kind: str) -> Tensor:
    """Check and convert whole numbers to int64 [B, width]."""
    expected = _listed("B" if rows is None else rows, width)
    codes = tensor_from(what, value, f"{kind}, whole numbers {expected}")
    if codes.dtype == torch.bool or codes.is_floating_point():
        raise UsageError(f"{what} got {format_value(codes)}, expected {kind}, whole numbers {expected}")
    if codes.dim() != 2 or codes.shape[1] != width or len(codes) != (len(codes) if rows is None else rows):
        raise UsageError(f"{what} got an array {list(codes.shape)}, expected {expected}")
    if not len(codes):
        raise UsageError(f"{what} got none, expected at least one row of {kind}, {expected}")
    return codes.long().cpu()


def checked_codes(what: str, value: Any, info: "AttributesDescription", rows: int | None = None) -> np.ndarray:
    """Return codes of attributes uint8 [B, A]: each a value of its attribute, or 255, unknown.

    Args:
        what: What it is called in messages.
        value: The codes.
        info: The attributes.
        rows: B, where it is known.

    Raises:
        UsageError: They are no such codes; names the first that is none.
    """
    codes = _codes(what, value, len(info.names), rows, "codes of attributes").numpy()
    wrong = ((codes < 0) | (codes >= np.array(info.sizes))) & (codes != UNKNOWN)
    if wrong.any():
        row, attribute = (int(place) for place in np.argwhere(wrong)[0])
        raise UsageError(
            f"{what} got {codes[row, attribute]} for attribute '{info.names[attribute]}', expected 0 to "
            f"{info.sizes[attribute] - 1}, or {UNKNOWN} for unknown"
        )
    return codes.astype(np.uint8)


def checked_words(what: str, value: Any, info: "TextDescription", rows: int | None = None) -> np.ndarray:
    """Return codes of words int64 [B, T]; the size of the vocabulary means "no word", at the end of a sentence.

    Raises:
        UsageError: They are no such codes.
    """
    codes = _codes(what, value, info.length, rows, "codes of words").numpy()
    if ((codes < 0) | (codes > info.padding)).any() or info.fault(codes):
        raise UsageError(
            f"{what} got codes from {codes.min()} to {codes.max()}, expected words, 0 to {info.padding - 1}, and after "
            f"the last of them {info.padding}, for no word"
        )
    return codes


def check_draw_memory(described: Sequence["Description"], count: int, of: int, what: str, copies: int = 1) -> None:
    """Refuse a number of draws whose values do not fit into memory.

    Args:
        described: The modalities that are drawn.
        count: Values of each.
        of: How many descriptions, or examples, there are.
        what: Name of these, for messages.
        copies: How many floats of each number are kept.

    Raises:
        UsageError: There is less memory.
    """
    numbers = sum(math.prod(each.event_shape) for each in described)
    check_memory(4 * copies * numbers * count * of, f"{count:,} images of {of:,} {what}", "use a smaller number (-n)")

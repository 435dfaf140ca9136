"""Checks that arguments of Python functions (pictures, codes, words) fit the data of the model.

Inputs of another size, range or kind are refused: grey levels have no density under a model of black and white, and a
code beyond an attribute's values would be read as a value of another attribute.
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


Numbers = Annotated[Tensor | np.ndarray, SkipValidation]
"""A tensor, an array, or lists of numbers; unchecked until a function of this module validates them."""

Pictures = Annotated[Tensor | np.ndarray | Image.Image | Sequence[Image.Image], SkipValidation]
"""Images [B, C, H, W] in [0, 1], or Pillow images of the model's size."""


def _format_shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "no size"


def _tensor_of_pillow(name: str, images: Any, info: "ImageDescription") -> Any:
    """Convert Pillow images to a tensor [B, C, H, W] in [0, 1]; return anything else unchanged."""
    listed = [images] if isinstance(images, Image.Image) else images
    if not isinstance(listed, list | tuple) or not listed or not all(isinstance(one, Image.Image) for one in listed):
        return images
    channels, height, width = info.shape
    for one in listed:
        if one.mode.startswith(("I", "F")):  # Pillow would clip them to 0 and 255
            raise UsageError(
                f"{name} got a picture of mode {one.mode}, expected 8 bits a channel; divide its levels by the largest "
                "possible and give an array [B, C, H, W] in [0, 1]"
            )
        if one.size != (width, height):
            raise UsageError(
                f"{name} got a picture of {one.size[0]} x {one.size[1]} pixels, expected {width} x {height}; resize it"
            )
    pixels = np.stack([np.asarray(one.convert("L" if channels == 1 else "RGB")) for one in listed])
    planes = pixels[:, None] if channels == 1 else pixels.transpose(0, 3, 1, 2)
    return torch.from_numpy(np.ascontiguousarray(planes)).float() / 255


def validate_pictures(info: "ImageDescription", images: Any) -> Tensor:
    """Check images and convert them to float32 [B, C, H, W] in [0, 1], or to 0 and 1 for a black-and-white model.

    Args:
        info: The image modality.
        images: Numbers in [0, 1], bytes as in a dataset, or Pillow images.

    Raises:
        UsageError: The size or the values do not fit the modality.
    """
    name, expected = info.name, f"[B, {', '.join(map(str, info.shape))}]"
    pixels = tensor_from(name, _tensor_of_pillow(name, images, info), f"pictures {expected}")
    if pixels.dim() != 4 or tuple(pixels.shape[1:]) != tuple(info.shape):
        got = _format_shape(pixels.shape[1:]) if pixels.dim() == 4 else f"an array {list(pixels.shape)}"
        raise UsageError(
            f"got {name} of {got} (channels x height x width), expected {_format_shape(info.shape)} for each example, "
            f"{expected}; resize them"
        )
    if not len(pixels):
        raise UsageError(f"{name} got no picture, expected at least one, {expected}")
    return _scale_pixels(pixels, info)


def _scale_pixels(pixels: Tensor, info: "ImageDescription") -> Tensor:
    """Return pixels as float in [0, 1]; refuse other values."""
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
        raise UsageError(f"{name} got values that are not finite, expected 0 to 1; leave such images out")
    if not ((pixels >= 0) & (pixels <= 1)).all():
        raise UsageError(
            f"{name} got values from {float(pixels.min()):g} to {float(pixels.max()):g}, expected 0 to 1, or uint8 "
            "as Dataset.read_image gives them"
        )
    if info.layout != "bytes" and not (grey := (pixels > 0) & (pixels < 1)).logical_not().all():
        raise UsageError(
            f"{name} got the grey level {float(pixels[grey][0]):g}, expected only 0 and 1, since the model was "
            "trained on black and white; convert the images, for example by images > 0.5"
        )
    return pixels


def validate_values(info: "Description", values: Any) -> Tensor:
    """Check values [B, *event_shape], B at least 1, of a modality of any kind, and convert them to float32.

    Raises:
        UsageError: The shape or the values do not fit the modality.
    """
    from mmgen.modalities.image import ImageDescription

    return validate_pictures(info, values) if isinstance(info, ImageDescription) else validate_numbers(info, values)


def validate_numbers(info: "Description", values: Any) -> Tensor:
    """Check values [B, *event_shape] of a modality other than images: finite real numbers, or bytes as stored.

    Raises:
        UsageError: The shape or the values do not fit the modality.
    """
    shape, stored = (list(info.event_shape) if info.has_rows else None), info.arrays().get(ROWS)
    expected = _format_sizes("B", *(shape or []))
    numbers = tensor_from(info.name, values, f"real numbers {expected}")
    as_stored = stored is not None and numbers.dtype == torch.uint8 and tuple(numbers.shape[1:]) == tuple(stored.shape)
    if not as_stored:
        if stored is not None and str(numbers.dtype) == f"torch.{stored.dtype}" and not numbers.is_floating_point():
            raise UsageError(
                f"{info.name} got rows in their stored form, expected real numbers; read them with Dataset.read_values"
            )
        numbers = numbers.float()
        if numbers.dim() < 1 or not len(numbers) or (shape is not None and list(numbers.shape[1:]) != shape):
            raise UsageError(
                f"{info.name} got an array {list(numbers.shape)}, expected {expected}, B at least 1; reshape it"
            )
    if not numbers.isfinite().all():
        raise UsageError(f"{info.name} got values that are not finite, expected finite ones; leave such examples out")
    return numbers


def _format_sizes(*sizes: object) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _validate_codes(name: str, codes: Any, width: int, rows: int | None, noun: str) -> Tensor:
    """Check an array of whole numbers and convert it to int64 [B, width]."""
    expected = _format_sizes("B" if rows is None else rows, width)
    codes = tensor_from(name, codes, f"{noun}, whole numbers {expected}")
    if codes.dtype == torch.bool or codes.is_floating_point():
        raise UsageError(f"{name} got {format_value(codes)}, expected {noun}, whole numbers {expected}")
    if codes.dim() != 2 or codes.shape[1] != width or len(codes) != (len(codes) if rows is None else rows):
        raise UsageError(f"{name} got an array {list(codes.shape)}, expected {expected}; reshape it")
    if not len(codes):
        raise UsageError(f"{name} got no rows, expected {noun} {expected}, at least one row")
    return codes.long().cpu()


def validate_codes(name: str, codes: Any, info: "AttributesDescription", rows: int | None = None) -> np.ndarray:
    """Check codes of attributes and convert them to uint8 [B, A], 255 for unknown.

    Args:
        name: Name of the argument, for messages.
        codes: The codes.
        info: The attributes.
        rows: Expected B; None for any.

    Raises:
        UsageError: The shape differs, or a code is no value of its attribute.
    """
    codes = _validate_codes(name, codes, len(info.names), rows, "codes of attributes").numpy()
    wrong = ((codes < 0) | (codes >= np.array(info.sizes))) & (codes != UNKNOWN)
    if wrong.any():
        row, attribute = (int(place) for place in np.argwhere(wrong)[0])
        raise UsageError(
            f"{name} got {codes[row, attribute]} for attribute '{info.names[attribute]}', expected 0 to "
            f"{info.sizes[attribute] - 1}, or {UNKNOWN} for unknown"
        )
    return codes.astype(np.uint8)


def validate_words(name: str, codes: Any, info: "TextDescription", rows: int | None = None) -> np.ndarray:
    """Check codes of words and convert them to int64 [B, T]; the size of the vocabulary means "no word".

    Raises:
        UsageError: The shape differs, a code is no word, or a word follows "no word".
    """
    codes = _validate_codes(name, codes, info.length, rows, "codes of words").numpy()
    if ((codes < 0) | (codes > info.padding)).any() or info.find_fault(codes):
        raise UsageError(
            f"{name} got codes from {codes.min()} to {codes.max()}, expected codes of words, 0 to {info.padding - 1}, "
            f"then only {info.padding}, which means no word"
        )
    return codes


def check_draw_memory(
    modalities: Sequence["Description"], count: int, groups: int, group_noun: str, copies: int = 1
) -> None:
    """Raise an error if the values of ``groups`` times ``count`` draws do not fit into memory.

    Args:
        modalities: The modalities that are drawn.
        count: Draws for each group.
        groups: Number of descriptions or pictures that are drawn for.
        group_noun: Their noun in messages: "descriptions" or "pictures".
        copies: Floats kept for each number.

    Raises:
        UsageError: The draws need more memory than there is.
    """
    numbers = sum(math.prod(each.event_shape) for each in modalities)
    check_memory(
        4 * copies * numbers * count * groups,
        f"{count:,} images of {groups:,} {group_noun}",
        "use a smaller number (-n)",
    )

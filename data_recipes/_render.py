"""From source digits to images: rotate, resize, paste, binarise, pack."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmgen.data_recipes._streams import Bits, bits

__all__ = ["PIXEL_SLOT", "Patch", "binarise", "pack", "paste", "shape_digits", "stack"]

PIXEL_SLOT = 64
"""Slots of an image's stream from here on binarise its pixels; those before are for the recipe's own draws."""

Patch = Image.Image
"""A transformed digit, cut to its ink."""

Bytes = NDArray[np.uint8]


def shape_digits(digits: Bytes, factor: NDArray[np.float64], angle: NDArray[np.float32]) -> list[Patch]:
    """Rotate and resize digits, and cut them to their ink."""
    n, height, width = digits.shape
    # Cutting digits from one tall image is cheaper than making n images from arrays.
    tall = Image.frombytes("L", (width, height * n), digits.tobytes())
    bicubic = Image.Resampling.BICUBIC
    patches = []
    for row, (scale, degrees) in enumerate(zip(factor.tolist(), angle.tolist(), strict=True)):
        digit = tall.crop((0, row * height, width, (row + 1) * height))
        if degrees:
            # Pillow turns counter-clockwise for positive angles.
            digit = digit.rotate(-degrees, bicubic, expand=True)
        size = (max(1, round(digit.width * scale)), max(1, round(digit.height * scale)))
        if size != digit.size:
            digit = digit.resize(size, bicubic)
        patches.append(digit.crop(digit.getbbox() or (0, 0, 1, 1)))  # a digit without ink stays one black pixel
    return patches


def paste(patches: list[Patch], left: NDArray[np.int64], top: NDArray[np.int64], size: int) -> Bytes:
    """Paste each patch on a black canvas with its upper left pixel at (left, top): uint8 [n, size, size]."""
    tall = Image.new("L", (size, size * len(patches)))
    for row, (patch, x, y) in enumerate(zip(patches, left.tolist(), top.tolist(), strict=True)):
        tall.paste(patch, (x, row * size + y))
    return np.frombuffer(tall.tobytes(), np.uint8).reshape(len(patches), size, size)


def stack(digits: Bytes, size: int) -> Bytes:
    """Resize whole digits: uint8 [n, H, W] to [n, size, size], bicubic and antialiased."""
    n, height, width = digits.shape
    if (height, width) == (size, size):
        return digits
    tall = Image.frombytes("L", (width, height * n), digits.tobytes())
    boxes = [(0, row * height, width, (row + 1) * height) for row in range(n)]
    patches = [tall.crop(box).resize((size, size), Image.Resampling.BICUBIC) for box in boxes]
    zeros = np.zeros(n, np.int64)
    return paste(patches, zeros, zeros, size)


def binarise(images: Bytes, keys: Bits) -> Bytes:
    """Draw each pixel from a Bernoulli distribution with probability intensity / 255 (Salakhutdinov & Murray 2008)."""
    flat = images.reshape(-1)
    inked = np.flatnonzero(flat)
    image, pixel = np.divmod(inked, images[0].size)
    random = bits(keys[image], pixel + PIXEL_SLOT) >> np.uint64(32)
    # Uniform in 0 .. 254, so that 255 is always and 0 never on.
    threshold = (random * np.uint64(255)) >> np.uint64(32)
    result = np.zeros_like(flat)
    result[inked] = threshold < flat[inked]
    return result.reshape(images.shape)


def pack(images: Bytes) -> Bytes:
    """Pack binary images [n, H, W] eight pixels to a byte, row by row, first pixel in the highest bit: [n, ceil(HW /
    8)].
    """
    packed: NDArray[Any] = np.packbits(images.reshape(len(images), -1), axis=1)
    return packed

"""From source digits to images: rotate, resize, paste, binarise, pack."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmgen.data_recipes._streams import Bits, random_bits

__all__ = ["PIXEL_SLOT", "Patch", "binarise", "pack_bits", "paste_patches", "transform_digits", "resize_digits"]

PIXEL_SLOT = 64
"""Slots of an image's stream from here on binarise its pixels; those before are for the recipe's own draws."""

Patch = Image.Image
"""A transformed digit, cut to its ink."""

Bytes = NDArray[np.uint8]


def transform_digits(digits: Bytes, factor: NDArray[np.float64], angle: NDArray[np.float32]) -> list[Patch]:
    """Rotate and resize digits, and crop them to their ink.

    Args:
        digits: uint8 [n, H, W].
        factor: Scale of each [n].
        angle: Clockwise rotation of each in degrees [n].
    """
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


def paste_patches(patches: list[Patch], left: NDArray[np.int64], top: NDArray[np.int64], size: int) -> Bytes:
    """Paste n patches on black canvases, uint8 [n, size, size], with upper left pixels at (left, top) [n]."""
    tall = Image.new("L", (size, size * len(patches)))
    for row, (patch, x, y) in enumerate(zip(patches, left.tolist(), top.tolist(), strict=True)):
        tall.paste(patch, (x, row * size + y))
    return np.frombuffer(tall.tobytes(), np.uint8).reshape(len(patches), size, size)


def resize_digits(digits: Bytes, size: int) -> Bytes:
    """Resize digits, uint8 [n, H, W], to [n, size, size], bicubic with antialiasing."""
    n, height, width = digits.shape
    if (height, width) == (size, size):
        return digits
    tall = Image.frombytes("L", (width, height * n), digits.tobytes())
    boxes = [(0, row * height, width, (row + 1) * height) for row in range(n)]
    patches = [tall.crop(box).resize((size, size), Image.Resampling.BICUBIC) for box in boxes]
    zeros = np.zeros(n, np.int64)
    return paste_patches(patches, zeros, zeros, size)


def binarise(images: Bytes, keys: Bits) -> Bytes:
    """Draw each pixel of images [n, H, W] as 0 or 1 with probability intensity / 255 (Salakhutdinov & Murray 2008)."""
    flat = images.reshape(-1)
    inked = np.flatnonzero(flat)
    image, pixel = np.divmod(inked, images[0].size)
    random = random_bits(keys[image], pixel + PIXEL_SLOT) >> np.uint64(32)
    # Uniform in 0 .. 254, so that 255 is always and 0 never on.
    threshold = (random * np.uint64(255)) >> np.uint64(32)
    result = np.zeros_like(flat)
    result[inked] = threshold < flat[inked]
    return result.reshape(images.shape)


def pack_bits(images: Bytes) -> Bytes:
    """Pack binary images [n, H, W] to [n, ceil(HW / 8)] bytes, row by row, first pixel in the highest bit."""
    packed: NDArray[Any] = np.packbits(images.reshape(len(images), -1), axis=1)
    return packed

"""From a JPEG file to the pictures of a dataset: crop, grey, edges, completion, watermark.

All are made from the whole picture of 178 x 218 pixels; cropping and resizing come last.
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from mmgen.core.pictures import decode_picture

__all__ = ["HEIGHT", "WIDTH", "blacken_right_half", "decode_face", "detect_edges", "crop_and_resize", "add_watermark"]

WIDTH, HEIGHT = 178, 218
"""Size of CelebA's aligned pictures in pixels."""

_OVERLAY = (
    "#...#..###..#####.#####.####..#...#..###..####..#...#",
    "#...#.#...#...#...#.....#...#.##.##.#...#.#...#.#..#.",
    "#.#.#.#####...#...####..####..#.#.#.#####.####..###..",
    "##.##.#...#...#...#.....#..#..#...#.#...#.#..#..#..#.",
    "#...#.#...#...#...#####.#...#.#...#.#...#.#...#.#...#",
)
_STRENGTH = 0.6  # of the overlay's white
_ROWS = (0.18, 0.5, 0.82)  # middles of the overlay's three lines, as shares of the height


def decode_face(data: bytes) -> Image.Image:
    """Decode a JPEG file of 178 x 218 pixels to an RGB picture."""
    return decode_picture(data, "RGB", size=(WIDTH, HEIGHT), formats=("JPEG",))


def crop_and_resize(image: Image.Image, crop: int, size: int) -> Image.Image:
    """Crop the central square of ``crop`` pixels and resize it to ``size``, bilinear with antialiasing."""
    # WG make the shorter side 64 and cut the middle 64 out of the longer one: the same to half a pixel. As there, the
    # outermost pixels weigh in a little of what lies just outside.
    left, top = (WIDTH - crop) / 2, (HEIGHT - crop) / 2
    return image.resize((size, size), Image.Resampling.BILINEAR, box=(left, top, left + crop, top + crop))


def detect_edges(grey: Image.Image, sigma: float) -> Image.Image:
    """Detect Canny's edges in a grey picture, 255 on 0, by scikit-image with its default thresholds of 0.1 and 0.2.

    References:
        A Computational Approach to Edge Detection (Canny, PAMI 1986), https://doi.org/10.1109/TPAMI.1986.4767851
    """
    from skimage.feature import canny

    return Image.fromarray(canny(np.asarray(grey), sigma=sigma).astype(np.uint8) * np.uint8(255))


def blacken_right_half(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a copy of the picture [C, H, W] with its right half black."""
    result = picture.copy()
    result[:, :, picture.shape[2] // 2 :] = 0
    return result


def add_watermark(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a copy of the picture [C, H, W] under three lines of white writing, the same on every picture."""
    white = _watermark_mask(picture.shape[1])
    return np.rint(picture + (255.0 - picture) * _STRENGTH * white).astype(np.uint8)


def _watermark_mask(size: int) -> NDArray[np.uint8]:
    """Return the mask [size, size] of the writing, 0 and 1, drawn at 64 pixels and resized by nearest neighbours."""
    canvas = np.zeros((64, 64), np.uint8)
    word = np.array([[dot == "#" for dot in line] for line in _OVERLAY], np.uint8)
    height, width = word.shape
    for middle in _ROWS:
        top, left = round(middle * 64 - height / 2), (64 - width) // 2
        canvas[top : top + height, left : left + width] = word
    nearest = np.arange(size) * 64 // size
    return canvas[np.ix_(nearest, nearest)]

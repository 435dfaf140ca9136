"""Many small pictures in few images, as a page holds them: 16 greys as PNG, colours as WebP."""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import lit

__all__ = ["STEP", "Sheets", "lighter", "pack", "tiles"]

STEP = 17
"""Between two of the 16 greys of a sheet, of 255."""
_SIDE = 2048
"""Pixels along a sheet at most: what every browser decodes at once."""
_QUALITY = 80
"""Quality of WebP, 100 at most."""


@dataclass(frozen=True)
class Sheets:
    """n pictures of one size, row by row in images that are all full but the last.

    Attributes:
        size: Width and height of a picture, pixels.
        columns: Pictures in a row of a sheet.
        each: Pictures on a sheet.
        images: The sheets as ``data:`` addresses.
    """

    size: tuple[int, int]
    columns: int
    each: int
    images: tuple[str, ...]

    def __len__(self) -> int:
        """Letters that they take on the page."""
        return sum(map(len, self.images))

    def to_json(self) -> dict[str, Any]:
        """What the page's script finds a picture by."""
        return {"size": list(self.size), "columns": self.columns, "each": self.each, "images": list(self.images)}


def tiles(images: np.ndarray) -> np.ndarray:
    """Pictures float [..., C, H, W] in [0, 1] as bytes uint8 [n, H, W, C].

    Raises:
        UsageError: Neither one nor three channels.
    """
    if images.shape[-3] not in (1, 3):
        raise UsageError(f"got pictures of {images.shape[-3]} channels, expected 1 or 3")
    # NaN would cast to any byte: it shows as black, as it does in figures.
    levels = np.rint(np.clip(np.nan_to_num(images), 0, 1) * 255).astype(np.uint8)
    return np.moveaxis(levels.reshape(-1, *levels.shape[-3:]), 1, -1)


def lighter(blocks: Sequence[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Pictures uint8 [n, H, W, C] on a lighter ground where some are nearly black; and a sentence that says so."""
    full = [block for block in blocks if len(block)]
    if not full:
        return list(blocks), ""
    found, remark = lit(full)
    places = iter(found)
    return [next(places) if len(block) else block for block in blocks], remark


def pack(pictures: np.ndarray) -> Sheets:
    """Pictures uint8 [n, H, W, C] as sheets: one channel in 16 greys, three as they are but for WebP's losses."""
    count, height, width, channels = pictures.shape
    columns = max(1, min(_SIDE // width, math.ceil(math.sqrt(count * height / width))))
    each = columns * max(1, min(_SIDE // height, math.ceil(count / columns)))
    images = [_image(pictures[start : start + each], columns, channels) for start in range(0, count, each)]
    return Sheets((width, height), columns, each, tuple(images))


def _image(pictures: np.ndarray, columns: int, channels: int) -> str:
    count, height, width = pictures.shape[:3]
    rows = math.ceil(count / columns)
    whole = np.zeros((rows * columns, height, width, channels), np.uint8)
    whole[:count] = pictures
    sheet = whole.reshape(rows, columns, height, width, channels).swapaxes(1, 2)
    sheet = sheet.reshape(rows * height, columns * width, channels)
    buffer, kind = io.BytesIO(), "png"
    if channels == 1:
        image = Image.fromarray(np.rint(sheet[..., 0] / STEP).astype(np.uint8), "L")
        image.putpalette([level for grey in range(0, 256, STEP) for level in (grey, grey, grey)])
        image.save(buffer, format="png", bits=4)
    else:
        kind = "webp"
        Image.fromarray(sheet, "RGB").save(buffer, format="webp", quality=_QUALITY, method=4)
    return f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode("ascii")

"""Many small pictures packed into large images (sheets) for a page: 16 greys as PNG, colours as WebP."""

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import lighten_dark_images

STEP = 17
"""Difference of two of the 16 greys of a sheet, in levels of 0 to 255."""
_SIDE = 2048
"""Largest side of a sheet in pixels, which every browser decodes."""
_QUALITY = 80
"""Quality of WebP, 100 at most."""


@dataclass(frozen=True)
class Sheets:
    """Pictures of equal size, packed row by row into a few large images.

    Attributes:
        size: Width and height of a picture, pixels.
        columns: Pictures in a row of a sheet.
        per_sheet: Pictures on a sheet.
        images: The sheets as ``data:`` addresses.
    """

    size: tuple[int, int]
    columns: int
    per_sheet: int
    images: tuple[str, ...]

    def __len__(self) -> int:
        """Return the size of all sheets on the page, in letters."""
        return sum(map(len, self.images))

    def to_json(self) -> dict[str, Any]:
        """Convert the sheets to plain values, from which the page's script cuts each picture."""
        return {"size": list(self.size), "columns": self.columns, "each": self.per_sheet, "images": list(self.images)}


def picture_bytes(images: np.ndarray) -> np.ndarray:
    """Convert pictures float [..., C, H, W] in [0, 1] to bytes uint8 [n, H, W, C].

    Raises:
        UsageError: The pictures have neither one nor three channels.
    """
    if images.shape[-3] not in (1, 3):
        raise UsageError(f"got pictures of {images.shape[-3]} channels, expected 1 or 3; convert them to grey or RGB")
    # NaN would cast to any byte; it is drawn as black, as in figures.
    levels = np.rint(np.clip(np.nan_to_num(images), 0, 1) * 255).astype(np.uint8)
    return np.moveaxis(levels.reshape(-1, *levels.shape[-3:]), 1, -1)


def lighten_if_dark(blocks: Sequence[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Replace black by dark grey if some pictures uint8 [n, H, W, C] are nearly black; also return a remark."""
    full = [block for block in blocks if len(block)]
    if not full:
        return list(blocks), ""
    found, remark = lighten_dark_images(full)
    places = iter(found)
    return [next(places) if len(block) else block for block in blocks], remark


def pack_sheets(pictures: np.ndarray) -> Sheets:
    """Pack pictures uint8 [n, H, W, C] into sheets: one channel in 16 greys, three as WebP."""
    count, height, width, channels = pictures.shape
    columns = max(1, min(_SIDE // width, math.ceil(math.sqrt(count * height / width))))
    each = columns * max(1, min(_SIDE // height, math.ceil(count / columns)))
    images = [_encode_sheet(pictures[start : start + each], columns, channels) for start in range(0, count, each)]
    return Sheets((width, height), columns, each, tuple(images))


def _encode_sheet(pictures: np.ndarray, columns: int, channels: int) -> str:
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

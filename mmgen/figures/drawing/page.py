"""White pages of pictures with a title and a note: images as bytes, frames, margins."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageOps
from PIL.PngImagePlugin import PngInfo

from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.figures.drawing.style import INK, MUTED, RULE, WRONG
from mmgen.figures.drawing.text import TextBlock, wrap_text
from mmgen.settings.arguments import check_arguments
from mmgen.settings.kinds import FilePath

__all__ = [
    "FRAME",
    "GAP",
    "MARGIN",
    "SENTENCE_TILE",
    "TILE",
    "Box",
    "Grid",
    "Sheet",
    "add_title_and_note",
    "stack_below",
    "darken_ground",
    "enlarge",
    "add_margins",
    "lighten_dark_images",
    "paste_framed",
    "make_sheet",
    "convert_to_rgb",
]

Box = tuple[int, int, int, int]

TILE = 112
"""Images are enlarged by a whole factor to about this many pixels; pages show them at half size, so they stay sharp."""
SENTENCE_TILE = 224
"""The same for images with whole sentences under them."""
FRAME = 7
"""Width in pixels of the frame around each image: red if the classifier disagrees, else white with a hairline."""
_DARK = 0.5
"""Brightness, as a share of white, below which all pixels of a nearly black picture lie."""
_GROUND = 0.12
"""Brightness of black, as a share of white, on a page with nearly black pictures."""
GAP = 10
MARGIN = 24
NARROWEST = 640
"""Pixels that a title needs beside even the smallest grid."""


@dataclass(frozen=True)
class Grid:
    """Finished picture of a page, with the boxes of the images on it.

    Attributes:
        image: The RGB image.
        boxes: Box (left, top, right, bottom) of each image inside it, without frames, in drawing order.
        remark: Explanation of a lighter background; "" if images are unchanged.
    """

    image: Image.Image
    boxes: list[Box]
    remark: str = ""

    def __repr__(self) -> str:
        return f"<grid of {len(self.boxes)} images, {self.image.width} x {self.image.height} pixels>"

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.image.save(buffer, format="png", optimize=True)
        return buffer.getvalue()

    @check_arguments
    def save(self, path: FilePath) -> None:
        """Write the picture to a PNG file, atomically."""
        from mmgen.artifacts import atomic_path
        from mmgen.artifacts.pages import MAKER

        maker = PngInfo()
        maker.add_text("Software", MAKER)
        with atomic_path(Path(path)) as temporary:
            self.image.save(temporary, format="png", optimize=True, pnginfo=maker)


def convert_to_rgb(images: np.ndarray) -> np.ndarray:
    """Convert images in [0, 1] to RGB bytes.

    Args:
        images: [..., C, H, W] with one or three channels; float in [0, 1] (values outside are clipped) or uint8 0..255.

    Returns:
        uint8 [..., H, W, 3].

    Raises:
        UsageError: The images have neither one nor three channels.
    """
    if images.ndim < 3 or images.shape[-3] not in (1, 3):
        raise UsageError(
            f"got images of shape {list(images.shape)}, "
            f"expected [..., C, H, W] with 1 or 3 channels; convert them to grey or RGB"
        )
    if images.dtype != np.uint8:
        # NaN would cast to any byte; it is drawn as black.
        images = np.rint(np.clip(np.nan_to_num(images.astype(np.float32)), 0, 1) * 255).astype(np.uint8)
    last = np.moveaxis(images, -3, -1)
    return np.repeat(last, 3, axis=-1) if last.shape[-1] == 1 else last


def lighten_dark_images(blocks: Sequence[np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Replace black by dark grey on a page with nearly black images, so that these do not look like missing images.

    Args:
        blocks: Images of one page, each uint8 [n, H, W, 3]; sizes may differ.

    Returns:
        The images, all lighter if any is nearly black; and a sentence that explains it, else "".
    """
    peaks = np.concatenate([block.reshape(len(block), -1).max(1) for block in blocks])
    dark = int((peaks < _DARK * 255).sum())
    if not dark:
        return list(blocks), ""
    lighter = [np.rint(255 * _GROUND + (1 - _GROUND) * block).astype(np.uint8) for block in blocks]
    which = f"All {dark:,} pictures" if dark == len(peaks) else f"{dark:,} of {len(peaks):,} pictures"
    which = "The picture" if len(peaks) == 1 else which
    remark = f"{which} {'is' if dark == 1 else 'are'} nearly black: no pixel is half as bright as white"
    return lighter, f"{remark}. Black is drawn as dark grey{'' if len(peaks) == 1 else ' in all'}."


_NIGHT = (0x17, 0x19, 0x1C)
"""Colour of a dark page."""
_HUE_ROTATION = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
"""Rotation of hues by 180 degrees at constant luminance (Filter Effects Module, W3C, ``hue-rotate``)."""


def darken_ground(grid: Grid) -> Image.Image:
    """Return the ground of a picture for a dark page: letters and frames light on dark, images left out.

    Returns:
        An RGBA image that is transparent where the picture has images.
    """
    inverted = (255.0 - np.asarray(grid.image, np.float32)) @ _HUE_ROTATION.T.astype(np.float32)
    inverted = np.clip(inverted, 0, 255) / 255
    lit = 255 * (1 - (1 - inverted) * (1 - np.array(_NIGHT, np.float32) / 255))  # the blend mode "screen"
    pixels = np.concatenate([np.rint(lit), np.full((*lit.shape[:2], 1), 255)], -1).astype(np.uint8)
    for left, top, right, bottom in grid.boxes:
        pixels[top:bottom, left:right] = 0
    return Image.fromarray(pixels)


def enlarge(images: np.ndarray, tile: int = TILE) -> np.ndarray:
    """Enlarge images uint8 [n, H, W, 3] by a whole factor to a width of about ``tile`` pixels, with sharp pixels."""
    factor = max(1, round(tile / max(images.shape[1:3])))
    return images.repeat(factor, axis=1).repeat(factor, axis=2)


def paste_framed(canvas: Image.Image, pixels: np.ndarray, box: Box, wrong: bool) -> None:
    """Paste an image into its box on the page, with a red frame if ``wrong`` (misread), else with a hairline."""
    draw = ImageDraw.Draw(canvas)
    left, top, right, bottom = box
    if wrong:
        draw.rectangle((left - FRAME, top - FRAME, right + FRAME - 1, bottom + FRAME - 1), fill=WRONG)
    else:
        draw.rectangle((left - 1, top - 1, right, bottom), outline=RULE)
    canvas.paste(Image.fromarray(pixels), (left, top))


@dataclass(frozen=True)
class Sheet:
    """White page for a picture, with a title above its content and a note below."""

    width: int
    height: int
    title: TextBlock
    note: TextBlock
    canvas: Image.Image = field(init=False, repr=False)

    def __post_init__(self) -> None:
        below = GAP + 4 + self.note.height if self.note.lines else 0
        size = self.width + 2 * MARGIN, self.top + self.height + below + MARGIN
        advice = "use a smaller --number, or a name that ends in .h5 where samples are written"
        check_memory(3 * size[0] * size[1], f"a picture of {size[0]:,} x {size[1]:,} pixels", advice)
        object.__setattr__(self, "canvas", Image.new("RGB", size, "white"))
        draw = ImageDraw.Draw(self.canvas)
        self.title.draw(draw, MARGIN, MARGIN - 4)
        self.note.draw(draw, MARGIN, self.top + self.height + GAP + 4)

    @property
    def top(self) -> int:
        """Height of margin and title above the content, in pixels."""
        return MARGIN + self.title.height + (GAP if self.title.lines else 0)


def make_sheet(width: int, height: int, title: str, note: str, remark: str = "") -> Sheet:
    """Make a page with title and note for content of ``width`` by ``height`` pixels; a long title widens it."""
    note = f"{note} {remark}".strip() if note else ""
    wide = max(width, NARROWEST if title or note else 0)
    return Sheet(
        wide,
        height,
        TextBlock(wrap_text(title, 28, wide, bold=True), 28, INK, bold=True),
        TextBlock(wrap_text(note, 20, wide), 20, MUTED),
    )


def add_margins(image: Image.Image) -> Grid:
    """Put an image on a white page with margins."""
    return Grid(ImageOps.expand(image, MARGIN, "white"), [])


def add_title_and_note(grid: Grid, title: str, note: str) -> Grid:
    """Add a title above and a note below a picture, for a file of its own."""
    inner = grid.image
    page = make_sheet(inner.width - 2 * MARGIN, max(1, inner.height - 2 * MARGIN), title, note)
    shift = page.top - MARGIN
    canvas = page.canvas
    canvas.paste(inner.crop((0, MARGIN, inner.width, inner.height - MARGIN)), (0, page.top))
    boxes = [(left, top + shift, right, bottom + shift) for left, top, right, bottom in grid.boxes]
    return Grid(canvas, boxes, grid.remark)


def stack_below(image: Image.Image, grid: Grid) -> Grid:
    """Stack an image above a grid."""
    shift = MARGIN + image.height
    canvas = Image.new("RGB", (max(image.width + 2 * MARGIN, grid.image.width), shift + grid.image.height), "white")
    canvas.paste(image, (MARGIN, MARGIN))
    canvas.paste(grid.image, (0, shift))
    boxes = [(left, top + shift, right, bottom + shift) for left, top, right, bottom in grid.boxes]
    return Grid(canvas, boxes, grid.remark)

"""White pages of pictures with words: images as bytes, frames, a title above and a note below.

Pictures are enlarged by whole factors and placed exactly to the pixel, as :meth:`matplotlib.figure.Figure.figimage`
does; matplotlib writes the words.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from mmgen.core.errors import UsageError, clip
from mmgen.core.memory import check_memory
from mmgen.core.parsing import strip_controls
from mmgen.figures.drawing.style import INK, MUTED, RULE, WRONG, default_style, hex_to_rgb, load_font, plain_text_labels
from mmgen.settings.arguments import check_arguments
from mmgen.settings.kinds import FilePath

Box = tuple[int, int, int, int]

TILE = 112
"""Images are enlarged by a whole factor to about this many pixels; pages show them at half size, so they stay sharp."""
SENTENCE_TILE = 224
"""The same for images with whole sentences under them."""
FRAME = 7
"""Width in pixels of the frame around each image: red if the classifier disagrees, else white with a hairline."""
GAP = 10
MARGIN = 24
_NARROWEST = 640
"""Pixels that a title needs beside even the smallest grid."""
_MOST = 2**16
"""Pixels along a side from which matplotlib renders nothing."""
_MOST_LETTERS, _LONGEST = 10_000, 40
"""Letters of a text, and of a word in it, at most."""
SIZE = 20
"""Font size of captions and headings of columns in pixels; a page shows it at half the size."""
_ASCENT = 0.93
"""Height of a line above its baseline, as a share of the font size."""
_DARK = 0.5
"""Brightness, as a share of white, below which all pixels of a nearly black picture lie."""
LOSSY = {".jpg": "jpeg", ".jpeg": "jpeg", ".webp": "webp"}
"""Formats of pictures by the endings of files beside .png."""
_GROUND = 0.12
"""Brightness of black, as a share of white, on a page with nearly black pictures."""


@dataclass(frozen=True)
class Text:
    """Words in one line of a page.

    Attributes:
        words: The words.
        left: Pixels to their left edge, or to their middle if ``centred``.
        top: Pixels to their upper edge.
        size: Size of type in pixels.
        colour: ``#rrggbb``.
        bold: Whether they are bold.
        centred: Whether ``left`` is their middle.
    """

    words: str
    left: float
    top: float
    size: int = SIZE
    colour: str = INK
    bold: bool = False
    centred: bool = False


@dataclass(frozen=True)
class Grid:
    """Finished picture of a page, with the boxes of the images on it.

    Attributes:
        canvas: The page without its words, uint8 [H, W, 3].
        texts: The words.
        boxes: Box (left, top, right, bottom) of each image, without frames: by blocks, rows and columns.
        remark: Explanation of a lighter background; "" if images are unchanged.
    """

    canvas: np.ndarray
    texts: Sequence[Text] = ()
    boxes: Sequence[Box] = ()
    remark: str = ""

    def __repr__(self) -> str:
        return f"<grid of {len(self.boxes)} images, {self.canvas.shape[1]} x {self.canvas.shape[0]} pixels>"

    @cached_property
    @default_style()
    def image(self) -> Image.Image:
        """The RGB image."""
        height, width = self.canvas.shape[:2]
        figure = Figure(figsize=((width + 0.01) / 72, (height + 0.01) / 72), dpi=72)  # a point is a pixel
        figure.figimage(self.canvas)
        for one in self.texts:
            figure.text(
                one.left, height - one.top - _ASCENT * one.size, one.words, transform=None, fontsize=one.size,
                color=one.colour, fontweight="bold" if one.bold else "normal", ha="center" if one.centred else "left",
            )  # fmt: skip
        drawn = FigureCanvasAgg(figure)
        with plain_text_labels(figure):
            drawn.draw()
        return Image.fromarray(np.asarray(drawn.buffer_rgba())).convert("RGB")

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.image.save(buffer, format="png", optimize=True)
        return buffer.getvalue()

    @check_arguments
    def save(self, path: FilePath) -> None:
        """Write the picture to a file, atomically: JPEG or WebP by the ending .jpg, .jpeg or .webp, else PNG."""
        from mmgen.artifacts import atomic_path

        with atomic_path(Path(path)) as temporary:
            save_image(self.image, temporary, Path(path).suffix.lower())


def save_image(image: Image.Image, path: Path, ending: str) -> None:
    """Write a picture that says that mmgen made it, in the format of a lower-case ending, PNG for unknown ones."""
    from mmgen.artifacts.pages import EXIF, MAKER

    if ending in LOSSY:
        image.save(path, format=LOSSY[ending], quality=92, exif=b"Exif\0\0" + EXIF)
        return
    maker = PngInfo()
    maker.add_text("Software", MAKER)
    image.save(path, format="png", optimize=True, pnginfo=maker)


def pitch(size: int) -> int:
    """Return the pixels from one line to the next."""
    return round(1.35 * size)


def wrap_text(text: str, size: int, width: float, max_lines: int = _MOST_LETTERS, bold: bool = False) -> list[str]:
    """Wrap text into lines of ``width`` pixels, cut after ``max_lines``; a wider word has a line of its own."""
    lines: list[str] = []
    font = load_font(size, bold)
    for word in (clip(each, _LONGEST) for each in strip_controls(text[:_MOST_LETTERS]).split()):
        if lines and font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines if len(lines) <= max_lines else [*lines[: max_lines - 1], f"{lines[max_lines - 1]}…"]


def longest_word(texts: Iterable[str], size: int) -> float:
    """Return the width in pixels of the longest word."""
    words = {clip(word, _LONGEST) for text in texts for word in strip_controls(text[:_MOST_LETTERS]).split()}
    return max(map(load_font(size).getlength, words), default=0.0)


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


def enlarge(images: np.ndarray, tile: int = TILE) -> np.ndarray:
    """Enlarge images uint8 [n, H, W, 3] by a whole factor to a width of about ``tile`` pixels, with sharp pixels."""
    factor = max(1, round(tile / max(images.shape[1:3])))
    return images.repeat(factor, axis=1).repeat(factor, axis=2)


@dataclass
class Page:
    """Page in the making: arrays of pixels by their upper left corners, words, and boxes of pictures."""

    pixels: list[tuple[np.ndarray, int, int]] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)

    def write(self, lines: Sequence[str], left: float, top: int, size: int, colour: str = INK, **style: bool) -> int:
        """Write lines below each other, and return where the next one would be."""
        for line in lines:
            self.texts.append(Text(line, left, top, size, colour, **style))
            top += pitch(size)
        return top

    def fill(self, colour: str, left: int, top: int, width: int, height: int) -> None:
        """Fill a rectangle."""
        self.pixels.append((np.full((height, width, 3), hex_to_rgb(colour), np.uint8), left, top))

    def place(self, picture: np.ndarray, left: int, top: int, wrong: bool) -> None:
        """Place a picture, with a red frame if ``wrong`` (misread), else with a hairline."""
        height, width = picture.shape[:2]
        edge = FRAME if wrong else 1
        self.fill(WRONG if wrong else RULE, left - edge, top - edge, width + 2 * edge, height + 2 * edge)
        self.pixels.append((picture, left, top))
        self.boxes.append((left, top, left + width, top + height))

    def finish(self, width: int, height: int, remark: str = "") -> Grid:
        """Return the page of this size."""
        advice = "use a smaller --number, or a name that ends in .h5 where samples are written"
        if max(width, height) >= _MOST:
            raise UsageError(
                f"a picture of {width:,} x {height:,} pixels is too large, expected less than {_MOST:,}; {advice}"
            )
        check_memory(8 * width * height, f"a picture of {width:,} x {height:,} pixels", advice)
        canvas = np.full((height, width, 3), 255, np.uint8)
        for pixels, left, top in self.pixels:
            canvas[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
        return Grid(canvas, self.texts, self.boxes, remark)


def add_title_and_note(grid: Grid, title: str, note: str) -> Grid:
    """Add a title above and a note below a picture; a long title widens it."""
    height, width = grid.canvas.shape[:2]
    wide = max(width, _NARROWEST + 2 * MARGIN if title or note else 0)
    page = Page()
    top = page.write(wrap_text(title, 26, wide - 2 * MARGIN, bold=True), MARGIN, MARGIN - 4, 26, bold=True)
    shift = top + GAP - MARGIN if title else 0
    bottom = page.write(wrap_text(note, 20, wide - 2 * MARGIN), MARGIN, shift + height - MARGIN + 2 * GAP, 20, MUTED)
    page.pixels.append((grid.canvas, 0, shift))
    page.texts += [replace(text, top=text.top + shift) for text in grid.texts]
    page.boxes += [(left, above + shift, right, below + shift) for left, above, right, below in grid.boxes]
    return page.finish(wide, bottom + MARGIN if note else shift + height, grid.remark)


def stack_below(image: Image.Image, grid: Grid) -> Grid:
    """Stack an image above a grid."""
    page, shift = Page([(np.asarray(image), MARGIN, MARGIN)]), MARGIN + image.height
    page.pixels.append((grid.canvas, 0, shift))
    page.texts += [replace(text, top=text.top + shift) for text in grid.texts]
    page.boxes += [(left, above + shift, right, below + shift) for left, above, right, below in grid.boxes]
    return page.finish(max(image.width + 2 * MARGIN, grid.canvas.shape[1]), shift + grid.canvas.shape[0], grid.remark)

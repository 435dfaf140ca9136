"""Tables on pages of pictures: blocks of columns with headings, labels of rows, and captions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import (
    FRAME,
    GAP,
    MARGIN,
    SIZE,
    TILE,
    Grid,
    Page,
    Text,
    add_title_and_note,
    convert_to_rgb,
    enlarge,
    lighten_dark_images,
    longest_word,
    pitch,
    wrap_text,
)
from mmgen.figures.drawing.style import MUTED, load_font

Span = tuple[str, str, bool]
"""Words, their colour and whether they are bold."""

SOURCE_GROUND = "#e4e7eb"
"""Background of columns of source pictures."""
_BETWEEN = 5 * GAP
"""Pixels between blocks."""
_WIDEST = 2200
"""Width of a page in pixels, about twice that in a report."""
_LABELS = 260
"""Largest width of the labels of rows in pixels."""
_HEAD, _LABEL = 22, 20
"""Font size of the titles of blocks, and of the labels of rows, in pixels."""
_UNDER = 8
"""Pixels between a picture's frame and its caption."""


@dataclass(frozen=True)
class Line:
    """Line of the caption under a picture.

    Attributes:
        spans: Words with their colour, and whether they are bold.
        bars: A picture to the right of them, uint8 [h, w, 3]; None for none.
        indent: Pixels from the left edge of the picture to the bars.
    """

    spans: Sequence[Span] = ()
    bars: np.ndarray | None = None
    indent: int = 0

    @property
    def height(self) -> int:
        """Pixels from this line to the next."""
        return pitch(SIZE) if self.bars is None else self.bars.shape[0] + 5


@dataclass(frozen=True)
class Column:
    """Column of pictures in a block, with one picture for each row.

    Attributes:
        images: Images [R, C, H, W], or a list with None for rows without a picture.
        head: Heading, one line for each line of it: "image", "drawn".
        is_source: Whether they are the sources of a translation, which have a grey background.
        wrong: Whether the classifier's prediction differs from the description, bool [R]; None without a classifier.
        captions: Lines under each picture; none by default.
        width: Minimal width in pixels.
        centred: Whether pictures and captions are centred, instead of starting at the left edge.
    """

    images: np.ndarray | Sequence[np.ndarray | None]
    head: str = ""
    is_source: bool = False
    wrong: np.ndarray | None = None
    captions: Sequence[Sequence[Line]] = ()
    width: int = 0
    centred: bool = True


@dataclass(frozen=True)
class Block:
    """Block of pictures on a page: columns that have the same rows.

    Attributes:
        title: Title above it.
        columns: Columns from left to right.
        labels: Text to the left of each row; none by default.
        subtitle: Second line of the title, such as the share of correct attributes.
    """

    title: str
    columns: Sequence[Column]
    labels: Sequence[str] = ()
    subtitle: str = ""


def text_lines(text: str, width: float, colour: str = MUTED, max_lines: int = 100) -> list[Line]:
    """Wrap the caption of a picture into lines."""
    return [Line([(line, colour, False)]) for line in wrap_text(text, SIZE, width, max_lines)]


class _Measured:
    """Block with its enlarged pictures, its labels in lines, and its width in pixels."""

    def __init__(self, block: Block, pictures: Iterator[np.ndarray]) -> None:
        self.block = block
        self.columns = [[None if one is None else next(pictures) for one in c.images] for c in block.columns]
        heads = [math.ceil(longest_word([column.head], SIZE)) for column in block.columns]
        self.widths = [
            max(column.width, head, *(one.shape[1] + 2 * FRAME for one in shown if one is not None))
            for column, shown, head in zip(block.columns, self.columns, heads, strict=True)
        ]
        self.labels = [wrap_text(label, _LABEL, _LABELS, 8) for label in block.labels]
        longest = max((load_font(_LABEL).getlength(line) for lines in self.labels for line in lines), default=0)
        self.inner = math.ceil(longest) + 2 * GAP if longest else 0
        inside = sum(self.widths) + GAP * (len(self.widths) - 1)
        self.width = self.inner + inside
        self.title = wrap_text(block.title, _HEAD, inside, bold=True)
        self.subtitle = wrap_text(block.subtitle, SIZE, inside)
        self.heads = [
            [line for part in c.head.split("\n") for line in wrap_text(part, SIZE, w, 2)]
            for c, w in zip(block.columns, self.widths, strict=True)
        ]

    def row_heights(self, row: int) -> tuple[int, int, int]:
        """Return the heights in pixels of a row's highest picture with its frame, of its captions and of its label."""
        if row >= len(self.columns[0]):
            return 0, 0, 0
        pictures = [column[row] for column in self.columns]
        heights = [picture.shape[0] + 2 * FRAME for picture in pictures if picture is not None]
        captions = [
            sum(line.height for line in c.captions[row]) + _UNDER
            for c in self.block.columns
            if any(c.captions[row : row + 1])
        ]
        label = pitch(_LABEL) * len(self.labels[row]) if self.labels else 0
        return max(heights, default=0), max(captions, default=0), label


def _check_rows(blocks: Sequence[Block]) -> None:
    if not blocks or not all(block.columns and len(block.columns[0].images) for block in blocks):
        raise UsageError("got no images to show, expected at least one in each block; leave empty blocks out")
    for block in blocks:
        rows = len(block.columns[0].images)
        lengths = [len(column.images) for column in block.columns] + ([len(block.labels)] if block.labels else [])
        lengths += [len(column.wrong) for column in block.columns if column.wrong is not None]
        if any(length != rows for length in lengths):
            raise UsageError(
                f"got columns and labels of {lengths} rows, expected {rows} in each; "
                f"give each column as many images as there are rows"
            )


def picture_page(
    blocks: Sequence[Block], *, title: str = "", note: str = "", tile: int = TILE, widest: float = _WIDEST
) -> Grid:
    """Draw a page of blocks of pictures, in order, with as many side by side as fit.

    Args:
        blocks: One or more blocks, each with at least one picture.
        title: Title of the page.
        note: Explanation below the pictures.
        tile: Approximate width of each picture in pixels.
        widest: Width of the page in pixels; a wider block has a band of its own.

    Raises:
        UsageError: There are no pictures, or columns and labels have different lengths, or the page is too large.
    """
    _check_rows(blocks)
    images = [one for block in blocks for column in block.columns for one in column.images if one is not None]
    shown, remark = lighten_dark_images([convert_to_rgb(image[None]) for image in images])
    pictures = (enlarge(picture, tile)[0] for picture in shown)
    bands: list[list[_Measured]] = []
    for block in (_Measured(block, pictures) for block in blocks):
        if bands and sum(each.width + _BETWEEN for each in bands[-1]) + block.width <= widest:
            bands[-1].append(block)
        else:
            bands.append([block])
    page, top, width = Page(), MARGIN, 0
    for band in bands:
        width = max(width, sum(block.width + _BETWEEN for block in band) - _BETWEEN)
        top = _draw_band(page, band, top) + _BETWEEN
    grid = page.finish(width + 2 * MARGIN, top - _BETWEEN - GAP + MARGIN, remark)
    return add_title_and_note(grid, title, f"{note} {remark}".strip() if note else "")


def _draw_band(page: Page, band: Sequence[_Measured], top: int) -> int:
    """Draw blocks side by side, whose rows have equal heights; return the bottom edge."""
    heads = max(pitch(_HEAD) * len(b.title) + pitch(SIZE) * (len(b.subtitle) + max(map(len, b.heads))) for b in band)
    first = top + heads
    rows = [
        tuple(map(max, zip(*(block.row_heights(row) for block in band), strict=True)))
        for row in range(max(len(block.columns[0]) for block in band))
    ]
    tops = [first]
    for height, caption, label in rows:
        tops.append(tops[-1] + max(height + caption, label) + GAP)
    left = MARGIN
    for measured in band:
        _draw_block(page, measured, left, top, first, tops, [height for height, _, _ in rows])
        left += measured.width + _BETWEEN
    return tops[-1]


def _draw_block(
    page: Page, measured: _Measured, left: int, top: int, first: int, tops: Sequence[int], heights: Sequence[int]
) -> None:
    inner = left + measured.inner
    below = page.write(measured.title, inner, top, _HEAD, bold=True)
    page.write(measured.subtitle, inner, below, SIZE, MUTED)
    for label, start, height in zip(measured.labels, tops, heights, strict=False):
        page.write(label, left, start + max(0, height - pitch(_LABEL) * len(label)) // 2, _LABEL)
    lefts = [inner + sum(measured.widths[:n]) + GAP * n for n in range(len(measured.widths))]
    for number, (column, start) in enumerate(zip(measured.block.columns, lefts, strict=True)):
        head, width = measured.heads[number], measured.widths[number]
        if column.is_source:
            bottom = tops[len(column.images) - 1] + heights[len(column.images) - 1]
            above = first - pitch(SIZE) * len(head)
            page.fill(SOURCE_GROUND, start, above, width, bottom - above)
        page.write(head, start + width / 2, first - pitch(SIZE) * len(head), SIZE, MUTED, centred=True)
    for row in range(len(measured.columns[0])):
        placed = zip(measured.block.columns, lefts, measured.widths, measured.columns, strict=True)
        for column, start, width, pictures in placed:
            picture = pictures[row]
            if picture is None:
                continue
            wrong = column.wrong is not None and bool(column.wrong[row])
            left = start + ((width - picture.shape[1]) // 2 if column.centred else FRAME)
            page.place(picture, left, tops[row] + (heights[row] - picture.shape[0]) // 2, wrong)
            middle = start + width / 2 if column.centred else None
            below = tops[row] + heights[row] + _UNDER
            _draw_caption(page, column.captions[row] if column.captions else (), start, below, middle)


def _draw_caption(page: Page, lines: Sequence[Line], left: int, top: int, middle: float | None) -> None:
    """Draw lines under a picture, from the left edge or centred about ``middle``."""
    for line in lines:
        x = float(left)
        for words, colour, bold in line.spans:
            if middle is None:
                page.texts.append(Text(words, x, top + (line.height - pitch(SIZE)), SIZE, colour, bold))
            else:
                page.texts.append(Text(words, middle, top, SIZE, colour, bold, centred=True))
            x += load_font(SIZE, bold).getlength(words + " ")
        if line.bars is not None:
            page.pixels.append((line.bars, left + line.indent, top + 5))
        top += line.height

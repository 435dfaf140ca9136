"""Blocks of pictures of several kinds: rows are examples, columns are modalities, what was given stands on grey.

Blocks stand side by side as far as a page is wide, then below each other. ``boxes`` of the finished picture run over
blocks, then groups, then columns, then rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import ImageDraw

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import FRAME, GAP, MARGIN, TILE, Grid, enlarge, lit, paste, sheet, to_bytes
from mmgen.figures.drawing.style import INK, MUTED, font
from mmgen.figures.drawing.text import Lines, column_width, wrap

__all__ = ["GIVEN", "WIDEST", "Block", "Column", "Group", "block_table", "strips"]

GIVEN = "#e4e7eb"
"""Behind pictures that were given."""
WIDEST = 2200
"""Pixels across a page, about twice what a report shows."""
_LABEL = 140
_WIDEST_LABEL = 400
_APART = 2 * GAP
_BETWEEN = 5 * GAP


@dataclass(frozen=True)
class Column:
    """Pictures of one kind, one for each row.

    Attributes:
        images: [R, C, H, W].
        head: A word above them: "given", "drawn", "truth".
        given: They are what the rest was inferred from.
        wrong: Bool [R] or None: the judge disagrees.
    """

    images: np.ndarray
    head: str = ""
    given: bool = False
    wrong: np.ndarray | None = None


@dataclass(frozen=True)
class Group:
    """Columns under one head: drawn and true pictures of one modality."""

    head: str
    columns: Sequence[Column]


@dataclass(frozen=True)
class Block:
    """Groups of columns over the same rows.

    Attributes:
        title: What they have in common.
        groups: From left to right.
        labels: Words to the left of each row; none by default.
    """

    title: str
    groups: Sequence[Group]
    labels: Sequence[str] = ()

    @property
    def columns(self) -> list[Column]:
        """Its columns from left to right."""
        return [column for group in self.groups for column in group.columns]


def _fitting(text: str, size: int, width: int, colour: str = INK, bold: bool = False) -> Lines:
    """Words set small enough that the longest stays whole where that is readable."""
    while size > 12 and any(font(size, bold).getlength(word) > width for word in text.split()):
        size -= 1
    return Lines(wrap(text, size, width, bold=bold, most=3), size, colour, bold)


class _Placed:
    """A block, measured: its pictures enlarged, its columns at pixels from its left edge, its words wrapped."""

    def __init__(self, block: Block, tile: int) -> None:
        self.block = block
        self.pixels = [enlarge(to_bytes(column.images), tile) for column in block.columns]
        across = column_width(block.labels, 17, _LABEL, _WIDEST_LABEL)
        self.labels = [Lines(wrap(label, 17, across, most=7), 17, INK) for label in block.labels]
        left = max((label.width for label in self.labels), default=0)
        left += 2 * GAP if left else 0
        self.lefts: list[int] = []
        self.spans: list[tuple[int, int]] = []  # of the groups
        # Of pictures that merely belong together none needs to stand apart.
        apart = _APART if any(len(group.columns) > 1 or group.columns[0].given for group in block.groups) else GAP
        numbered = iter(self.pixels)
        for group in block.groups:
            start = left
            for _ in group.columns:
                self.lefts.append(left)
                left += next(numbered).shape[2] + 2 * FRAME
            self.spans.append((start, left))
            left += apart
        self.width = left - apart
        inside = self.width - self.spans[0][0]
        self.title = _fitting(block.title, 23, inside, bold=True)
        self.heads = [_fitting(group.head, 20, b - a) for group, (a, b) in zip(block.groups, self.spans, strict=True)]
        self.words = [
            _fitting(column.head, 17, pixels.shape[2] + 2 * FRAME, MUTED)
            for column, pixels in zip(block.columns, self.pixels, strict=True)
        ]

    @property
    def rows(self) -> int:
        return len(self.pixels[0])

    @property
    def row_height(self) -> int:
        """Pixels that the highest picture or label needs."""
        pictures = max(pixels.shape[1] for pixels in self.pixels) + 2 * FRAME
        return max([pictures, *(label.height for label in self.labels)])


@dataclass(frozen=True)
class _Band:
    """Blocks side by side."""

    blocks: list[_Placed]

    @property
    def width(self) -> int:
        return sum(block.width for block in self.blocks) + _BETWEEN * (len(self.blocks) - 1)

    @property
    def depths(self) -> tuple[int, int, int]:
        """Pixels for titles, heads of groups and words above columns."""
        return (
            max(block.title.height for block in self.blocks),
            max(head.height for block in self.blocks for head in block.heads),
            max(word.height for block in self.blocks for word in block.words),
        )

    @property
    def row_pitch(self) -> int:
        return max(block.row_height for block in self.blocks) + GAP

    @property
    def height(self) -> int:
        rows = max(block.rows for block in self.blocks)
        return sum(self.depths) + GAP // 2 + rows * self.row_pitch - GAP


def _bands(blocks: Sequence[_Placed], widest: int) -> list[_Band]:
    """Blocks in order, as many beside each other as fit."""
    bands: list[_Band] = []
    for block in blocks:
        if bands and bands[-1].width + _BETWEEN + block.width <= widest:
            bands[-1].blocks.append(block)
        else:
            bands.append(_Band([block]))
    return bands


def _draw_block(grid: Grid, band: _Band, placed: _Placed, left: int, top: int) -> None:
    """Draw a block with its upper left corner at (left, top), and note where its pictures lie."""
    draw = ImageDraw.Draw(grid.image)
    titles, heads, words = band.depths
    placed.title.draw(draw, left + placed.spans[0][0], top)
    for head, (start, end) in zip(placed.heads, placed.spans, strict=True):
        head.draw(draw, left + start, top + titles + heads - head.height, centred_in=end - start)
    first = top + titles + heads + words + GAP // 2
    pitch = band.row_pitch
    for row, label in enumerate(placed.labels):
        label.draw(draw, left, first + row * pitch + (pitch - GAP - label.height) // 2)
    for column, pixels, word, offset in zip(
        placed.block.columns, placed.pixels, placed.words, placed.lefts, strict=True
    ):
        height, width = pixels.shape[1:3]
        x = left + offset
        if column.given:
            bottom = first + placed.rows * pitch - GAP
            draw.rectangle((x, first - words - GAP // 2, x + width + 2 * FRAME - 1, bottom - 1), fill=GIVEN)
        word.draw(draw, x, first - GAP // 2 - word.height, centred_in=width + 2 * FRAME)
        for row, picture in enumerate(pixels):
            upper = first + row * pitch + (pitch - GAP - height) // 2
            box = (x + FRAME, upper, x + FRAME + width, upper + height)
            paste(grid.image, picture, box, bool(column.wrong is not None and column.wrong[row]))
            grid.boxes.append(box)


def _lit_blocks(blocks: Sequence[Block]) -> tuple[list[Block], str]:
    """The same blocks with pictures on the ground that :func:`lit` gives them, and what it says."""
    shown, remark = lit([to_bytes(column.images) for block in blocks for column in block.columns])
    images = iter(shown)

    def redone(group: Group) -> Group:
        columns = [replace(column, images=np.moveaxis(next(images), -1, -3)) for column in group.columns]
        return replace(group, columns=columns)

    return [replace(block, groups=[redone(group) for group in block.groups]) for block in blocks], remark


def block_table(
    blocks: Sequence[Block], *, title: str = "", note: str = "", tile: int = TILE, widest: int = WIDEST
) -> Grid:
    """Blocks of pictures on a page.

    Args:
        blocks: At least one, each with at least one picture.
        title: What the page shows.
        note: How it was made.
        tile: About how wide each picture becomes, in pixels.
        widest: Pixels across the page; a block that is wider stands alone.

    Returns:
        The grid; its boxes run over blocks, groups, columns, rows.

    Raises:
        UsageError: No pictures, or columns and labels of different length.
    """
    if not blocks or not all(block.columns and len(block.columns[0].images) for block in blocks):
        raise UsageError("got no images to show, expected at least one in every block")
    for block in blocks:
        rows = len(block.columns[0].images)
        lengths = [len(column.images) for column in block.columns] + ([len(block.labels)] if block.labels else [])
        lengths += [len(column.wrong) for column in block.columns if column.wrong is not None]
        if any(length != rows for length in lengths):
            raise UsageError(f"got columns and labels of {lengths} rows, expected {rows} in each")
    blocks, remark = _lit_blocks(blocks)
    bands = _bands([_Placed(block, tile) for block in blocks], widest)
    height = sum(band.height for band in bands) + _BETWEEN * (len(bands) - 1)
    page = sheet(max(band.width for band in bands), height, title, note, remark)
    grid, top = Grid(page.canvas, [], remark), page.top
    for band in bands:
        left = MARGIN
        for placed in band.blocks:
            _draw_block(grid, band, placed, left, top)
            left += placed.width + _BETWEEN
        top += band.height + _BETWEEN
    return grid


def strips(
    pictures: Mapping[str, Column],
    labels: Sequence[str] = (),
    *,
    title: str = "",
    tile: int = TILE,
    together: bool = False,
) -> list[Block]:
    """Each example's modalities side by side, in as many blocks beside each other as make a page of even sides.

    Args:
        pictures: Columns by the name of their modality, all of the same examples.
        labels: Words to the left of each example; none by default.
        title: Above the first block.
        tile: The width at which they will be drawn.
        together: Keep all examples in one block.

    Returns:
        Blocks for :func:`block_table`; examples run down the first, then down the next.
    """
    count = len(next(iter(pictures.values())).images)
    if together:
        return [_strip(pictures, labels, title, slice(0, count))]
    one = _Placed(_strip(pictures, labels, title, slice(0, count)), tile)
    fit = max(1, min((WIDEST + _BETWEEN) // (one.width + _BETWEEN), math.ceil(count / 4)))
    each = math.ceil(count / fit)
    return [
        _strip(pictures, labels, "" if start else title, slice(start, start + each)) for start in range(0, count, each)
    ]


def _strip(pictures: Mapping[str, Column], labels: Sequence[str], title: str, rows: slice) -> Block:
    groups = []
    for name, column in pictures.items():
        wrong = None if column.wrong is None else column.wrong[rows]
        groups.append(Group(name, [Column(column.images[rows], column.head, column.given, wrong)]))
    return Block(title, groups, labels[rows])

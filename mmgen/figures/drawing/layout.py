"""The layout of every page of pictures: bands of blocks, blocks of groups, groups of columns, columns of pictures.

Pictures are enlarged by whole factors and their places are known to the pixel, which matplotlib's axes do not promise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import ImageDraw

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import FRAME, GAP, MARGIN, TILE, Box, Grid, enlarge, lit, paste, sheet, to_bytes
from mmgen.figures.drawing.style import INK, MUTED, RULE, font
from mmgen.figures.drawing.text import Lines, column_width, wrap

__all__ = ["BETWEEN", "GIVEN", "WIDEST", "Block", "Column", "Group", "Words", "block_table", "fitted", "width_of"]

GIVEN = "#e4e7eb"
"""Behind columns of pictures that were given."""
WIDEST = 2200
"""Pixels across a page, about twice what a report shows."""
BETWEEN = 5 * GAP
"""Pixels between blocks."""
_UNDER = 4
"""Pixels between a frame and the words under it."""


class Words(Protocol):
    """A block of words or bars under a picture."""

    @property
    def height(self) -> int:
        """Return the height in pixels."""

    def draw(self, canvas: ImageDraw.ImageDraw, left: int, top: int, centred_in: int = 0) -> None:
        """Draw with the upper left corner at (left, top), or centred in ``centred_in`` pixels."""


@dataclass(frozen=True)
class Column:
    """A column of pictures, one for each row.

    Attributes:
        images: [R, C, H, W], or a list with None where a row has none.
        head: A word above them: "given", "drawn", "truth".
        is_source: They are what the rest was inferred from, and stand on grey.
        wrong: Bool [R] or None: the judge disagrees.
        words: For each row what stands under its picture, from top to bottom; none by default.
        least: Pixels that the column has at least; words then begin at its left edge and are not centred.
    """

    images: np.ndarray | Sequence[np.ndarray | None]
    head: str = ""
    is_source: bool = False
    wrong: np.ndarray | None = None
    words: Sequence[Sequence[Words]] = ()
    least: int = 0


@dataclass(frozen=True)
class Group:
    """Columns under one heading, such as drawn and true pictures of one modality."""

    head: str
    columns: Sequence[Column]


@dataclass(frozen=True)
class Block:
    """Groups of columns over the same rows.

    Attributes:
        title: What they have in common.
        groups: From left to right.
        labels: Words to the left of each row; none by default.
        subtitle: One more line, such as the share that the judge found right.
        gap: Pixels between columns.
        type_size: Pixels of the labels' type.
    """

    title: str
    groups: Sequence[Group]
    labels: Sequence[str] = ()
    subtitle: str = ""
    gap: int = 0
    type_size: int = 17

    @property
    def columns(self) -> list[Column]:
        """Return the columns from left to right."""
        return [column for group in self.groups for column in group.columns]


def fitted(text: str, size: int, width: int, colour: str = INK, bold: bool = False) -> Lines:
    """Wrap words in ``width`` pixels, set small enough that the longest stays whole where that is readable."""
    while size > 12 and any(font(size, bold).getlength(word) > width for word in text.split()):
        size -= 1
    return Lines(wrap(text, size, width, bold=bold, most=3), size, colour, bold)


def _labels(texts: Sequence[str], size: int) -> list[Lines]:
    """Wrap labels in a column that is wide enough for their words and, if possible, for four lines."""
    widest = 24 * size
    width = column_width(texts, size, 11 * size, widest)
    while width < widest and any(len(wrap(text, size, width)) > 4 for text in texts):
        width += 20
    return [Lines(wrap(text, size, width, most=8), size, INK) for text in texts]


@dataclass
class _Cell:
    """An enlarged picture with its place in the table: block, row and column."""

    pixels: np.ndarray
    wrong: bool
    words: Sequence[Words]
    place: tuple[int, int, int]
    box: Box = (0, 0, 0, 0)


class _Column:
    """A column with its width in pixels."""

    def __init__(self, column: Column, cells: Sequence[_Cell | None]) -> None:
        self.cells, self.is_source, self.centred = cells, column.is_source, not column.least
        widths = [cell.pixels.shape[1] + 2 * FRAME for cell in cells if cell is not None]
        self.width = max([column.least, *widths])
        self.head = fitted(column.head, 17, self.width, MUTED)


class _Placed:
    """A block with the places of its columns in pixels and its wrapped words."""

    def __init__(self, block: Block, columns: Sequence[_Column]) -> None:
        self.columns = columns
        self.labels = _labels(block.labels, block.type_size)
        left = max((label.width for label in self.labels), default=0)
        self.inner = left = left + 2 * GAP if left else 0
        # Groups of one picture merely belong together; others stand apart.
        spacing = (
            2 * GAP if any(len(group.columns) > 1 or group.columns[0].is_source for group in block.groups) else GAP
        )
        self.lefts: list[int] = []
        self.heads: list[tuple[Lines, int, int]] = []  # with their left and right edges
        numbered = iter(columns)
        for group in block.groups:
            start = left
            for _ in group.columns:
                self.lefts.append(left)
                left += next(numbered).width + block.gap
            left -= block.gap
            self.heads.append((fitted(group.head, 20, left - start), start, left))
            left += spacing
        self.width = left - spacing
        self.title = fitted(block.title, 23, self.width - self.inner, bold=True)
        self.subtitle = fitted(block.subtitle, 20, self.width - self.inner, MUTED)


class _Band:
    """Blocks side by side, with common heights and rows."""

    def __init__(self, blocks: Sequence[_Placed], gap: int) -> None:
        self.blocks = blocks
        self.width = sum(block.width for block in blocks) + BETWEEN * (len(blocks) - 1)
        self.titles = max(block.title.height for block in blocks), max(block.subtitle.height for block in blocks)
        self.heads = max(head.height for block in blocks for head, _, _ in block.heads)
        self.words = max(column.head.height for block in blocks for column in block.columns)
        top = sum(self.titles) + self.heads + self.words
        top += GAP // 2 if top else 0
        self.rows: list[tuple[int, int]] = []  # top, and the pixels of the highest picture with its frame
        for row in range(max(len(column.cells) for block in blocks for column in block.columns)):
            cells = [cell for block in blocks for c in block.columns for cell in c.cells[row : row + 1] if cell]
            height = max((cell.pixels.shape[0] for cell in cells), default=0) + 2 * FRAME
            under = max((sum(words.height for words in cell.words) for cell in cells), default=0)
            label = max((block.labels[row].height for block in blocks if row < len(block.labels)), default=0)
            height = height if under else max(height, label)
            self.rows.append((top, height))
            top += max(height + (_UNDER + under if under else 0), label) + gap
        self.height = top - gap

    def draw(self, grid: Grid, left: int, top: int) -> None:
        """Draw the band with its upper left corner at (left, top)."""
        draw = ImageDraw.Draw(grid.image)
        heads = top + sum(self.titles)
        for block in self.blocks:
            block.title.draw(draw, left + block.inner, top)
            block.subtitle.draw(draw, left + block.inner, top + self.titles[0])
            for label, (under, height) in zip(block.labels, self.rows, strict=False):
                label.draw(draw, left, top + under + max(0, height - label.height) // 2)
            for head, start, end in block.heads:
                head.draw(draw, left + start, heads + self.heads - head.height, centred_in=end - start)
            for column, offset in zip(block.columns, block.lefts, strict=True):
                self._draw_column(grid, draw, column, left + offset, top)
            left += block.width + BETWEEN

    def _draw_column(self, grid: Grid, draw: ImageDraw.ImageDraw, column: _Column, left: int, top: int) -> None:
        first = top + self.rows[0][0] - (GAP // 2 if self.rows[0][0] else 0)
        if column.is_source:
            bottom = top + sum(self.rows[len(column.cells) - 1])
            draw.rectangle((left, first - self.words, left + column.width - 1, bottom - 1), fill=GIVEN)
        column.head.draw(draw, left, first - column.head.height, centred_in=column.width)
        for cell, (row, height) in zip(column.cells, self.rows, strict=False):
            if cell is None:
                continue
            high, wide = cell.pixels.shape[:2]
            x, y = left + FRAME, top + row + (height - high) // 2
            cell.box = (x, y, x + wide, y + high)
            paste(grid.image, cell.pixels, cell.box, cell.wrong)
            under = top + row + height + _UNDER
            for words in cell.words:
                words.draw(draw, left, under, centred_in=wide + 2 * FRAME if column.centred else 0)
                under += words.height


def _measured(blocks: Sequence[Block], tile: int) -> tuple[list[_Placed], list[_Cell], str]:
    """Enlarge the pictures of a page, all on one background, and measure its blocks."""
    images = [image for block in blocks for column in block.columns for image in column.images if image is not None]
    shown, remark = lit([to_bytes(image[None]) for image in images])
    enlarged = iter(shown)
    placed, every = [], []
    for number, block in enumerate(blocks):
        columns = []
        for place, column in enumerate(block.columns):
            cells: list[_Cell | None] = []
            for row, image in enumerate(column.images):
                if image is None:
                    cells.append(None)
                    continue
                wrong = column.wrong is not None and bool(column.wrong[row])
                words = column.words[row] if column.words else ()
                cells.append(_Cell(enlarge(next(enlarged), tile)[0], wrong, words, (number, row, place)))
            columns.append(_Column(column, cells))
            every += [cell for cell in cells if cell is not None]
        placed.append(_Placed(block, columns))
    return placed, every, remark


def width_of(block: Block, tile: int = TILE) -> int:
    """Return the pixels that a block takes on a page."""
    return _measured([block], tile)[0][0].width


def _check(blocks: Sequence[Block]) -> None:
    if not blocks or not all(block.columns and len(block.columns[0].images) for block in blocks):
        raise UsageError("got no images to show, expected at least one in every block")
    for block in blocks:
        rows = len(block.columns[0].images)
        lengths = [len(column.images) for column in block.columns] + ([len(block.labels)] if block.labels else [])
        lengths += [len(column.wrong) for column in block.columns if column.wrong is not None]
        if any(length != rows for length in lengths):
            raise UsageError(f"got columns and labels of {lengths} rows, expected {rows} in each")


def block_table(
    blocks: Sequence[Block],
    *,
    title: str = "",
    note: str = "",
    tile: int = TILE,
    widest: float = WIDEST,
    gap: int = GAP,
    ruled: bool = False,
    order: Callable[[int, int, int], tuple[int, int, int]] = lambda block, row, column: (block, column, row),
) -> Grid:
    """Draw blocks of pictures in order, as many beside each other as fit.

    Args:
        blocks: At least one, each with at least one picture.
        title: What the page shows.
        note: How it was made.
        tile: About how wide each picture becomes, in pixels.
        widest: Pixels across the page; a block that is wider stands alone.
        gap: Pixels between rows.
        ruled: Draw a line above every row with a label.
        order: Key by which boxes are sorted; by default they run over blocks, columns, rows.

    Raises:
        UsageError: No pictures, or columns and labels of different length.
    """
    _check(blocks)
    placed, cells, remark = _measured(blocks, tile)
    rows: list[list[_Placed]] = []
    for block in placed:
        if rows and sum(each.width + BETWEEN for each in rows[-1]) + block.width <= widest:
            rows[-1].append(block)
        else:
            rows.append([block])
    bands = [_Band(row, gap) for row in rows]
    height = sum(band.height for band in bands) + BETWEEN * (len(bands) - 1)
    page = sheet(max(band.width for band in bands), height, title, note, remark)
    grid, top = Grid(page.canvas, [], remark), page.top
    draw = ImageDraw.Draw(page.canvas)
    for band in bands:
        band.draw(grid, MARGIN, top)
        for label, (row, _) in list(zip(band.blocks[0].labels, band.rows, strict=False))[1:] if ruled else ():
            if label.lines:  # rows without a label belong to the one above
                middle = top + row - gap // 2
                draw.line((MARGIN, middle, page.canvas.width - MARGIN, middle), fill=RULE)
        top += band.height + BETWEEN
    grid.boxes.extend(cell.box for cell in sorted(cells, key=lambda cell: order(*cell.place)))
    return grid

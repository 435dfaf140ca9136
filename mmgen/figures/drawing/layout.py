"""The layout of pages of pictures: bands of blocks, blocks of groups, groups of columns, columns of pictures.

Pictures are enlarged by whole factors and placed exactly to the pixel, which matplotlib's axes cannot do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from PIL import ImageDraw

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.page import (
    FRAME,
    GAP,
    MARGIN,
    TILE,
    Box,
    Grid,
    convert_to_rgb,
    enlarge,
    lighten_dark_images,
    make_sheet,
    paste_framed,
)
from mmgen.figures.drawing.style import INK, MUTED, RULE, load_font
from mmgen.figures.drawing.text import TextBlock, column_width, wrap_text

__all__ = [
    "BETWEEN",
    "SOURCE_GROUND",
    "WIDEST",
    "Block",
    "Column",
    "ColumnGroup",
    "CaptionPart",
    "block_table",
    "fit_text",
    "block_width",
]

SOURCE_GROUND = "#e4e7eb"
"""Background of columns of source pictures."""
WIDEST = 2200
"""Width of a page in pixels, about twice that in a report."""
BETWEEN = 5 * GAP
"""Pixels between blocks."""
_UNDER = 4
"""Pixels between a frame and the text under it."""


class CaptionPart(Protocol):
    """Protocol of a part of the caption under a picture, such as text or bars."""

    @property
    def height(self) -> int:
        """Height of this part of the caption in pixels."""

    def draw(self, canvas: ImageDraw.ImageDraw, left: int, top: int, centred_in: int = 0) -> None:
        """Draw this part with its upper left corner at (left, top), or each line centred in ``centred_in`` pixels."""


@dataclass(frozen=True)
class Column:
    """Column of pictures in a block, with one picture for each row.

    Attributes:
        images: Images [R, C, H, W], or a list with None for rows without a picture.
        head: Heading: "given", "drawn", "truth".
        is_source: Whether they are the sources of a translation, which have a grey background.
        wrong: Whether the classifier's prediction differs from the description, bool [R]; None without a classifier.
        words: Captions of each row from top to bottom; none by default.
        min_width: Minimal width in pixels; if set, captions start at the left edge instead of being centred.
    """

    images: np.ndarray | Sequence[np.ndarray | None]
    head: str = ""
    is_source: bool = False
    wrong: np.ndarray | None = None
    words: Sequence[Sequence[CaptionPart]] = ()
    min_width: int = 0


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of pictures under a common heading, such as drawn and true pictures of one modality."""

    head: str
    columns: Sequence[Column]


@dataclass(frozen=True)
class Block:
    """Block of pictures on a page: groups of columns that have the same rows.

    Attributes:
        title: Title above it.
        groups: Groups from left to right.
        labels: Text to the left of each row; none by default.
        subtitle: Second line of the title, such as the share of correct attributes.
        gap: Pixels between columns.
        type_size: Type size of the labels in pixels.
    """

    title: str
    groups: Sequence[ColumnGroup]
    labels: Sequence[str] = ()
    subtitle: str = ""
    gap: int = 0
    type_size: int = 17

    @property
    def columns(self) -> list[Column]:
        """Columns of all groups of the block, from left to right."""
        return [column for group in self.groups for column in group.columns]


def fit_text(text: str, size: int, width: int, colour: str = INK, bold: bool = False) -> TextBlock:
    """Wrap text into ``width`` pixels, in smaller type if its longest word needs it and stays readable."""
    while size > 12 and any(load_font(size, bold).getlength(word) > width for word in text.split()):
        size -= 1
    return TextBlock(wrap_text(text, size, width, bold=bold, max_lines=3), size, colour, bold)


def _wrap_labels(texts: Sequence[str], size: int) -> list[TextBlock]:
    """Wrap the labels of rows in a column that is wide enough for their longest words and, if possible, four lines."""
    widest = 24 * size
    width = column_width(texts, size, 11 * size, widest)
    while width < widest and any(len(wrap_text(text, size, width)) > 4 for text in texts):
        width += 20
    return [TextBlock(wrap_text(text, size, width, max_lines=8), size, INK) for text in texts]


@dataclass
class _Cell:
    """Enlarged picture on a page, with its place in the table (block, row, column) and its box in pixels."""

    pixels: np.ndarray
    wrong: bool
    words: Sequence[CaptionPart]
    place: tuple[int, int, int]
    box: Box = (0, 0, 0, 0)


class _SizedColumn:
    """Column of enlarged pictures, with its width in pixels."""

    def __init__(self, column: Column, cells: Sequence[_Cell | None]) -> None:
        self.cells, self.is_source, self.centred = cells, column.is_source, not column.min_width
        widths = [cell.pixels.shape[1] + 2 * FRAME for cell in cells if cell is not None]
        self.width = max([column.min_width, *widths])
        self.head = fit_text(column.head, 17, self.width, MUTED)


class _PlacedBlock:
    """Block with its wrapped text and the positions of its columns in pixels."""

    def __init__(self, block: Block, columns: Sequence[_SizedColumn]) -> None:
        self.columns = columns
        self.labels = _wrap_labels(block.labels, block.type_size)
        left = max((label.width for label in self.labels), default=0)
        self.inner = left = left + 2 * GAP if left else 0
        # Groups of one picture merely belong together; others stand apart.
        spacing = (
            2 * GAP if any(len(group.columns) > 1 or group.columns[0].is_source for group in block.groups) else GAP
        )
        self.lefts: list[int] = []
        self.heads: list[tuple[TextBlock, int, int]] = []  # with their left and right edges
        numbered = iter(columns)
        for group in block.groups:
            start = left
            for _ in group.columns:
                self.lefts.append(left)
                left += next(numbered).width + block.gap
            left -= block.gap
            self.heads.append((fit_text(group.head, 20, left - start), start, left))
            left += spacing
        self.width = left - spacing
        self.title = fit_text(block.title, 23, self.width - self.inner, bold=True)
        self.subtitle = fit_text(block.subtitle, 20, self.width - self.inner, MUTED)


class _Band:
    """Blocks that stand side by side on a page, whose rows and headings have equal heights."""

    def __init__(self, blocks: Sequence[_PlacedBlock], gap: int) -> None:
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
        """Draw the band's blocks with the upper left corner at (left, top)."""
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

    def _draw_column(self, grid: Grid, draw: ImageDraw.ImageDraw, column: _SizedColumn, left: int, top: int) -> None:
        first = top + self.rows[0][0] - (GAP // 2 if self.rows[0][0] else 0)
        if column.is_source:
            bottom = top + sum(self.rows[len(column.cells) - 1])
            draw.rectangle((left, first - self.words, left + column.width - 1, bottom - 1), fill=SOURCE_GROUND)
        column.head.draw(draw, left, first - column.head.height, centred_in=column.width)
        for cell, (row, height) in zip(column.cells, self.rows, strict=False):
            if cell is None:
                continue
            high, wide = cell.pixels.shape[:2]
            x, y = left + FRAME, top + row + (height - high) // 2
            cell.box = (x, y, x + wide, y + high)
            paste_framed(grid.image, cell.pixels, cell.box, cell.wrong)
            under = top + row + height + _UNDER
            for words in cell.words:
                words.draw(draw, left, under, centred_in=wide + 2 * FRAME if column.centred else 0)
                under += words.height


def _measure_blocks(blocks: Sequence[Block], tile: int) -> tuple[list[_PlacedBlock], list[_Cell], str]:
    """Enlarge the pictures of a page and measure its blocks; also return a remark if dark pictures were lightened."""
    images = [image for block in blocks for column in block.columns for image in column.images if image is not None]
    shown, remark = lighten_dark_images([convert_to_rgb(image[None]) for image in images])
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
            columns.append(_SizedColumn(column, cells))
            every += [cell for cell in cells if cell is not None]
        placed.append(_PlacedBlock(block, columns))
    return placed, every, remark


def block_width(block: Block, tile: int = TILE) -> int:
    """Return the width that a block of pictures takes on a page, in pixels."""
    return _measure_blocks([block], tile)[0][0].width


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
    """Draw a page of blocks of pictures, in order, with as many side by side as fit.

    Args:
        blocks: One or more blocks, each with at least one picture.
        title: Title of the page.
        note: Explanation below the pictures.
        tile: Approximate width of each picture in pixels.
        widest: Width of the page in pixels; a wider block has a band of its own.
        gap: Pixels between rows.
        ruled: Whether to draw a line above each row with a label.
        order: Key by which boxes are sorted, from (block, row, column); by default blocks, columns, rows.

    Raises:
        UsageError: There are no pictures, or columns and labels have different lengths.
    """
    _check_rows(blocks)
    placed, cells, remark = _measure_blocks(blocks, tile)
    rows: list[list[_PlacedBlock]] = []
    for block in placed:
        if rows and sum(each.width + BETWEEN for each in rows[-1]) + block.width <= widest:
            rows[-1].append(block)
        else:
            rows.append([block])
    bands = [_Band(row, gap) for row in rows]
    height = sum(band.height for band in bands) + BETWEEN * (len(bands) - 1)
    page = make_sheet(max(band.width for band in bands), height, title, note, remark)
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

"""Grids of images: samples of one description, tables of descriptions by model, contact sheets.

A picture that the judge reads differently from what was asked wears a red frame (VE Fig. 3). The geometry of a grid is
part of its value: ``boxes`` says where each image lies, to the pixel.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
    enlarge,
    frame_colour,
    lit,
    paste,
    sheet,
    to_bytes,
)
from mmgen.figures.drawing.style import INK, MUTED, WRONG, font
from mmgen.figures.drawing.text import Lines, column_width, wrap

__all__ = ["FRAME", "GAP", "Grid", "Panel", "frame_colour", "image_grid", "image_table", "to_bytes"]


@dataclass(frozen=True)
class Panel:
    """One block of an image table.

    Attributes:
        title: What drew these images.
        images: [R, n, C, H, W], one row per description.
        wrong: Bool [R, n] or None: the judge disagrees.
        subtitle: One more line, such as the share that the judge found right.
    """

    title: str
    images: np.ndarray
    wrong: np.ndarray | None = None
    subtitle: str = ""


@dataclass(frozen=True)
class _Cells:
    """Where images of one size go: cells of ``pitch`` pixels in rows and columns from an origin."""

    rows: int
    columns: int
    height: int
    width: int
    below: int = 0
    """Pixels kept under each image for its caption."""

    @property
    def pitch(self) -> tuple[int, int]:
        return self.height + 2 * FRAME + self.below + GAP, self.width + 2 * FRAME + GAP

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) of all cells, without the gap after the last."""
        return self.rows * self.pitch[0] - GAP, self.columns * self.pitch[1] - GAP

    def box(self, row: int, column: int, origin: tuple[int, int]) -> Box:
        """Box of an image; ``origin`` is (left, top) of the first cell."""
        left = origin[0] + column * self.pitch[1] + FRAME
        top = origin[1] + row * self.pitch[0] + FRAME
        return left, top, left + self.width, top + self.height


def _checked_wrong(wrong: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    if wrong is None:
        return np.zeros(shape, bool)
    if wrong.shape != shape:
        raise UsageError(f"got {list(wrong.shape)} verdicts of the judge, expected {list(shape)}, one for each image")
    return wrong.astype(bool)


def _captions(captions: Sequence[str], remarks: Sequence[str], width: int) -> list[tuple[Lines, Lines]]:
    """Captions and red remarks, set small enough that their longest words stay whole where that is readable."""
    words = {word for text in (*captions, *remarks) for word in text.split()}
    size = 17
    while size > 13 and any(font(size).getlength(word) > width for word in words):
        size -= 1
    return [
        (Lines(wrap(caption, size, width, most=4), size, MUTED), Lines(wrap(remark, size, width, most=3), size, WRONG))
        for caption, remark in zip(captions, remarks, strict=True)
    ]


def _columns(count: int) -> int:
    """Columns for a grid about twice as wide as high, all rows full where that is near enough."""
    wanted = math.sqrt(2 * count)
    full = [n for n in range(1, count + 1) if count % n == 0 and 0.65 * wanted <= n <= 1.6 * wanted]
    return min(full, key=lambda n: abs(n - wanted)) if full else math.ceil(wanted)


def image_grid(
    images: np.ndarray,
    *,
    columns: int | None = None,
    captions: Sequence[str] | None = None,
    remarks: Sequence[str] | None = None,
    wrong: np.ndarray | None = None,
    title: str = "",
    note: str = "",
    tile: int = TILE,
) -> Grid:
    """Images row by row.

    Args:
        images: [n, C, H, W], n at least 1.
        columns: Images in a row; by default the grid comes out about twice as wide as high.
        captions: Words under each image.
        remarks: Words in red under those, such as what the judge read instead.
        wrong: Bool [n]; True frames the image red.
        title: What the picture shows.
        note: How it was made: number, seed, judge.
        tile: About how wide each image becomes, in pixels; captions that are sentences want more.

    Raises:
        UsageError: No images, or lengths that do not match.
    """
    count = len(images)
    if not count:
        raise UsageError("got no images to show, expected at least one")
    for what, texts in (("captions", captions), ("remarks", remarks)):
        if texts is not None and len(texts) != count:
            raise UsageError(f"got {len(texts)} {what}, expected {count}, one for each image")
    verdicts = _checked_wrong(wrong, (count,))
    (shown,), remark = lit([to_bytes(images)])
    pixels = enlarge(shown, tile)
    width = pixels.shape[2]
    columns = min(count, columns or _columns(count))
    below = _captions(captions or [""] * count, remarks or [""] * count, width + 2 * FRAME)
    deepest = max(caption.height + remark.height for caption, remark in below)
    cells = _Cells(math.ceil(count / columns), columns, pixels.shape[1], width, deepest + 4 * bool(deepest))
    page = sheet(cells.size[1], cells.size[0], title, note, remark)
    draw = ImageDraw.Draw(page.canvas)
    boxes = []
    for index in range(count):
        box = cells.box(index // columns, index % columns, (MARGIN, page.top))
        paste(page.canvas, pixels[index], box, bool(verdicts[index]))
        under = box[3] + FRAME + 2
        for text in below[index]:
            text.draw(draw, box[0] - FRAME, under, centred_in=width + 2 * FRAME)
            under += text.height
        boxes.append(box)
    return Grid(page.canvas, boxes, remark)


def _labels(labels: Sequence[str]) -> list[Lines]:
    width = column_width(labels, 22, 240, 520)
    while width < 520 and any(len(wrap(label, 22, width)) > 4 for label in labels):
        width += 20
    return [Lines(wrap(label, 22, width, most=4), 22, INK) for label in labels]


def _heads(panels: Sequence[Panel], width: int) -> list[tuple[Lines, Lines]]:
    return [
        (
            Lines(wrap(p.title, 23, width, bold=True, most=3), 23, INK, bold=True),
            Lines(wrap(p.subtitle, 20, width, most=3), 20, MUTED),
        )
        for p in panels
    ]


def image_table(panels: Sequence[Panel], row_labels: Sequence[str], *, title: str = "", note: str = "") -> Grid:
    """The same descriptions drawn by several models: a row per description, a block of columns per model.

    Args:
        panels: At least one; all with the same numbers of rows and the same image size.
        row_labels: The description of each row, [R].
        title: What the picture shows.
        note: How it was made.

    Returns:
        The grid; its boxes run over panels, then rows, then columns.

    Raises:
        UsageError: No panels, or shapes that do not match.
    """
    if not panels or not row_labels:
        raise UsageError("got no images to show, expected at least one panel and one row")
    for panel in panels:
        if len(panel.images) != len(row_labels) or panel.images.ndim != 5:
            raise UsageError(f"got images {list(panel.images.shape)}, expected [{len(row_labels)}, n, C, H, W]")
    blocks = []
    every, remark = lit([to_bytes(panel.images.reshape(-1, *panel.images.shape[2:])) for panel in panels])
    for panel, shown in zip(panels, every, strict=True):
        rows, n = panel.images.shape[:2]
        pixels = enlarge(shown)
        blocks.append((pixels, _Cells(rows, n, *pixels.shape[1:3]), _checked_wrong(panel.wrong, (rows, n))))
    labels = _labels(row_labels)
    label_width = max(label.width for label in labels) + 2 * GAP
    heads = _heads(panels, min(cells.size[1] for _, cells, _ in blocks))
    head_height = max(a.height for a, _ in heads) + max(b.height for _, b in heads) + GAP
    between = 4 * GAP
    width = label_width + sum(cells.size[1] for _, cells, _ in blocks) + between * (len(blocks) - 1)
    page = sheet(width, head_height + blocks[0][1].size[0], title, note, remark)
    draw = ImageDraw.Draw(page.canvas)
    top = page.top + head_height
    for row, label in enumerate(labels):
        middle = top + row * blocks[0][1].pitch[0] + (blocks[0][1].pitch[0] - GAP - label.height) // 2
        label.draw(draw, MARGIN, middle)
    boxes, left = [], MARGIN + label_width
    for (pixels, cells, verdicts), (head, subhead) in zip(blocks, heads, strict=True):
        head.draw(draw, left, page.top)
        subhead.draw(draw, left, page.top + max(other.height for other, _ in heads))
        for index in range(cells.rows * cells.columns):
            row, column = divmod(index, cells.columns)
            boxes.append(cells.box(row, column, (left, top)))
            paste(page.canvas, pixels[index], boxes[-1], bool(verdicts[row, column]))
        left += cells.size[1] + between
    return Grid(page.canvas, boxes, remark)

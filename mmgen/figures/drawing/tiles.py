"""Tables of pictures with texts: under each image what was said with it, and how sure the model was of every word."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from PIL import Image, ImageDraw

from mmgen.core.errors import UsageError
from mmgen.descriptions import TextVocabulary, Vocabulary
from mmgen.figures.drawing.page import FRAME, GAP, MARGIN, SENTENCE_TILE, Grid, enlarge, lit, paste, sheet, to_bytes
from mmgen.figures.drawing.style import INK, MUTED, RULE, WRONG
from mmgen.figures.drawing.text import Lines, MarkedLines, column_width, wrap, wrap_marked
from mmgen.figures.drawing.words import Text, WordPanels
from mmgen.generation.draws import Draws
from mmgen.generation.texts import words_of

__all__ = ["Tile", "TileRow", "spoken_tiles", "tile_table"]

_NARROWEST = 276
"""Pixels that word histograms need; images stand above them."""
_LABEL = 230
_WIDEST_LABEL = 520
_SPACE = 8


@dataclass(frozen=True)
class Tile:
    """An image and what stands under it.

    Attributes:
        image: [C, H, W].
        caption: Words under the image.
        marked: Which of them stand out, one for each word; none by default.
        wrong: The judge disagrees: the frame is red.
        remark: Words in red under the caption.
        text: Its word histograms, under everything else.
    """

    image: np.ndarray
    caption: Sequence[str] = ()
    marked: Sequence[bool] = ()
    wrong: bool = False
    remark: str = ""
    text: Text | None = None


@dataclass(frozen=True)
class TileRow:
    """A row of a table.

    Attributes:
        label: Words to its left.
        blocks: For each block its tiles; no row has more of them than the first.
    """

    label: str
    blocks: Sequence[Sequence[Tile]]


@dataclass(frozen=True)
class _Row:
    """A row, measured: its words wrapped, its depths known."""

    label: Lines
    tiles: list[list[tuple[Tile, np.ndarray, MarkedLines, Lines]]]
    panels: WordPanels | None
    image_height: int = field(init=False)
    words_height: int = field(init=False)

    def __post_init__(self) -> None:
        every = [tile for block in self.tiles for tile in block]
        object.__setattr__(self, "image_height", max((pixels.shape[0] for _, pixels, _, _ in every), default=0))
        object.__setattr__(self, "words_height", max((c.height + r.height for _, _, c, r in every), default=0))

    @property
    def height(self) -> int:
        below = self.words_height + (_SPACE if self.words_height else 0)
        below += self.panels.height + _SPACE if self.panels else 0
        return max(self.image_height + 2 * FRAME + below, self.label.height)


def _lit_rows(rows: Sequence[TileRow]) -> tuple[list[TileRow], str]:
    """The same rows with images on the ground that :func:`lit` gives them, and what it says."""
    shown, remark = lit([to_bytes(tile.image[None]) for row in rows for block in row.blocks for tile in block])
    images = iter(shown)

    def redone(tile: Tile) -> Tile:
        return replace(tile, image=np.moveaxis(next(images)[0], -1, 0))

    return [replace(row, blocks=[[redone(tile) for tile in block] for block in row.blocks]) for row in rows], remark


def _measured(row: TileRow, width: int, label: int, info: TextVocabulary | None, attributes: Vocabulary | None) -> _Row:
    tiles = []
    for block in row.blocks:
        measured = []
        for tile in block:
            marked = tile.marked or [False] * len(tile.caption)
            caption = wrap_marked(tile.caption, marked, 18, width)
            remark = Lines(wrap(tile.remark, 18, width, most=3), 18, WRONG)
            measured.append((tile, enlarge(to_bytes(tile.image[None]), SENTENCE_TILE)[0], caption, remark))
        tiles.append(measured)
    panels = None
    if any(tile.text is not None for block in row.blocks for tile in block):
        if info is None:
            raise UsageError("got texts without their vocabulary, expected both")
        panels = WordPanels(info, attributes, width)
    return _Row(Lines(wrap(row.label, 22, label, most=8), 22, INK), tiles, panels)


def _draw_row(
    canvas: Image.Image, row: _Row, lefts: Sequence[Sequence[int]], top: int, width: int
) -> list[tuple[int, int, int, int]]:
    draw = ImageDraw.Draw(canvas)
    row.label.draw(draw, MARGIN, top + FRAME)
    boxes = []
    for block, columns in zip(row.tiles, lefts, strict=True):
        for (tile, pixels, caption, remark), left in zip(block, columns, strict=False):
            height, across = pixels.shape[:2]
            x, y = left + FRAME, top + FRAME + (row.image_height - height) // 2
            boxes.append((x, y, x + across, y + height))
            paste(canvas, pixels, boxes[-1], tile.wrong)
            under = top + row.image_height + 2 * FRAME + _SPACE
            caption.draw(draw, left, under)
            remark.draw(draw, left, under + caption.height)
            if tile.text is not None and row.panels is not None:
                under += row.words_height + (_SPACE if row.words_height else 0)
                row.panels.draw(draw, tile.text, left, under)
    return boxes


def tile_table(
    rows: Sequence[TileRow],
    *,
    heads: Sequence[tuple[str, str]] = (),
    info: TextVocabulary | None = None,
    attributes: Vocabulary | None = None,
    title: str = "",
    note: str = "",
) -> Grid:
    """Rows of pictures in blocks.

    Args:
        rows: At least one, with at least one tile.
        heads: Title and subtitle of each block; none for a table without heads.
        info: Vocabulary of the texts, where tiles have word histograms.
        attributes: What the positions of the texts spell.
        title: What the picture shows.
        note: How it was made.

    Returns:
        The grid; its boxes run over rows, then blocks, then tiles.

    Raises:
        UsageError: No tiles, or rows that do not match.
    """
    shape = [len(block) for block in rows[0].blocks] if rows else []
    if not sum(shape):
        raise UsageError("got no images to show, expected at least one")
    for given in rows:
        lengths = [len(block) for block in given.blocks]
        if len(lengths) != len(shape) or any(n > most for n, most in zip(lengths, shape, strict=True)):
            raise UsageError(f"got a row of {lengths} images, expected at most {shape}, as in the first row")
    first = next(tile for block in rows[0].blocks for tile in block)
    width = enlarge(to_bytes(first.image[None]), SENTENCE_TILE).shape[2] + 2 * FRAME
    width = max(width, _NARROWEST)
    label = column_width([row.label for row in rows], 22, _LABEL, _WIDEST_LABEL)
    lit_rows, remark = _lit_rows(rows)
    measured = [_measured(row, width, label, info, attributes) for row in lit_rows]
    labels = max(row.label.width for row in measured)
    between, pitch = 4 * GAP, width + 2 * GAP
    lefts, left = [], MARGIN + (labels + 2 * GAP if labels else 0)
    for count in shape:
        lefts.append([left + i * pitch for i in range(count)])
        left += count * pitch - 2 * GAP + between
    spans = [columns[-1] + width - columns[0] for columns in lefts]
    titles = [
        (
            Lines(wrap(head, 23, span, bold=True, most=3), 23, INK, bold=True),
            Lines(wrap(sub, 20, span, most=3), 20, MUTED),
        )
        for (head, sub), span in zip(heads, spans, strict=False)
    ]
    head_height = max((a.height for a, _ in titles), default=0) + max((b.height for _, b in titles), default=0)
    head_height += GAP if head_height else 0
    height = head_height + sum(row.height for row in measured) + 3 * GAP * (len(rows) - 1)
    page = sheet(left - between - MARGIN, height, title, note, remark)
    draw = ImageDraw.Draw(page.canvas)
    for (head, sub), columns in zip(titles, lefts, strict=False):
        head.draw(draw, columns[0], page.top)
        sub.draw(draw, columns[0], page.top + max(other.height for other, _ in titles))
    boxes, top = [], page.top + head_height
    for number, row in enumerate(measured):
        if number and row.label.lines:  # rows without a label belong to the one above
            middle = top - 3 * GAP // 2
            draw.line((MARGIN, middle, page.canvas.width - MARGIN, middle), fill=RULE)
        boxes += _draw_row(page.canvas, row, lefts, top, width)
        top += row.height + 3 * GAP
    return Grid(page.canvas, boxes, remark)


def spoken_tiles(drawn: Draws, row: int, text: TextVocabulary, info: Vocabulary | None, sampled: bool) -> list[Tile]:
    """Images drawn for one description with the texts that came with them; words that were not asked for stand out.

    Args:
        drawn: From a model that generates texts.
        row: Which description.
        text: The text that it generates.
        info: The attributes' words, for what the judge sees instead.
        sampled: Show draws from p(image|z) instead of its means.
    """
    assert drawn.words is not None
    wanted = words_of(drawn.asked_words[row], text) if drawn.asked_words is not None else []
    tiles = []
    for i, image in enumerate((drawn.sampled if sampled else drawn.means)[row]):
        said = words_of(drawn.words[row, i], text)
        marked = [bool(wanted) and (place >= len(wanted) or wanted[place] != word) for place, word in enumerate(said)]
        wrong, remark = False, ""
        if drawn.judged is not None and drawn.wrong is not None and info is not None:
            wrong = bool(drawn.wrong[row, i])
            remark = drawn.remark(row, i, info)
        tiles.append(Tile(image, said or ["–"], marked, wrong, remark))
    return tiles

"""Pages of pictures: samples of one description, descriptions by model, pictures with words under them.

A picture that the judge reads differently from the description wears a red frame (VE Fig. 3). The geometry of a page is
part of its value: ``boxes`` says where each picture lies, to the pixel.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import ImageDraw

from mmgen.core.errors import UsageError
from mmgen.descriptions import TextVocabulary, Vocabulary
from mmgen.figures.drawing.layout import Block, Column, Group, Words, block_table, fitted
from mmgen.figures.drawing.page import FRAME, GAP, SENTENCE_TILE, TILE, Grid, enlarge, to_bytes
from mmgen.figures.drawing.style import MUTED, WRONG, font
from mmgen.figures.drawing.text import Lines, wrap, wrap_marked
from mmgen.figures.drawing.words import Text, WordPanels

__all__ = ["Panel", "Tile", "TileRow", "image_grid", "image_table", "tile_table"]

_NARROWEST = 276
"""Pixels that word histograms need; images stand above them."""
_NO_IMAGES = "got no images to show, expected at least one"


def _by_rows(block: int, row: int, column: int) -> tuple[int, int, int]:
    return block, row, column


def _width(image: np.ndarray, tile: int) -> int:
    """Return the pixels of an image [C, H, W] on a page, with its frame."""
    return int(enlarge(to_bytes(image[None]), tile).shape[2]) + 2 * FRAME


def _verdicts(wrong: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    if wrong is None:
        return np.zeros(shape, bool)
    if wrong.shape != shape:
        raise UsageError(f"got {list(wrong.shape)} verdicts of the judge, expected {list(shape)}, one for each image")
    return wrong.astype(bool)


def _default_columns(count: int) -> int:
    """Return the columns of a grid about twice as wide as high, all rows full where that is near enough."""
    best = math.sqrt(2 * count)
    full = [n for n in range(1, count + 1) if count % n == 0 and 0.65 * best <= n <= 1.6 * best]
    return min(full, key=lambda n: abs(n - best)) if full else math.ceil(best)


def _captions(captions: Sequence[str], remarks: Sequence[str], width: int) -> list[tuple[Lines, Lines]]:
    """Wrap captions and red remarks, set small enough for their longest words where that is readable."""
    words = {word for text in (*captions, *remarks) for word in text.split()}
    size = 17
    while size > 13 and any(font(size).getlength(word) > width for word in words):
        size -= 1
    return [
        (Lines(wrap(caption, size, width, most=4), size, MUTED), Lines(wrap(remark, size, width, most=3), size, WRONG))
        for caption, remark in zip(captions, remarks, strict=True)
    ]


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
    """Draw images row by row.

    Args:
        images: [n, C, H, W], n at least 1.
        columns: Images in a row; by default the grid comes out about twice as wide as high.
        captions: Words under each image.
        remarks: Words in red under those, such as what the judge read instead.
        wrong: Bool [n]; True frames the image red.
        title: What the picture shows.
        note: How it was made: number, seed, judge.
        tile: About how wide each image becomes, in pixels; captions that are sentences need more.

    Raises:
        UsageError: No images, or lengths that do not match.
    """
    count = len(images)
    if not count:
        raise UsageError(_NO_IMAGES)
    for what, texts in (("captions", captions), ("remarks", remarks)):
        if texts is not None and len(texts) != count:
            raise UsageError(f"got {len(texts)} {what}, expected {count}, one for each image")
    verdicts = _verdicts(wrong, (count,))
    words = _captions(captions or [""] * count, remarks or [""] * count, _width(images[0], tile))
    across = min(count, columns or _default_columns(count))
    rows = math.ceil(count / across)

    def column(start: int) -> Column:
        own = range(start, rows * across, across)
        return Column(
            [images[i] if i < count else None for i in own],
            wrong=np.array([i < count and verdicts[i] for i in own]),
            words=[words[i] if i < count else () for i in own],
        )

    block = Block("", [Group("", [column(start) for start in range(across)])], gap=GAP)
    return block_table([block], title=title, note=note, tile=tile, order=_by_rows)


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


def image_table(panels: Sequence[Panel], row_labels: Sequence[str], *, title: str = "", note: str = "") -> Grid:
    """Draw the images of several models for the same descriptions: a row per description, a block per model.

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
    blocks: list[Block] = []
    for panel in panels:
        if len(panel.images) != len(row_labels) or panel.images.ndim != 5:
            raise UsageError(f"got images {list(panel.images.shape)}, expected [{len(row_labels)}, n, C, H, W]")
        verdicts = _verdicts(panel.wrong, panel.images.shape[:2])
        columns = [Column(panel.images[:, i], wrong=verdicts[:, i]) for i in range(panel.images.shape[1])]
        labels = () if blocks else row_labels
        blocks.append(Block(panel.title, [Group("", columns)], labels, panel.subtitle, gap=GAP, type_size=22))
    return block_table(blocks, title=title, note=note, widest=math.inf, order=_by_rows)


@dataclass(frozen=True)
class Tile:
    """An image and the words under it.

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
class _Histograms:
    """Word histograms as words under a picture."""

    panels: WordPanels
    text: Text

    @property
    def height(self) -> int:
        return self.panels.height

    def draw(self, canvas: ImageDraw.ImageDraw, left: int, top: int, centred_in: int = 0) -> None:
        self.panels.draw(canvas, self.text, left, top)


def tile_table(
    rows: Sequence[TileRow],
    *,
    heads: Sequence[tuple[str, str]] = (),
    info: TextVocabulary | None = None,
    attributes: Vocabulary | None = None,
    title: str = "",
    note: str = "",
) -> Grid:
    """Draw rows of pictures with words under them, in blocks.

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
        raise UsageError(_NO_IMAGES)
    for row in rows:
        lengths = [len(block) for block in row.blocks]
        if len(lengths) != len(shape) or any(n > most for n, most in zip(lengths, shape, strict=True)):
            raise UsageError(f"got a row of {lengths} images, expected at most {shape}, as in the first row")
    first = next(tile for block in rows[0].blocks for tile in block)
    width = max(_width(first.image, SENTENCE_TILE), _NARROWEST)

    def words(tile: Tile) -> list[Words]:
        caption = wrap_marked(tile.caption, tile.marked or [False] * len(tile.caption), 18, width)
        under: list[Words] = [caption, fitted(tile.remark, 18, width, WRONG)]
        if tile.text is None:
            return under
        if info is None:
            raise UsageError("got texts without their vocabulary, expected both")
        return [*under, _Histograms(WordPanels(info, attributes, width), tile.text)]

    def column(number: int, place: int) -> Column:
        tiles = [row.blocks[number][place] if place < len(row.blocks[number]) else None for row in rows]
        return Column(
            [None if tile is None else tile.image for tile in tiles],
            wrong=np.array([tile is not None and tile.wrong for tile in tiles]),
            words=[words(tile) if tile else () for tile in tiles],
            least=width,
        )

    blocks = []
    for number, count in enumerate(shape):
        head, subtitle = heads[number] if number < len(heads) else ("", "")
        groups = [Group("", [column(number, place) for place in range(count)])]
        labels = () if number else [row.label for row in rows]
        blocks.append(Block(head, groups, labels, subtitle, gap=2 * GAP, type_size=22))
    return block_table(
        blocks, title=title, note=note, tile=SENTENCE_TILE, widest=math.inf, gap=3 * GAP, ruled=True,
        order=lambda block, row, column: (row, block, column),
    )  # fmt: skip

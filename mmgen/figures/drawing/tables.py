"""Tables of pictures: grids of images, descriptions by posterior, images with text under them.

A picture has a red frame if the classifier's prediction differs from the description (VE Fig. 3). The ``boxes`` of a
page give the exact position of each picture.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.descriptions import TextVocabulary, Vocabulary
from mmgen.figures.drawing.blocks import Block, Column, Line, picture_page, text_lines
from mmgen.figures.drawing.page import FRAME, SENTENCE_TILE, SIZE, TILE, Grid, longest_word, wrap_text
from mmgen.figures.drawing.style import INK, MUTED, WRONG
from mmgen.figures.drawing.words import NARROWEST, TextWithDistributions, has_histograms, histogram_lines

_NO_IMAGES = "got no images to show, expected at least one"
_TALLEST = 12
"""Most examples below each other in a block of examples of several modalities."""


def _picture_width(image: np.ndarray, tile: int) -> int:
    """Return the width that an image [C, H, W] takes on a page with its frame, in pixels."""
    return image.shape[-1] * max(1, round(tile / max(image.shape[-2:]))) + 2 * FRAME


def _check_wrong_mask(wrong: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    if wrong is None:
        return np.zeros(shape, bool)
    if wrong.shape != shape:
        raise UsageError(f"wrong got an array {list(wrong.shape)}, expected {list(shape)}, one value for each image")
    return wrong.astype(bool)


def _default_columns(count: int) -> int:
    """Choose the number of columns of a grid of ``count`` images, about twice as wide as high."""
    best = math.sqrt(2 * count)
    full = [n for n in range(1, count + 1) if count % n == 0 and 0.65 * best <= n <= 1.6 * best]
    return min(full, key=lambda n: abs(n - best)) if full else math.ceil(best)


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
    """Draw a grid of images, row by row, with optional captions, remarks and red frames.

    Args:
        images: Images [n, C, H, W], n at least 1.
        columns: Images in a row; by default for a grid about twice as wide as high.
        captions: Text under each image.
        remarks: Red text under the caption, such as the classifier's predictions.
        wrong: Whether to frame each image red, bool [n].
        title: Title of the picture.
        note: Explanation below it: number, seed, classifier.
        tile: Approximate width of each image in pixels.

    Raises:
        UsageError: There are no images, or lengths do not match.
    """
    count = len(images)
    if not count:
        raise UsageError(_NO_IMAGES)
    for what, texts in (("captions", captions), ("remarks", remarks)):
        if texts is not None and len(texts) != count:
            raise UsageError(f"got {len(texts)} {what}, expected {count}, one for each image")
    verdicts = _check_wrong_mask(wrong, (count,))
    width = max(_picture_width(images[0], tile), longest_word([*(captions or ()), *(remarks or ())], SIZE))
    lines = [
        [*text_lines(caption, width, max_lines=6), *text_lines(remark, width, WRONG, 4)]
        for caption, remark in zip(captions or [""] * count, remarks or [""] * count, strict=True)
    ]
    across = min(count, columns or _default_columns(count))
    every = math.ceil(count / across) * across

    def column(start: int) -> Column:
        own = range(start, every, across)
        return Column(
            [images[i] if i < count else None for i in own],
            wrong=np.array([i < count and verdicts[i] for i in own]),
            captions=[lines[i] if i < count else () for i in own],
            width=math.ceil(width),
        )

    return picture_page([Block("", [*map(column, range(across))])], title=title, note=note, tile=tile)


@dataclass(frozen=True)
class Panel:
    """Block of an image table: the images of one model or posterior for all descriptions.

    Attributes:
        title: The model or posterior of these images.
        images: Images [R, n, C, H, W], one row per description.
        wrong: Whether the classifier disagrees with the description, bool [R, n]; None without a classifier.
        subtitle: Second line of the title, such as the share of correct attributes.
        shown: Whether there is an image at each place, bool [R, n]; None for an image everywhere.
    """

    title: str
    images: np.ndarray
    wrong: np.ndarray | None = None
    subtitle: str = ""
    shown: np.ndarray | None = None


def image_table(panels: Sequence[Panel], row_labels: Sequence[str], *, title: str = "", note: str = "") -> Grid:
    """Draw images of several models for the same descriptions: a row for each description, a block for each model.

    Args:
        panels: One or more panels with the same number of rows and the same image size.
        row_labels: The description of each row, [R].
        title: Title of the picture.
        note: Explanation below it.

    Returns:
        The grid; its boxes run over panels, then rows, then columns.

    Raises:
        UsageError: There are no panels, or shapes do not match.
    """
    if not panels or not row_labels:
        raise UsageError("got no images to show, expected at least one panel and one row; leave this table out")
    blocks: list[Block] = []
    for panel in panels:
        if len(panel.images) != len(row_labels) or panel.images.ndim != 5:
            raise UsageError(f"got images {list(panel.images.shape)}, expected [{len(row_labels)}, n, C, H, W]")
        verdicts = _check_wrong_mask(panel.wrong, panel.images.shape[:2])
        shown = np.ones(panel.images.shape[:2], bool) if panel.shown is None else panel.shown
        columns = [
            Column([image if there else None for image, there in zip(images, places, strict=True)], wrong=marks)
            for images, places, marks in zip(panel.images.swapaxes(0, 1), shown.T, verdicts.T, strict=True)
        ]
        blocks.append(Block(panel.title, columns, () if blocks else row_labels, panel.subtitle))
    return picture_page(blocks, title=title, note=note, widest=math.inf)


@dataclass(frozen=True)
class Tile:
    """Image with the text under it, for a tile table.

    Attributes:
        image: The image [C, H, W].
        caption: Words under the image.
        marked: Whether each word is bold; none is by default.
        wrong: Whether the classifier disagrees, which makes the frame red.
        remark: Red text under the caption.
        text: Text with distributions for word histograms at the bottom; None for no histograms.
    """

    image: np.ndarray
    caption: Sequence[str] = ()
    marked: Sequence[bool] = ()
    wrong: bool = False
    remark: str = ""
    text: TextWithDistributions | None = None


@dataclass(frozen=True)
class TileRow:
    """Row of a tile table: a label and the tiles beside it.

    Attributes:
        label: Text to its left.
        blocks: Tiles of each block, no more than in the first row.
    """

    label: str
    blocks: Sequence[Sequence[Tile]]


def _marked_lines(words: Sequence[str], marked: Sequence[bool], width: int) -> list[Line]:
    """Wrap words, of which the marked ones are bold and dark, into lines of about ``width`` pixels."""
    bold = iter(marked or [False] * len(words))
    whole = {"_".join(word.split()): " ".join(word.split()) for word in words}  # lines break between words alone
    wrapped = wrap_text(" ".join("_".join(word.split()) for word in words), SIZE, width, bold=any(marked))
    lines = [[whole.get(word, word) for word in line.split(" ")] for line in wrapped]
    return [Line([(word, INK, True) if next(bold, False) else (word, MUTED, False) for word in line]) for line in lines]


def tile_table(
    rows: Sequence[TileRow],
    *,
    heads: Sequence[tuple[str, str]] = (),
    info: TextVocabulary | None = None,
    attributes: Vocabulary | None = None,
    title: str = "",
    note: str = "",
) -> Grid:
    """Draw a table of tiles: rows of images with text under them, in blocks.

    Args:
        rows: One or more rows, the first with at least one tile.
        heads: Title and subtitle of each block; none by default.
        info: Vocabulary of the texts, for tiles with word histograms.
        attributes: Attributes that the positions of the texts spell.
        title: Title of the picture.
        note: Explanation below it.

    Raises:
        UsageError: There are no tiles, or rows do not match.
    """
    shape = [len(block) for block in rows[0].blocks] if rows else []
    if not sum(shape):
        raise UsageError(_NO_IMAGES)
    for row in rows:
        lengths = [len(block) for block in row.blocks]
        if len(lengths) != len(shape) or any(n > most for n, most in zip(lengths, shape, strict=True)):
            raise UsageError(f"got a row of {lengths} images, expected at most {shape}, as in the first row")
    first = next(tile for block in rows[0].blocks for tile in block)
    width = max(_picture_width(first.image, SENTENCE_TILE), NARROWEST)

    def captions(tile: Tile) -> list[Line]:
        words, lines = tile.caption, []
        if tile.text is not None:
            if info is None:
                raise UsageError("got tiles with texts, but no vocabulary; give the vocabulary as info")
            if has_histograms(info, attributes):
                lines = histogram_lines(tile.text, info, attributes, width)
            else:
                words = [info.vocabulary[int(code)] for code in tile.text.tokens if code < len(info.vocabulary)]
        return [*_marked_lines(words, tile.marked, width), *text_lines(tile.remark, width, WRONG), *lines]

    def column(number: int, place: int) -> Column:
        tiles = [row.blocks[number][place] if place < len(row.blocks[number]) else None for row in rows]
        return Column(
            [None if tile is None else tile.image for tile in tiles],
            wrong=np.array([tile is not None and tile.wrong for tile in tiles]),
            captions=[captions(tile) if tile else () for tile in tiles],
            width=width,
            centred=False,
        )

    blocks = []
    for number, count in enumerate(shape):
        head, subtitle = heads[number] if number < len(heads) else ("", "")
        labels = () if number else [row.label for row in rows]
        blocks.append(Block(head, [column(number, place) for place in range(count)], labels, subtitle))
    return picture_page(blocks, title=title, note=note, tile=SENTENCE_TILE, widest=math.inf)


def strip_blocks(
    pictures: Mapping[str, np.ndarray],
    labels: Sequence[str] = (),
    *,
    wrong: np.ndarray | None = None,
    title: str = "",
    tallest: int = _TALLEST,
) -> list[Block]:
    """Arrange the pictures of each example side by side, in columns with the names of their modalities.

    Args:
        pictures: Pictures [n, C, H, W] of the same examples, by modality.
        labels: Text to the left of each example; none by default.
        wrong: Whether the classifier disagrees with the first picture, bool [n].
        title: Title of the first block.
        tallest: Most examples in a block; further ones stand beside them.
    """
    columns = [Column(images, name) for name, images in pictures.items()]
    columns[0] = replace(columns[0], wrong=wrong)

    def part(column: Column, rows: slice) -> Column:
        return replace(column, images=column.images[rows], wrong=None if column.wrong is None else column.wrong[rows])

    parts = [slice(start, start + tallest) for start in range(0, len(columns[0].images), tallest)]
    return [Block("" if rows.start else title, [part(each, rows) for each in columns], labels[rows]) for rows in parts]

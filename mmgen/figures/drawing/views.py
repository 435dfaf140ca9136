"""Pages of pictures of several modalities, drawn from the same z or translated from each other."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mmgen.figures.drawing.layout import BETWEEN, WIDEST, Block, Column, ColumnGroup, block_table, block_width
from mmgen.figures.drawing.page import Grid
from mmgen.generation.draws import Draws
from mmgen.generation.translations import PairedExamples

__all__ = ["strip_page", "strip_blocks", "translation_page", "views_page"]


def strip_page(
    pictures: Mapping[str, np.ndarray],
    labels: Sequence[str] = (),
    *,
    wrong: np.ndarray | None = None,
    title: str = "",
    note: str = "",
) -> Grid:
    """Draw the pictures of each example side by side, in columns with the names of their modalities.

    Args:
        pictures: Pictures [n, C, H, W] of the same examples, by modality.
        labels: Text to the left of each example; none by default.
        wrong: Whether the classifier disagrees with the first picture, bool [n].
        title: Title of the page.
        note: Explanation below it.

    Returns:
        The grid; its boxes run over modalities, then examples, in each block of examples.
    """
    columns = {
        name: Column(images, wrong=wrong if number == 0 else None)
        for number, (name, images) in enumerate(pictures.items())
    }
    return block_table(strip_blocks(columns, labels), title=title, note=note)


def views_page(
    draws: Draws,
    words: Sequence[str],
    texts: Sequence[Sequence[str]] = (),
    *,
    sampled: bool = False,
    title: str = "",
    note: str = "",
) -> Grid:
    """Draw pictures of all modalities from each z: a block for each description, a row for each z.

    Args:
        draws: With further modalities.
        words: The descriptions.
        texts: For each description the texts drawn with its pictures; none by default.
        sampled: Show draws from p(picture | z) instead of its means.
        title: What the page shows.
        note: How it was made.
    """
    blocks: list[Block] = []
    for row, label in enumerate(words):
        columns = {}
        for number, (name, images) in enumerate(draws.pictures(sampled).items()):
            wrong = draws.mismatches[row] if draws.mismatches is not None and number == 0 else None
            columns[name] = Column(images[row], wrong=wrong)
        several = len(words) > 1
        blocks += strip_blocks(
            columns, texts[row] if texts else (), title=label if several else "", single_block=several
        )
    return block_table(blocks, title=title, note=note)


def translation_page(
    examples: PairedExamples,
    sources: Sequence[str],
    draws: Draws,
    *,
    sampled: bool = False,
    title: str = "",
    note: str = "",
) -> Grid:
    """Draw translations: a block for each target modality, with source pictures, true ones if known, and drawn ones.

    Args:
        examples: The examples.
        sources: What was given.
        draws: What was drawn for each of them.
        sampled: Show draws from p(picture | z) instead of its means.
        title: What the page shows.
        note: How it was made.
    """
    given = [ColumnGroup(name, [Column(examples.pictures[name], "given", is_source=True)]) for name in sources]
    blocks = []
    for number, (name, images) in enumerate(draws.pictures(sampled).items()):
        truth = [Column(examples.pictures[name], "truth")] if name in examples.pictures else []
        drawn = [Column(images[:, i], "" if i else "drawn") for i in range(images.shape[1])]
        labels = [] if number else examples.names
        head = f"To {name}" if draws.further else ""
        blocks.append(Block(head, [*given, ColumnGroup(name, [*truth, *drawn])], labels))
    return block_table(blocks, title=title, note=note)


def strip_blocks(
    pictures: Mapping[str, Column], labels: Sequence[str] = (), *, title: str = "", single_block: bool = False
) -> list[Block]:
    """Arrange the pictures of each example side by side, in as many blocks as make the page nearly square.

    Args:
        pictures: Columns of the same examples, by modality.
        labels: Text to the left of each example; none by default.
        title: Title of the first block.
        single_block: Whether to keep all examples in one block.

    Returns:
        Blocks for :func:`block_table`; examples run down the first block, then the next.
    """

    def strip(rows: slice) -> Block:
        groups = [
            ColumnGroup(name, [replace(c, images=c.images[rows], wrong=None if c.wrong is None else c.wrong[rows])])
            for name, c in pictures.items()
        ]
        return Block("" if rows.start else title, groups, labels[rows])

    count = len(next(iter(pictures.values())).images)
    whole = strip(slice(0, count))
    if single_block:
        return [whole]
    fit = max(1, min((WIDEST + BETWEEN) // (block_width(whole) + BETWEEN), math.ceil(count / 4)))
    each = math.ceil(count / fit)
    return [strip(slice(start, start + each)) for start in range(0, count, each)]

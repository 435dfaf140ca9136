"""Pages of examples of which each has several kinds of pictures: drawn from the same z, or from other pictures."""

from collections.abc import Mapping, Sequence

import numpy as np

from mmgen.figures.drawing.blocks import Block, Column, Group, block_table, strips
from mmgen.figures.drawing.page import Grid
from mmgen.generation.draws import Draws
from mmgen.generation.translations import Paired

__all__ = ["strip_page", "translation_page", "views_page"]


def strip_page(
    pictures: Mapping[str, np.ndarray],
    labels: Sequence[str] = (),
    *,
    wrong: np.ndarray | None = None,
    title: str = "",
    note: str = "",
) -> Grid:
    """Each example's kinds of pictures side by side, under their names.

    Args:
        pictures: [n, C, H, W] by modality, all of the same examples.
        labels: Words to the left of each example; none by default.
        wrong: Bool [n]: the judge disagrees with the first picture.
        title: What the page shows.
        note: How it was made.

    Returns:
        The grid; its boxes run over modalities, then examples, in each block of examples.
    """
    columns = {
        name: Column(images, wrong=wrong if number == 0 else None)
        for number, (name, images) in enumerate(pictures.items())
    }
    return block_table(strips(columns, labels), title=title, note=note)


def views_page(
    drawn: Draws,
    words: Sequence[str],
    texts: Sequence[Sequence[str]] = (),
    *,
    sampled: bool = False,
    title: str = "",
    note: str = "",
) -> Grid:
    """For each description its draws, every one with all kinds of pictures that were drawn from its z.

    Args:
        drawn: With further modalities.
        words: The descriptions.
        texts: For each description the texts drawn with its pictures; none by default.
        sampled: Show draws from p(picture | z) instead of its means.
        title: What the page shows.
        note: How it was made.
    """
    blocks: list[Block] = []
    for row, label in enumerate(words):
        columns = {}
        for number, (name, images) in enumerate(drawn.pictures(sampled).items()):
            wrong = drawn.wrong[row] if drawn.wrong is not None and number == 0 else None
            columns[name] = Column(images[row], wrong=wrong)
        several = len(words) > 1
        blocks += strips(columns, texts[row] if texts else (), title=label if several else "", together=several)
    return block_table(blocks, title=title, note=note)


def translation_page(
    shown: Paired, sources: Sequence[str], drawn: Draws, *, sampled: bool = False, title: str = "", note: str = ""
) -> Grid:
    """A block for each kind of picture that was drawn: what was given, the truth where it is known, and the draws.

    Args:
        shown: The examples.
        sources: What was given.
        drawn: What was drawn for each of them.
        sampled: Show draws from p(picture | z) instead of its means.
        title: What the page shows.
        note: How it was made.
    """
    given = [Group(name, [Column(shown.pictures[name], "given", given=True)]) for name in sources]
    blocks = []
    for number, (name, images) in enumerate(drawn.pictures(sampled).items()):
        truth = [Column(shown.pictures[name], "truth")] if name in shown.pictures else []
        draws = [Column(images[:, i], "" if i else "drawn") for i in range(images.shape[1])]
        labels = [] if number else shown.names
        head = f"To {name}" if drawn.further else ""
        blocks.append(Block(head, [*given, Group(name, [*truth, *draws])], labels))
    return block_table(blocks, title=title, note=note)

"""Pictures of the same descriptions by each posterior, as a page shows them: a column for each posterior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from mmgen.figures.drawing.page import TILE, convert_to_rgb, lighten_dark_images
from mmgen.figures.drawing.style import data_uri
from mmgen.figures.session import Session, Source, draw_pictures, images_per_row
from mmgen.generation.draws import Draws, format_share_correct
from mmgen.results.groups import MeasuredPosterior

__all__ = [
    "PageTile",
    "WordColumn",
    "WordTable",
    "describe_tiles",
    "draw_columns",
    "select_sources",
    "sort_by_scores",
]


_COLUMNS = 3
"""Most posteriors that a page shows at once."""


@dataclass(frozen=True)
class PageTile:
    """Image on a page, with its text in HTML under it.

    Attributes:
        uri: The image as a ``data:`` address, at its own size.
        words: The description.
        remark: The classifier's predictions that differ from it; "" if none do.
        wrong: Whether any prediction differs.
    """

    uri: str
    words: str
    remark: str = ""
    wrong: bool = False


@dataclass(frozen=True)
class WordColumn:
    """Column of a word table: the pictures of one posterior.

    Attributes:
        name: Name in plain words.
        title: Name of the field, with its formula.
        verdict: Share of attributes that the classifier confirms; "" without a classifier.
        rows: Tiles for each description.
    """

    name: str
    title: str
    verdict: str
    rows: list[list[PageTile]]


@dataclass(frozen=True)
class WordTable:
    """Pictures of the same descriptions, a row each, by several posteriors, a column each; the best one comes first.

    Attributes:
        labels: The description of each row.
        columns: The posteriors.
        words: The caption.
        sharp: Whether the images are so small that a page enlarges their pixels.
    """

    labels: list[str]
    columns: list[WordColumn]
    words: str
    sharp: bool


def sort_by_scores(sources: Sequence[Source], ranked: Sequence[MeasuredPosterior], beside: int = 0) -> list[Source]:
    """Sort posteriors by their scores, the best first, and fold all but three, less ``beside`` others shown with them.

    Posteriors without scores come last, in their order.
    """

    def place(source: Source) -> int:
        posterior, loaded = source.loaded.posteriors[source.posterior], source.loaded
        name = f"{posterior.named}{', sharpened' if loaded.sharpener is not None else ''}"
        for number, row in enumerate(ranked):
            fit = row.right.ids.get("aggregate")
            if row.right.source == name and (not posterior.is_fitted or fit in (None, loaded.header.content_id)):
                return number
        return len(ranked)

    ordered = sorted(sources, key=place)
    shown = [source for source in ordered if not source.folded][: max(1, _COLUMNS - beside)]
    return [source if source in shown else replace(source, folded=True) for source in ordered]


def describe_tiles(
    session: Session, draws: Sequence[Draws], captions: Sequence[str]
) -> tuple[list[list[list[PageTile]]], str]:
    """Return the tiles of several draws of the same descriptions, and a remark if dark images were made lighter.

    Returns:
        For each of the draws, a list of tiles for each description.
    """
    blocks = [convert_to_rgb(drawn.means.reshape(-1, *drawn.means.shape[2:])) for drawn in draws]
    shown, remark = lighten_dark_images(blocks)
    return [_tiles_of(session, *each, captions) for each in zip(draws, shown, strict=True)], remark


def _tiles_of(session: Session, drawn: Draws, shown: np.ndarray, captions: Sequence[str]) -> list[list[PageTile]]:
    info, (rows, count) = session.model.attributes, drawn.means.shape[:2]
    wrong = np.zeros((rows, count), bool) if drawn.mismatches is None else drawn.mismatches
    pixels = shown.reshape(rows, count, *shown.shape[1:])

    def make_tile(row: int, place: int) -> PageTile:
        uri, is_wrong = data_uri(Image.fromarray(pixels[row, place])), bool(wrong[row, place])
        if not is_wrong or info is None or drawn.predicted is None:
            return PageTile(uri, captions[row], wrong=is_wrong)
        return PageTile(uri, captions[row], drawn.describe_mismatch(row, place, info), is_wrong)

    return [[make_tile(row, place) for place in range(count)] for row in range(rows)]


def draw_columns(session: Session, sources: Sequence[Source], most: int) -> list[WordTable]:
    """Draw pictures of the first ``most`` descriptions by each posterior; [] without descriptions or posteriors."""
    if not len(session.concepts) or not sources:
        return []
    count, asked = images_per_row(sources), session.concepts[:most]
    labels = asked.format_short_texts(session.model)
    draws = [draw_pictures(session, source, asked, count) for source in sources]
    tiles, remark = describe_tiles(session, draws, labels)
    columns = [
        WordColumn(
            source.plain_name[:1].upper() + source.plain_name[1:], source.name, format_share_correct(drawn), rows
        )
        for source, drawn, rows in zip(sources, draws, tiles, strict=True)
    ]
    words = f"Each row one description, {count} pictures from each posterior. {remark}".strip()
    return [WordTable(labels, columns, words, sharp=draws[0].means.shape[-1] < TILE)]


def select_sources(session: Session, *, folded: bool) -> Session:
    """Return a copy of the session with only the folded (at first hidden) posteriors, or only the others."""
    return replace(session, sources=[source for source in session.sources if source.folded is folded])

"""Pictures of the same descriptions by each posterior, as a page shows them: a column for each posterior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from mmgen.figures.drawing.page import TILE, convert_to_rgb, lighten_dark_images
from mmgen.figures.drawing.style import data_uri
from mmgen.figures.session import Session, Source, draw_pictures, images_per_row
from mmgen.generation.draws import Draws, format_share_correct
from mmgen.results.ranking import MeasuredPosterior

__all__ = ["PageTile", "WordColumn", "WordTable", "describe_tiles", "draw_columns", "select_sources", "sort_by_scores"]


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


def sort_by_scores(sources: Sequence[Source], ranked: Sequence[MeasuredPosterior]) -> list[Source]:
    """Sort posteriors by their scores, the best first; those without scores come last, in their order."""

    def place(source: Source) -> int:
        posterior, loaded = source.loaded.posteriors[source.posterior], source.loaded
        name = posterior.title.partition(":")[0] + (", sharpened" if loaded.sharpener is not None else "")
        for number, row in enumerate(ranked):
            fit = row.right.ids.get("aggregate")
            if row.right.source == name and (not posterior.is_fitted or fit in (None, loaded.header.content_id)):
                return number
        return len(ranked)

    return sorted(sources, key=place)


def describe_tiles(session: Session, drawn: Draws, captions: Sequence[str]) -> tuple[list[list[PageTile]], str]:
    """Return the tiles of draws, a list for each description, and a remark if dark images were made lighter."""
    info = session.model.attributes
    shape = drawn.means.shape[:2]
    (shown,), remark = lighten_dark_images([convert_to_rgb(drawn.means.reshape(-1, *drawn.means.shape[2:]))])
    uris = np.array([data_uri(Image.fromarray(pixels)) for pixels in shown], object).reshape(shape)
    wrong = np.zeros(shape, bool) if drawn.mismatches is None else drawn.mismatches

    def remark_on(row: int, place: int) -> str:
        is_read = info is not None and drawn.predicted is not None
        return drawn.describe_mismatch(row, place, info) if is_read and info is not None and wrong[row, place] else ""

    tiles = [
        [PageTile(uris[row, k], captions[row], remark_on(row, k), bool(wrong[row, k])) for k in range(shape[1])]
        for row in range(shape[0])
    ]
    return tiles, remark


def draw_columns(session: Session, sources: Sequence[Source], most: int) -> list[WordTable]:
    """Draw pictures of the first ``most`` descriptions by each posterior; [] without descriptions or posteriors."""
    if not len(session.concepts) or not sources:
        return []
    count = images_per_row(sources)
    asked = session.concepts[:most]
    labels = asked.format_short_texts(session.model)
    columns: list[WordColumn] = []
    remarks: dict[str, None] = {}
    width = TILE
    for source in sources:
        drawn = draw_pictures(session, source, asked, count)
        rows, remark = describe_tiles(session, drawn, labels)
        name = source.plain_name
        columns.append(WordColumn(name[:1].upper() + name[1:], source.name, format_share_correct(drawn), rows))
        remarks[remark] = None
        width = drawn.means.shape[-1]
    words = " ".join([f"Each row one description, {count} pictures from each posterior.", *filter(None, remarks)])
    return [WordTable(labels, columns, words, sharp=width < TILE)]


def select_sources(session: Session, *, folded: bool) -> Session:
    """Return a copy of the session with only the folded (at first hidden) posteriors, or only the others."""
    return replace(session, sources=[source for source in session.sources if source.folded is folded])

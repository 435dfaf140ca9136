"""Pictures of a model in a report: the same words from each posterior, many words, no words."""

from dataclasses import dataclass, replace

from PIL import Image

from mmgen.figures.drawing.comparison import comparison
from mmgen.figures.drawing.page import lit, to_bytes
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import data_uri, font
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.plots.contours import contour_pictures
from mmgen.figures.plots.embedding import embeddings
from mmgen.figures.plots.hierarchy import abstraction
from mmgen.figures.plots.interpolation import interpolations
from mmgen.figures.plots.latent_map import latent_maps
from mmgen.figures.plots.traversal import traversals
from mmgen.figures.session import Session, across, blocks, draw_all, draw_pictures
from mmgen.generation.decode import drawable_pictures
from mmgen.generation.descriptions import empty_description
from mmgen.generation.draws import format_share_correct

__all__ = [
    "PageTile",
    "TileSheet",
    "abstracted",
    "folded",
    "latents",
    "maps",
    "same_words",
    "varied_words",
    "without_words",
]


def _single(session: Session) -> bool:
    """Return whether a description is the value of a single attribute, such as a digit."""
    asked = session.concepts
    return len(asked) > 0 and asked.tokens is None and asked.codes.shape[1] == 1


def _with_sources(session: Session, *, aside: bool) -> Session:
    """Return the session with the folded posteriors alone, or with the others alone."""
    return replace(session, sources=[source for source in session.sources if source.aside is aside])


def same_words(session: Session) -> list[Picture]:
    """Draw the same descriptions by every posterior that is not folded, the best one first."""
    return _same_words(_with_sources(session, aside=False))


def folded(session: Session) -> list[Picture]:
    """Draw the same descriptions by the posteriors that are folded."""
    return _same_words(_with_sources(session, aside=True))


def abstracted(session: Session) -> list[Picture]:
    """Draw a concept and its ancestors by every posterior that is not folded."""
    return abstraction(_with_sources(session, aside=False))


def _same_words(session: Session) -> list[Picture]:
    if not len(session.concepts) or not session.sources:
        return []
    count = across(session.sources)
    asked = session.concepts[: 12 if _single(session) else 6]
    draws = draw_all(session, asked, count, session.sources)
    grid = comparison(draws, asked.values(session.model))
    caption = f"Each row one description, {count} images from each of: {blocks(draws)}."
    return [Picture("The same words, drawn from each posterior", caption, grid, session.note)]


_SIZE = 24  # font size at which words are measured


@dataclass(frozen=True)
class PageTile:
    """An image with its words as HTML text, which follows the reader's font size.

    Attributes:
        uri: The image as a ``data:`` address, at its own size.
        words: The description.
        remark: The classifier's reading where it differs; else "".
        wrong: Whether it differs.
    """

    uri: str
    words: str
    remark: str = ""
    wrong: bool = False


@dataclass(frozen=True)
class TileSheet:
    """Images that a page arranges by its width.

    Attributes:
        title: The posterior.
        words: The caption.
        tiles: The images.
    """

    title: str
    words: str
    tiles: list[PageTile]

    @property
    def widest(self) -> float:
        """Width of the widest word under an image in units of the font size, for a wide typeface; dashes may break."""
        said = " ".join(f"{tile.words} {tile.remark}" for tile in self.tiles)
        return max((font(_SIZE).getlength(word) for word in said.replace("-", "- ").split()), default=0.0) / _SIZE


def varied_words(session: Session) -> list[TileSheet]:
    """Draw one image for each of many descriptions, with the classifier's reading where it differs (VE Fig. 3, 10)."""
    info, asked = session.model.attributes, session.concepts
    if not len(asked) or (_single(session) and len(asked) <= 12):  # all of them are among the same words
        return []
    sheets = []
    for name, drawn in draw_all(session, asked, 1, _with_sources(session, aside=False).sources):
        captions = asked.values(session.model)
        wrong, read = [False] * len(captions), [""] * len(captions)
        if info is not None and drawn.predicted is not None and drawn.wrong is not None:
            wrong = drawn.wrong[:, 0].tolist()
            read = [drawn.describe_mismatch(row, 0, info) for row in range(len(drawn.descriptions))]
        (shown,), remark = lit([to_bytes(drawn.means[:, 0])])
        uris = [data_uri(Image.fromarray(pixels)) for pixels in shown]
        tiles = [PageTile(*tile) for tile in zip(uris, captions, read, wrong, strict=True)]
        verdict = format_share_correct(drawn)
        caption = f"One image for each of {len(captions)} descriptions of the test part"
        words = f"{caption}{', ' + verdict if verdict else ''}. {remark}".strip()
        sheets.append(TileSheet(name, words, tiles))
    return sheets


def without_words(session: Session) -> list[Picture]:
    """Draw images from the prior and the learned prior, without a description."""
    if session.model.model.conditional_on:  # its decoder wants a description
        return []
    columns, rows = across(session.priors), 3
    panels = []
    for source in session.priors:
        name = source.name
        drawn = draw_pictures(session, source, empty_description(source.loaded), columns * rows, judged=False)
        images = drawn.means[0].reshape(rows, columns, *drawn.means.shape[2:])
        panels.append(Panel(name, images))
    grid = image_table(panels, ["nothing given"] + [""] * (rows - 1))
    names = "; ".join(panel.title for panel in panels)
    caption = f"{columns * rows} images from each of: {names}. Shown: means of p(image|z). Seed {session.seed}."
    return [Picture("Without words", caption, grid)]


def latents(session: Session) -> list[Picture]:
    """Draw the latent space: a map of encodings, traversals of each dimension, interpolations between pictures.

    A model that draws no pictures has the map alone.
    """
    if session.group.dataset is None:
        return []
    model, found = session.model, [embeddings(session)]
    if model.observation is not None and model.observation.name in drawable_pictures(model):
        found.append(traversals(session))
        if not model.model.conditional_on:
            found.append(interpolations(session))
    return found


def maps(session: Session) -> list[Picture]:
    """Draw maps of a model with two latent dimensions; [] for others."""
    import torch

    if session.model.model.latent_size != 2 or session.model.observation is None:
        return []
    with torch.inference_mode():
        return latent_maps(session) + contour_pictures(session)

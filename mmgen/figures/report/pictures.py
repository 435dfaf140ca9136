"""Pictures of a model in a report: for the same descriptions by each posterior, for many descriptions, and for none."""

from dataclasses import dataclass, replace

from mmgen.artifacts import Dataset
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import load_font
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.plots.contours import draw_contour_pictures
from mmgen.figures.plots.embedding import draw_embedding
from mmgen.figures.plots.hierarchy import draw_abstraction
from mmgen.figures.plots.interpolation import draw_interpolations
from mmgen.figures.plots.latent_map import draw_latent_maps
from mmgen.figures.plots.traversal import draw_traversals
from mmgen.figures.report.words import PageTile, WordTable, describe_tiles, draw_columns, select_sources
from mmgen.figures.session import Session, draw_from_sources, draw_pictures, images_per_row
from mmgen.generation import find_gaps
from mmgen.generation.decode import drawable_pictures
from mmgen.generation.descriptions import complete_descriptions, empty_description
from mmgen.generation.draws import format_share_correct

__all__ = [
    "TileSheet",
    "draw_abstractions",
    "draw_folded",
    "draw_gaps",
    "draw_latent_space",
    "draw_maps",
    "draw_same_descriptions",
    "draw_varied_descriptions",
    "draw_without_description",
]


def _has_single_attribute(session: Session) -> bool:
    """Return whether the model's descriptions have only one attribute, such as a digit."""
    concepts = session.concepts
    return len(concepts) > 0 and concepts.tokens is None and concepts.codes.shape[1] == 1


def draw_same_descriptions(session: Session) -> list[WordTable]:
    """Draw pictures of the same descriptions by each posterior that the page shows at once, rivals to the left."""
    shown = select_sources(session, folded=False)
    return _draw_descriptions(replace(shown, sources=[*session.rivals, *shown.sources]))


def draw_folded(session: Session) -> list[WordTable]:
    """Draw pictures of the same descriptions by the other posteriors, which the page hides at first."""
    return _draw_descriptions(select_sources(session, folded=True))


def draw_abstractions(session: Session) -> list[Picture]:
    """Draw pictures of a description whose attributes are dropped one by one, by each posterior that is not folded."""
    return draw_abstraction(select_sources(session, folded=False))


def _draw_descriptions(session: Session) -> list[WordTable]:
    return draw_columns(session, session.sources, 12 if _has_single_attribute(session) else 6)


_GAPS = 12  # combinations without a picture that a report draws
_SIZE = 24  # font size at which words are measured


@dataclass(frozen=True)
class TileSheet:
    """Images with texts that a page arranges in rows by its width.

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
        """Width of the widest word under an image, in units of the font size; words may break at dashes."""
        text = " ".join(f"{tile.words} {tile.remark}" for tile in self.tiles)
        return max((load_font(_SIZE).getlength(word) for word in text.replace("-", "- ").split()), default=0.0) / _SIZE


def draw_gaps(session: Session) -> list[TileSheet]:
    """Draw combinations of words that no picture of the dataset has, by the best posterior; [] without any."""
    info, source = session.model.attributes, next((one for one in session.sources if one.given == "attributes"), None)
    if info is None or source is None or session.group.dataset is None:
        return []
    with Dataset.open(session.group.dataset) as data:
        gaps = find_gaps(data.read_attributes(info.name))
    if not len(gaps):
        return []
    asked = complete_descriptions(session.model, gaps.choose(_GAPS, session.seed))
    drawn = draw_pictures(session, source, asked, 2)
    (rows,), remark = describe_tiles(session, [drawn], asked.format_short_texts(session.model))
    words = f"{gaps.sentence}; drawn here are {len(asked)} of them, two of each. {remark}".strip()
    return [
        TileSheet(source.plain_name[:1].upper() + source.plain_name[1:], words, [tile for row in rows for tile in row])
    ]


def draw_varied_descriptions(session: Session) -> list[TileSheet]:
    """Draw one image for each of many descriptions, with predictions that contradict it (VE Fig. 3, 10)."""
    asked = session.concepts
    if not len(asked) or (_has_single_attribute(session) and len(asked) <= 12):  # all of them are among the same words
        return []
    sheets = []
    for name, drawn in draw_from_sources(session, asked, 1, select_sources(session, folded=False).sources):
        captions = asked.format_short_texts(session.model)
        (rows,), remark = describe_tiles(session, [drawn], captions)
        verdict = format_share_correct(drawn)
        caption = f"One image for each of {len(captions)} descriptions of the test part"
        words = f"{caption}{', ' + verdict if verdict else ''}. {remark}".strip()
        sheets.append(TileSheet(name, words, [row[0] for row in rows]))
    return sheets


def draw_without_description(session: Session) -> list[Picture]:
    """Draw images without a description, from the prior and from the learned prior."""
    if session.model.model.conditional_on:  # the decoder needs a description
        return []
    columns, rows = images_per_row(session.priors), 3
    panels = []
    for source in session.priors:
        name = source.name
        drawn = draw_pictures(session, source, empty_description(source.loaded), columns * rows, classify=False)
        images = drawn.means[0].reshape(rows, columns, *drawn.means.shape[2:])
        panels.append(Panel(name, images))
    grid = image_table(panels, ["nothing given"] + [""] * (rows - 1))
    names = "; ".join(panel.title for panel in panels)
    caption = f"{columns * rows} images from each of: {names}. Shown: means of p(image|z). Seed {session.seed}."
    return [Picture("Without words", caption, grid)]


def draw_latent_space(session: Session) -> list[Picture]:
    """Draw the latent space: a map of encodings, traversals of each dimension, interpolations between pictures.

    A model that draws no pictures has only the map.
    """
    if session.group.dataset is None:
        return []
    model, found = session.model, [draw_embedding(session)]
    if model.observation is not None and model.observation.name in drawable_pictures(model):
        found.append(draw_traversals(session))
        if not model.model.conditional_on:
            found.append(draw_interpolations(session))
    return found


def draw_maps(session: Session) -> list[Picture]:
    """Draw maps of z of a model with two latent dimensions; [] for other models."""
    import torch

    if session.model.model.latent_size != 2 or session.model.observation is None:
        return []
    with torch.inference_mode():
        return draw_latent_maps(session) + draw_contour_pictures(session)

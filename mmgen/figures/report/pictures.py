"""Pictures of a model in a report: for the same descriptions by each posterior, for many descriptions, and for none."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.artifacts.dataset import PARTS
from mmgen.artifacts.elements import FILLED
from mmgen.descriptions import batch_of_queries
from mmgen.figures.drawing.page import Grid
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, image_grid, image_table
from mmgen.figures.plots.contours import draw_contour_pictures
from mmgen.figures.plots.embedding import draw_embedding
from mmgen.figures.plots.hierarchy import draw_abstraction
from mmgen.figures.plots.interpolation import draw_interpolations
from mmgen.figures.plots.latent_map import draw_latent_maps
from mmgen.figures.plots.traversal import draw_traversals
from mmgen.figures.session import Session, Source, draw_from_sources, draw_pictures, images_per_row
from mmgen.generation import find_gaps
from mmgen.generation.decode import decode_means, drawable_pictures
from mmgen.generation.descriptions import Descriptions, complete_descriptions, empty_description
from mmgen.generation.draws import Draws, format_share_correct
from mmgen.generation.encode import encode_examples, encode_pictures
from mmgen.generation.examples import random_test_rows, read_examples
from mmgen.generation.fill_gaps import MOST, find_pictures
from mmgen.generation.palette import choose_attribute, recolour
from mmgen.results.groups import MeasuredPosterior

_COLUMNS = 3
"""Most posteriors that a page shows at once."""
_GAPS = 12
"""Combinations without a picture that a report draws."""


def _has_single_attribute(session: Session) -> bool:
    """Return whether the model's descriptions have only one attribute, such as a digit."""
    concepts = session.concepts
    return len(concepts) > 0 and concepts.tokens is None and concepts.codes.shape[1] == 1


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


def select_sources(session: Session, *, folded: bool) -> Session:
    """Return a copy of the session with only the folded (at first hidden) posteriors, or only the others."""
    return replace(session, sources=[source for source in session.sources if source.folded is folded])


def draw_same_descriptions(session: Session) -> list[Picture]:
    """Draw pictures of the same descriptions by each posterior that the page shows at once, rivals to the left."""
    shown = select_sources(session, folded=False)
    return _draw_descriptions(session, [*session.rivals, *shown.sources])


def draw_folded(session: Session) -> list[Picture]:
    """Draw pictures of the same descriptions by the other posteriors, which the page hides at first."""
    return _draw_descriptions(session, select_sources(session, folded=True).sources)


def draw_abstractions(session: Session) -> list[Picture]:
    """Draw pictures of a description whose attributes are dropped one by one, by each posterior that is not folded."""
    return draw_abstraction(select_sources(session, folded=False))


def _draw_descriptions(session: Session, sources: Sequence[Source]) -> list[Picture]:
    """Draw pictures of the first descriptions, a row each, by each posterior; [] without descriptions or posteriors."""
    asked = session.concepts[: 12 if _has_single_attribute(session) else 6]
    if not len(asked) or not sources:
        return []
    count, panels = images_per_row(sources), []
    for source in sources:
        drawn = draw_pictures(session, source, asked, count)
        said = ", ".join(filter(None, [source.name, format_share_correct(drawn)]))
        panels.append(Panel(_plain_name(source), drawn.means, drawn.mismatches, said))
    grid = image_table(panels, asked.format_short_texts(session.model))
    named = "; ".join(f"{panel.title} ({panel.subtitle})" for panel in panels)
    words = f"Each row one description; {count} pictures from each posterior, from left to right: {named}."
    return [Picture("The same words", words, grid)]


def _plain_name(source: Source) -> str:
    return source.plain_name[:1].upper() + source.plain_name[1:]


def draw_gaps(session: Session) -> list[Picture]:
    """Draw combinations of words that no picture of the dataset has, by the best posterior; [] without any."""
    info, source = session.model.attributes, next((one for one in session.sources if one.given == "attributes"), None)
    if info is None or source is None or session.group.dataset is None:
        return []
    with Dataset.open(session.group.dataset) as data:
        real = np.concatenate([data.split(data.default_scheme, part, real=True) for part in PARTS])
        gaps = find_gaps(data.read_attributes(info.name, np.sort(real)))
    if not len(gaps):
        return []
    asked = complete_descriptions(session.model, gaps.choose(_GAPS, session.seed))
    drawn = draw_pictures(session, source, asked, 2)
    words = f"{gaps.sentence}; drawn here are {len(asked)} of them, two of each."
    return [
        Picture(_plain_name(source), words, _captioned_grid(session, asked, drawn)),
        *_draw_palette(session, session.group.dataset, asked),
    ]


def _draw_palette(session: Session, dataset: Path, asked: Descriptions) -> list[Picture]:
    """Draw the same combinations by a palette; [] where it draws none, or no gaps were filled."""
    with Dataset.open(dataset) as data:
        if FILLED not in data.factors:
            return []
        image, attributes = find_pictures(data)
        rows = data.split(session.model.settings.data.split, "train", real=True)[:MOST]
        pixels = (255 * data.read_pixels(image, rows)).round().astype(np.uint8)
        codes, names = data.read_attributes(attributes, rows), data.attributes[attributes].names
    attribute = choose_attribute(pixels, codes, session.seed)
    both = zip(asked.codes, asked.format_short_texts(session.model), strict=True)
    drawn = [(recolour(pixels, codes, code, attribute), caption) for code, caption in both]
    shown = [(one, caption) for one, caption in drawn if one is not None]
    if not shown:
        return []
    words = (
        f"A rival of 25 lines without a network: a training picture that differs in {names[attribute]} alone, its "
        f"colours mapped as between others of the two values. It is told the word, {names[attribute]}, and draws "
        f"{len(shown)} of these {len(asked)}; what a model is for are words that change the drawing."
    )
    grid = image_grid(np.stack([one for one, _ in shown]), captions=[caption for _, caption in shown])
    return [Picture("A palette", words, grid)]


def draw_varied_descriptions(session: Session) -> list[Picture]:
    """Draw one image for each of many descriptions, with predictions that contradict it (VE Fig. 3, 10)."""
    asked = session.concepts
    if not len(asked) or (_has_single_attribute(session) and len(asked) <= 12):  # all of them are among the same words
        return []
    found = []
    for name, drawn in draw_from_sources(session, asked, 1, select_sources(session, folded=False).sources):
        verdict = format_share_correct(drawn)
        words = f"One image for each of {len(asked)} descriptions of the test part{verdict and ', '}{verdict}."
        found.append(Picture(name, words, _captioned_grid(session, asked, drawn)))
    return found


def _captioned_grid(session: Session, asked: Descriptions, drawn: Draws) -> Grid:
    """Draw all pictures of draws with their descriptions, and the classifier's predictions that differ."""
    info, (rows, count) = session.model.attributes, drawn.means.shape[:2]
    places = [(row, place) for row in range(rows) for place in range(count)]
    captions = asked.format_short_texts(session.model)
    return image_grid(
        drawn.means.reshape(-1, *drawn.means.shape[2:]),
        captions=[captions[row] for row, _ in places],
        remarks=[drawn.describe_mismatch(*place, info) if info is not None else "" for place in places],
        wrong=None if drawn.mismatches is None else drawn.mismatches.reshape(-1),
    )


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


_ACROSS = 12


def draw_reconstructions(session: Session) -> list[Picture]:
    """Draw test images, each above its reconstruction; [] without the model's dataset.

    The result is [] for models of texts and of several kinds of pictures, which have other figures.
    """
    model, dataset = session.model, session.group.dataset
    main, info, text = model.observation, model.attributes, model.text
    if dataset is None or main is None or drawable_pictures(model) != [main.name]:
        return []
    if text is not None and text.name in model.model.generates:
        return []
    with Dataset.open(dataset) as data:
        rows = random_test_rows(data, model.settings.data.split, _ACROSS, session.seed)
        if not len(rows):
            return []
        shown = read_examples(model, data, rows)
    condition, through = None, "q(z|x)"
    if model.model.has_posterior((main.name,)):
        posterior = encode_pictures(model, shown.images)
    else:
        posterior, through = encode_examples(model, shown), "q(z|x,y)"
        if shown.codes is not None and info is not None:
            condition = batch_of_queries(shown.codes, info.name, str(model.device))
    decoded = main.pictures(decode_means(model, main.name, posterior.mean, condition).cpu().numpy())
    images = main.pictures(shown.images)
    labels = ["Test images", f"Decoded from the mean of {through}"]
    caption = f"{len(rows)} test images, drawn at random. Shown: means of p({main.name}|z). Seed {session.seed}."
    return [Picture("Reconstructions", caption, image_table([Panel("", np.stack([images, decoded]))], labels))]

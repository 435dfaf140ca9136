"""Interpolation through z between two pictures, or between draws for two descriptions."""

from collections.abc import Sequence

import numpy as np
import torch

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.plots._base import PlotOptions, accepts, encode_start_examples, select_descriptions
from mmgen.figures.session import Session
from mmgen.generation.decode import decode_means, drawable_pictures
from mmgen.generation.encodings import interpolate_with_labels
from mmgen.generation.latents import draw_latents
from mmgen.models import Model

__all__ = ["interpolation"]

_STEPS, _PAIRS, _DRAWS = 9, 4, 4
_WAYS = {
    False: "by the arc (the direction of z turns evenly, its length changes evenly)",
    True: "straight",
}


def draw_interpolations(
    session: Session, count: int = _PAIRS, rows: Sequence[int] = (), straight: bool = False
) -> Picture:
    """Draw interpolations through z between pairs of pictures, a row for each pair.

    Args:
        session: A model that encodes and draws images.
        count: Number of pairs.
        rows: Rows of the dataset, in pairs; by default random test examples.
        straight: Whether to interpolate along a straight line instead of an arc.

    Raises:
        UsageError: The number of rows is odd, or the model does not draw images.
    """
    if len(rows) % 2:
        raise UsageError(f"interpolation got {len(rows)} rows, expected pairs; give --dataset-row A --dataset-row B")
    if session.model.model.conditional_on:
        raise UsageError(
            f"{session.group.model} draws from z and a description together, so interpolation through z alone does not "
            "connect pictures of two descriptions; choose a model that draws from z"
        )
    start = encode_start_examples(session, rows, 2 * count)
    pairs = len(start.z) // 2
    if not pairs:
        raise UsageError(
            "interpolation got a dataset with one test example, expected at least two; choose rows with --dataset-row"
        )
    strips, labels = [], []
    for first in range(0, 2 * pairs, 2):
        way = interpolate_with_labels(session.model.model, start.z[first], start.z[first + 1], _STEPS, not straight)
        ends = start.pictures[first : first + 2]
        strips.append(np.concatenate([ends[:1], start.decode(first, way), ends[1:]]))
        labels.append(f"{start.label(first)} to {start.label(first + 1)}")
    caption = (
        f"Outermost: the pictures themselves. Between them {_STEPS} z from the mean of "
        f"q(z|{', '.join(start.conditions)}) "
        f"of the first to that of the last, {_WAYS[straight]}{_explain_labels(session.model.model)}. Shown: means of "
        f"p({start.name}|z). Seed {session.seed}."
    )
    return Picture("Interpolation between pictures", caption, image_table([Panel("", np.stack(strips))], labels))


def _explain_labels(model: Model) -> str:
    """Explain for a caption how labels that are part of z change during the interpolation; "" without labels."""
    labels = " and ".join(model.latent_modalities)
    return f", with the {labels} of the first in the first half and of the last after it" if labels else ""


def _interpolate_descriptions(session: Session, options: PlotOptions) -> Picture:
    """Draw interpolations between pictures drawn for two descriptions, a block for each posterior."""
    if (count := len(options.descriptions)) != 2:
        raise UsageError(f"interpolation got {count} --given, expected two descriptions; give two")
    if options.rows:
        raise UsageError("interpolation got both --given and --dataset-row, expected one of them; leave one out")
    model, descriptions = session.model, select_descriptions(session, options, 2)
    main = model.observation
    if main is None or main.name not in drawable_pictures(model) or not session.sources:
        raise UsageError(
            f"{session.group.model} draws no images for a description; fit a posterior with mmgen fit-aggregate"
        )
    if model.model.conditional_on:
        raise UsageError(
            f"{session.group.model} draws from z and a description together; choose a model that draws from z"
        )
    count, panels = options.number or _DRAWS, []
    for source in session.sources:
        z = draw_latents(source.loaded, source.posterior, descriptions, count, session.seed)  # [2, n, D]
        way = interpolate_with_labels(model.model, z[0], z[1], _STEPS, not options.straight).transpose(
            0, 1
        )  # [n, S, D]
        panels.append(Panel(source.name, main.pictures(decode_means(model, main.name, way).cpu().numpy())))
    first, last = descriptions.format_texts(model)
    caption = (
        f"Each row from a draw of z for '{first}' to one for '{last}' in {_STEPS} steps, {_WAYS[options.straight]}"
        f"{_explain_labels(model.model)}. Shown: means of p({main.name}|z). Seed {session.seed}."
    )
    labels = [f"draw {number + 1}" for number in range(count)]
    return Picture("Interpolation between descriptions", caption, image_table(panels, labels))


@accepts("descriptions", "number", "rows", "straight")
def interpolation(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw interpolations of one model between pairs of pictures, or between two descriptions.

    Raises:
        UsageError: The model does not draw images from z, or there is an odd number of rows or descriptions.
    """
    with torch.no_grad():
        if options.descriptions:
            return _interpolate_descriptions(sessions[0], options)
        return draw_interpolations(sessions[0], options.number or _PAIRS, options.rows, options.straight)

"""The way through z from one picture to another, or from what one description draws to what another does."""

from collections.abc import Sequence

import numpy as np
import torch

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.tables import Panel, image_table
from mmgen.figures.plots._base import PlotOptions, accepts, asked
from mmgen.figures.plots._chosen import chosen_examples
from mmgen.figures.session import Session
from mmgen.generation.decode import drawable_pictures, means
from mmgen.generation.latents import draw_latents
from mmgen.generation.traversals import way_through
from mmgen.models import Model

__all__ = ["interpolation"]

_STEPS, _PAIRS, _DRAWS = 9, 4, 4
_WAYS = {
    False: "by the arc (the direction of z turns evenly, its length changes evenly)",
    True: "straight",
}


def interpolations(session: Session, count: int = _PAIRS, rows: Sequence[int] = (), straight: bool = False) -> Picture:
    """Between pictures, two by two.

    Args:
        session: A model that encodes and draws images.
        count: Pairs.
        rows: The pictures, in pairs; test examples at random by default.
        straight: Not by the arc.

    Raises:
        UsageError: An odd number of rows, or the model does not draw images.
    """
    if len(rows) % 2:
        raise UsageError(f"interpolation got {len(rows)} rows, expected pairs: --dataset-row A --dataset-row B")
    if session.model.model.conditional_on:
        raise UsageError(
            f"{session.group.model} draws from z and a description together, so that there is no way between pictures "
            "of two descriptions through z alone; choose a model that draws from z"
        )
    chosen = chosen_examples(session, rows, 2 * count)
    pairs = len(chosen.z) // 2
    if not pairs:
        raise UsageError("interpolation needs two test examples, got one; choose rows with --dataset-row")
    strips, labels = [], []
    for first in range(0, 2 * pairs, 2):
        way = way_through(session.model.model, chosen.z[first], chosen.z[first + 1], _STEPS, not straight)
        ends = chosen.pictures[first : first + 2]
        strips.append(np.concatenate([ends[:1], chosen.decoded(first, way), ends[1:]]))
        labels.append(f"{chosen.said(first)} to {chosen.said(first + 1)}")
    caption = (
        f"Outermost: the pictures themselves. Between them {_STEPS} z from the mean of q(z|{', '.join(chosen.given)}) "
        f"of the first to that of the last, {_WAYS[straight]}{_switched(session.model.model)}. Shown: means of "
        f"p({chosen.name}|z). Seed {session.seed}."
    )
    return Picture("Interpolation between pictures", caption, image_table([Panel("", np.stack(strips))], labels))


def _switched(model: Model) -> str:
    """What becomes of labels that are part of z, for a caption; "" where none is."""
    labels = " and ".join(model.latent_modalities)
    return f", with the {labels} of the first in the first half and of the last after it" if labels else ""


def _described(session: Session, options: PlotOptions) -> Picture:
    """Between draws for two descriptions, a block for each posterior."""
    if (count := len(options.descriptions)) != 2:
        raise UsageError(f"interpolation goes between two descriptions, got {count} --given; give two")
    if options.rows:
        raise UsageError("interpolation got --given and --dataset-row, expected one of them; leave the other out")
    model, wanted = session.model, asked(session, options, 2)
    main = model.observation
    if main is None or main.name not in drawable_pictures(model) or not session.sources:
        raise UsageError(
            f"{session.group.model} draws no images for a description; fit something with mmgen fit-aggregate"
        )
    if model.model.conditional_on:
        raise UsageError(
            f"{session.group.model} draws from z and a description together; choose a model that draws from z"
        )
    count, panels = options.number or _DRAWS, []
    for source in session.sources:
        z = draw_latents(source.loaded, source.posterior, wanted, count, session.seed)  # [2, n, D]
        way = way_through(model.model, z[0], z[1], _STEPS, not options.straight).transpose(0, 1)  # [n, S, D]
        panels.append(Panel(source.name, main.pictures(means(model, main.name, way).cpu().numpy())))
    first, last = wanted.words(model)
    caption = (
        f"Each row from a draw of z for '{first}' to one for '{last}' in {_STEPS} steps, {_WAYS[options.straight]}"
        f"{_switched(model.model)}. Shown: means of p({main.name}|z). Seed {session.seed}."
    )
    labels = [f"draw {number + 1}" for number in range(count)]
    return Picture("Interpolation between descriptions", caption, image_table(panels, labels))


@accepts("descriptions", "number", "rows", "straight")
def interpolation(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Interpolations of one model, between pictures or two descriptions.

    Raises:
        UsageError: It does not draw images from z, or the ends are not two by two.
    """
    with torch.no_grad():
        if options.descriptions:
            return _described(sessions[0], options)
        return interpolations(sessions[0], options.number or _PAIRS, options.rows, options.straight)

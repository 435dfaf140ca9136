"""Weights over the words of captions at each step of drawing (alignDRAW Fig. 3).

References:
    Generating Images from Captions with Attention (Mansimov et al., 2016), arXiv:1511.02793, Fig. 3
"""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from mmgen.contrib.draw.models.draw import require_draw
from mmgen.core.errors import UsageError
from mmgen.descriptions import format_caption
from mmgen.figures.drawing.page import convert_to_rgb
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import INK, SMALL, new_figure, style_axes
from mmgen.figures.plots._base import PlotOptions, accepts, select_descriptions
from mmgen.figures.session import Session
from mmgen.generation.latents import draw_latents

__all__ = ["attention"]

_CAPTIONS, _DRAWS = 4, 32


@accepts("descriptions", "number", lines=True)
@torch.no_grad()
def attention(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw the weights over the words of a caption at each step, averaged over draws, beside one of the pictures.

    Raises:
        UsageError: The model draws pictures at once, or does not weigh the words of captions.
    """
    session = sessions[0]
    model = session.model
    text = model.text
    if text is None or text.name not in model.model.conditional_on:
        raise UsageError(
            f"{session.group.model} draws from no captions, so there are no words to weigh; train one of model draw "
            "with the objective cvae and --set objective.description=text"
        )
    descriptions = select_descriptions(session, options, _CAPTIONS)
    count = len(descriptions)
    z = draw_latents(model, "prior", descriptions, _DRAWS, session.seed).transpose(0, 1)  # [draws, captions, D]
    steps = require_draw(model.model).drawing_steps(z, descriptions.batch(model, slice(None)))
    weights = [step.words for step in steps if step.words is not None]
    if not weights:
        raise UsageError(
            f"{session.group.model} gives its generator the same summary of a caption at every step, so there are no "
            "weights; train one with --set model.alignment=512"
        )
    table = torch.stack(weights).unflatten(1, (_DRAWS, count)).mean(1).float().cpu().numpy()  # [T, captions, L]
    pictures = steps[-1].pictures.unflatten(0, (_DRAWS, count))[0].float().cpu().numpy()
    assert descriptions.tokens is not None
    captions = [format_caption(tokens, text) for tokens in descriptions.tokens]
    figure = _draw_tables(captions, table, pictures)
    note = (
        f"Weight of each word (right) at each step (down), mean over {_DRAWS} draws of z; darker is more, and the "
        f"weights of a step add up to 1. Left: the picture of the first draw. Seed {session.seed}."
    )
    return Picture("Attention to words", note, figure, telling=True)


def _draw_tables(captions: Sequence[str], weights: np.ndarray, pictures: np.ndarray) -> Figure:
    """Draw a picture and a table of weights [T, L] for each caption."""
    steps, _, length = weights.shape
    height = 1.0 + max(1.2, 0.16 * min(steps, 32))
    figure = new_figure(2.2 + max(4.5, 0.55 * length), height * len(captions))
    grid = figure.add_gridspec(len(captions), 2, width_ratios=[1.4, max(3.0, 0.4 * length)])
    images = convert_to_rgb(pictures)
    for row, caption in enumerate(captions):
        shown = figure.add_subplot(grid[row, 0])
        shown.imshow(images[row], interpolation="nearest")
        shown.set_axis_off()
        words = caption.split()
        axes = style_axes(figure.add_subplot(grid[row, 1]), y="step")
        axes.imshow(
            weights[:, row, : len(words)], cmap="Blues", vmin=0, vmax=max(0.5, float(weights.max())), aspect="auto"
        )
        axes.set_xticks(range(len(words)), words, rotation=45, ha="right", fontsize=SMALL, color=INK)
        ticks = np.unique(np.linspace(0, steps - 1, min(steps, 8)).round().astype(int))
        axes.set_yticks(ticks, [str(tick + 1) for tick in ticks])
    return figure

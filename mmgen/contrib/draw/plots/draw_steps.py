"""A picture as it is drawn, step by step, with the boxes that a model looks at and writes to (DRAW Fig. 7).

References:
    DRAW: A Recurrent Neural Network for Image Generation (Gregor et al., 2015), arXiv:1502.04623, Fig. 7
    Generating Images from Captions with Attention (Mansimov et al., 2016), arXiv:1511.02793, Fig. 1
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from mmgen.contrib.draw._steps import DrawingStep
from mmgen.contrib.draw.models.draw import require_draw
from mmgen.figures.drawing.blocks import Block, Column, picture_page
from mmgen.figures.drawing.page import TILE, Grid, convert_to_rgb, enlarge
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import category_colours
from mmgen.figures.plots._base import PlotOptions, accepts, encode_start_examples, select_descriptions
from mmgen.figures.session import Session
from mmgen.generation.descriptions import Descriptions, empty_description
from mmgen.generation.latents import draw_completions, draw_latents

__all__ = ["draw_steps"]

_EXAMPLES = 4
_ACROSS = 10
"""Steps that a picture has room for; an animation shows all."""
_WRITTEN, _READ = (category_colours(2)[index] for index in (1, 0))


@dataclass(frozen=True)
class _Strip:
    """Drawings of one posterior.

    Attributes:
        title: The posterior.
        labels: Label of each drawing.
        steps: Its steps.
        pictures: Pictures [R, C, H, W] that z was inferred from; None where z was drawn.
    """

    title: str
    labels: list[str]
    steps: list[DrawingStep]
    pictures: np.ndarray | None = None

    def block(self, shown: Sequence[int]) -> Block:
        """Return a block with a column for each step in ``shown``, and one for the pictures where there are some."""
        columns = []
        for step in shown:
            state = self.steps[step]
            canvas = _frame_boxes(state.pictures.float().cpu().numpy(), state.written, _WRITTEN)
            columns.append(Column(canvas, f"step {step + 1}"))
        if self.pictures is not None:
            read = self.steps[shown[-1]].read if len(shown) == 1 else None
            columns.insert(0, Column(_frame_boxes(self.pictures, read, _READ), "picture", is_source=True))
            if len(shown) > 1 and self.steps[0].read is not None:
                looks = [_frame_boxes(self.pictures, self.steps[step].read, _READ) for step in shown]
                columns += [Column(each, f"reads {step + 1}") for step, each in zip(shown, looks, strict=True)]
        return Block(self.title, columns, self.labels)


def _frame_boxes(pictures: np.ndarray, boxes: Tensor | None, colour: str) -> np.ndarray:
    """Return pictures [R, C, H, W], enlarged, as RGB with a box drawn in each; boxes are cut at the border."""
    large = enlarge(convert_to_rgb(pictures), TILE)
    if boxes is None:
        return np.moveaxis(large, -1, 1)
    factor, framed = large.shape[1] // pictures.shape[-2], []
    for pixels, box in zip(large, boxes.float().cpu().numpy(), strict=True):
        image = Image.fromarray(pixels)
        limit = np.array([image.width, image.height, image.width, image.height]) - 1
        # A box of centres of pixels, grown to their borders.
        grown = (box + np.array([-0.5, -0.5, 0.5, 0.5]) + 0.5) * factor
        left, top, right, bottom = np.clip(np.rint(grown), 0, limit).astype(int).tolist()
        ImageDraw.Draw(image).rectangle((left, top, max(left, right), max(top, bottom)), outline=colour, width=2)
        framed.append(np.asarray(image))
    return np.moveaxis(np.stack(framed), -1, 1)


def _strip_of_descriptions(session: Session, descriptions: Descriptions) -> list[_Strip]:
    """Draw a picture for each description, from each posterior that reads descriptions."""
    model = session.model
    strips = []
    for source in session.sources:
        whole = draw_completions(source.loaded, source.posterior, descriptions, 1, session.seed)
        z = draw_latents(source.loaded, source.posterior, whole, 1, session.seed)[:, 0]
        every = slice(0, len(whole)), slice(0, 1)
        condition = whole.batch_of_draws(model, *every) if model.model.conditional_on else None
        steps = require_draw(model.model).drawing_steps(z, condition)
        strips.append(_Strip(source.name, descriptions.format_texts(model), steps))
    return strips


def _strips_of_examples(session: Session, rows: Sequence[int], count: int) -> list[_Strip]:
    """Draw test pictures from the means of their posteriors, and draws from each density that reads nothing."""
    model = session.model
    start = encode_start_examples(session, rows, count)
    labels = [start.label(number) for number in range(len(start.z))]
    pictures = torch.from_numpy(np.asarray(start.examples.images)).to(start.z)
    steps = require_draw(model.model).drawing_steps(start.z, start.condition, pictures)
    strips = [_Strip(f"Mean of q(z|{', '.join(start.conditions)})", labels, steps, start.pictures)]
    if model.model.conditional_on:
        return strips
    for source in session.priors:
        z = draw_latents(source.loaded, source.posterior, empty_description(model), count, session.seed)[0]
        labels = [f"draw {number + 1}" for number in range(count)]
        strips.append(_Strip(f"Drawn from {source.name}", labels, require_draw(model.model).drawing_steps(z)))
    return strips


def _draw_blocks(strips: Sequence[_Strip], shown: Sequence[int]) -> Grid:
    return picture_page([strip.block(shown) for strip in strips])


@accepts("descriptions", "number", "rows", animated=True)
@torch.no_grad()
def draw_steps(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw the canvas of a model after each step, with the boxes that it reads and writes: of descriptions, or of test
    pictures and draws from the prior.

    Raises:
        UsageError: The model draws pictures at once.
    """
    session, count = sessions[0], options.number or _EXAMPLES
    if options.descriptions or (session.model.model.conditional_on and not options.rows):
        strips = _strip_of_descriptions(session, select_descriptions(session, options, count))
    else:
        strips = _strips_of_examples(session, options.rows, count)
    total = len(strips[0].steps)
    shown = np.unique(np.linspace(0, total - 1, min(total, _ACROSS)).round().astype(int)).tolist()
    boxes = [
        words
        for words, found in (
            ("orange: the window that the step writes through", strips[0].steps[0].written),
            ("blue: the window that the encoder reads through", strips[0].steps[0].read),
        )
        if found is not None
    ]
    explained = f" Boxes, {', '.join(boxes)}." if boxes else ""
    caption = (
        f"Mean pictures of the canvas after {len(shown)} of {total} steps.{explained} Boxes span the middles of the "
        f"outermost filters and are cut at the border. Seed {session.seed}."
        if boxes
        else f"Mean pictures of the canvas after {len(shown)} of {total} steps. Seed {session.seed}."
    )
    frames = tuple(_draw_blocks(strips, [step]) for step in range(total))
    return Picture("Drawing step by step", caption, _draw_blocks(strips, shown), telling=True, frames=frames)

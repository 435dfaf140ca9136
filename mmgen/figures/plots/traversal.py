"""What each dimension of z does to a picture: one moved at a time, those that say most of the data first.

References:
    beta-VAE (Higgins et al., 2017), Fig. 1
"""

from collections.abc import Sequence

import numpy as np
import torch

from mmgen.figures.drawing.grids import Panel, image_table
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_of
from mmgen.figures.plots._chosen import Chosen, chosen_examples
from mmgen.figures.plots._session import Session
from mmgen.generation.encodings import Ranking, encoded_part, ranking
from mmgen.generation.traversals import steps_of
from mmgen.generation.traversals import traversal as moved

__all__ = ["traversal"]

_REACH, _STEPS = 3.0, 7
_EXAMPLES, _DIMENSIONS = 2, 10
_ENCODED = 1000


def traversals(session: Session, count: int = _EXAMPLES, rows: Sequence[int] = ()) -> Picture:
    """Rows of dimensions, a block for each picture.

    Args:
        session: A model that encodes and draws images.
        count: Pictures.
        rows: Those to start from; test examples at random by default.

    Raises:
        UsageError: The model does not draw images or the data have none to start from.
    """
    chosen = chosen_examples(session, rows, count)
    encodings = encoded_part(session.model, dataset_of(session), "train", _ENCODED, session.seed)
    ranked = ranking(session.model, encodings)
    shown = ranked.dimensions[:_DIMENSIONS]
    values, reach = steps_of(encodings, shown, _REACH, _STEPS)
    panels = [_panel(chosen, number, shown, values) for number in range(len(chosen.z))]
    unit = "nats" if "nats" in ranked.measure else ""
    labels = ["the picture, decoded from its z"]
    labels += [_label(dimension, value, unit) for dimension, value in zip(shown, ranked.values, strict=False)]
    caption = (
        f"Each row one dimension of z {reach}, in {_STEPS} equal steps, all others as in the picture; ordered by "
        f"{ranked.measure} over {len(encodings.rows):,} training examples.{_left_out(ranked)} z of a picture: the mean "
        f"of q(z|{', '.join(chosen.given)}). Shown: means of p(image|z). Seed {session.seed}."
    )
    return Picture("Traversals of z", caption, image_table(panels, labels))


def _panel(chosen: Chosen, number: int, dimensions: Sequence[int], values: torch.Tensor) -> Panel:
    """The picture and its reconstruction above what becomes of it; the places beside them stay white."""
    z = chosen.z[number]
    drawn = chosen.decoded(number, moved(z[None], dimensions, values)[0])  # [d, S, C, H, W]
    first = np.ones((1, *drawn.shape[1:]), drawn.dtype)
    first[0, 0], first[0, 1] = chosen.shown.images[number], chosen.decoded(number, z[None])[0]
    return Panel(f"row {chosen.shown.rows[number]}", np.concatenate([first, drawn]))


def _label(dimension: int, value: float, unit: str) -> str:
    return f"z {dimension + 1}: {value:.2f} {unit}".rstrip()


def _left_out(ranked: Ranking) -> str:
    rest = ranked.values[_DIMENSIONS:]
    return f" {len(rest)} further ones, of at most {rest[0]:.2g}, are left out." if rest else ""


@accepts("number", "rows", one=True)
def traversal(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Traversals of one model.

    Raises:
        UsageError: It does not draw images or the data have none to start from.
    """
    return traversals(sessions[0], options.number or _EXAMPLES, options.rows)

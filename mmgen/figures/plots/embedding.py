"""A map of encodings: two dimensions of z, or its principal components, coloured by attributes or factors.

References:
    On Lines and Planes of Closest Fit to Systems of Points in Space (Pearson, 1901): principal components
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError, format_unknown_name
from mmgen.core.notation import UNKNOWN
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import (
    MUTED,
    RULE,
    SMALL,
    category_colours,
    new_figure,
    outline_colour,
    style_axes,
    value_colours,
)
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_path_of
from mmgen.figures.session import Session
from mmgen.generation.encodings import Projection, encode_split, principal_plane

__all__ = ["embedding"]

_POINTS = 2000
_MOST_PANELS, _MOST_COLOURS = 6, 12


@dataclass(frozen=True)
class Colouring:
    """Values by which the n points of a map are coloured, with their names.

    Attributes:
        values: Codes int [n], -1 where unknown, or numbers float [n], NaN where unknown.
        names: Names of the codes; empty for numbers.
    """

    values: np.ndarray
    names: tuple[str, ...] = ()


def draw_embedding(session: Session, count: int = _POINTS, by: str = "") -> Picture:
    """Draw a map of ``count`` encoded test examples, coloured by the attribute or factor ``by``.

    Args:
        session: The model.
        count: Largest number of points.
        by: Attribute or factor that colours the points; by default a panel for each of several attributes.

    Raises:
        UsageError: There is no such attribute or factor, or the data have no test examples.
    """
    path = dataset_path_of(session)
    encodings = encode_split(session.model, path, "test", count, session.seed)
    plane = principal_plane(encodings.mean)
    with Dataset.open(path) as data:
        known = _choose_colourings(session, data, encodings.rows, by)
    figure = _draw_figure(plane(encodings.mean).double().numpy(), plane, known)
    size = encodings.mean.shape[1]
    given = ", ".join(encodings.inputs)
    if size > 2:
        how = (
            f"projected on the first two principal components of {size} dimensions, which hold "
            f"{100 * plane.shares[0]:.0f} % and {100 * plane.shares[1]:.0f} % of their variance"
        )
    else:
        how = "as they are: z has two dimensions" if size == 2 else "z has one dimension"
    ladder = encodings.log_sd is None and len(session.model.model.latent.shapes) > 1
    layers = ", each layer given a draw of those below" if ladder else ""
    caption = (
        f"Means of q(z|{given}){layers} of {len(encodings.rows):,} examples, {how}. "
        f"{'Coloured by ' + ', '.join(known) + '. ' if known else ''}Seed {session.seed}."
    )
    telling = any(
        each.names and value_colours(each.names) != category_colours(len(each.names)) for each in known.values()
    )
    return Picture("Map of encodings", caption, figure, telling=telling)


def _choose_colourings(session: Session, data: Dataset, rows: np.ndarray, by: str) -> dict[str, Colouring]:
    """Return the values that colour the points, by name: those of ``by``, by default of attributes with few values."""
    found: dict[str, Colouring] = {}
    for part in data.attributes.values():
        codes = data.read_attributes(part.name, rows).astype(np.int64)
        codes[codes == UNKNOWN] = -1
        for place, (name, words) in enumerate(zip(part.names, part.values, strict=True)):
            found.setdefault(name, Colouring(codes[:, place], words))
    if not by:
        few = {name: each for name, each in found.items() if len(each.names) <= _MOST_COLOURS}
        return dict(list(few.items())[:_MOST_PANELS])
    if by in found:
        return {by: found[by]}
    if by not in data.factors:
        raise UsageError(format_unknown_name("attribute or factor", by, [*found, *data.factors]))
    return {by: _colouring_of_factor(by, data.read_factor(by)[rows])}


def _colouring_of_factor(name: str, values: np.ndarray) -> Colouring:
    if values.ndim != 1:
        raise UsageError(
            f"factor '{name}' has {math.prod(values.shape[1:])} numbers for each example, expected one; choose another"
        )
    if values.dtype.kind not in "iufb":
        words, codes = np.unique(values.astype(str), return_inverse=True)
        return Colouring(codes.astype(np.int64), tuple(map(str, words)))
    levels = np.unique(values)
    if len(levels) <= _MOST_COLOURS:
        return Colouring(np.searchsorted(levels, values), tuple(f"{level:g}" for level in levels))
    return Colouring(values.astype(np.float64))


def _draw_figure(points: np.ndarray, plane: Projection, colourings: Mapping[str, Colouring]) -> Figure:
    panels: list[tuple[str, Colouring | None]] = list(colourings.items()) or [("", None)]
    columns = 2 if len(panels) == 4 else min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(max(5.0, 3.7 * columns), 3.9 * rows)
    size = len(plane.centre)
    flat = [f"PC {place + 1} ({100 * share:.0f} % of the variance)" for place, share in enumerate(plane.shares)]
    labels = flat if size > 2 else ["$z_1$", "$z_2$" if size == 2 else ""]
    for place, (name, colouring) in enumerate(panels):
        axes = style_axes(figure.add_subplot(rows, columns, place + 1), name, *labels)
        axes.set_aspect("equal", adjustable="datalim")
        _scatter(figure, axes, points, colouring)
    return figure


def _scatter(figure: Figure, axes: Axes, points: np.ndarray, colouring: Colouring | None) -> None:
    size = 14 if len(points) < 500 else 6
    if colouring is None:
        axes.scatter(points[:, 0], points[:, 1], s=size, color=category_colours(1)[0], alpha=0.6, linewidths=0)
        return
    values = colouring.values
    unknown = values < 0 if colouring.names else np.isnan(values)
    if unknown.any():
        axes.scatter(points[unknown, 0], points[unknown, 1], s=size, color=RULE, linewidths=0, label="unknown")
    if not colouring.names:
        drawn = axes.scatter(
            points[~unknown, 0], points[~unknown, 1], s=size, c=values[~unknown], cmap="viridis", linewidths=0
        )
        figure.colorbar(drawn, ax=axes, shrink=0.8).ax.tick_params(labelsize=SMALL, colors=MUTED)
        return
    # In the order of the data, so that no value always lies on top.
    palette = np.array(value_colours(colouring.names))
    rims = np.array([outline_colour(colour) for colour in palette])
    shown, wide = values[~unknown], 0.5 if (rims != palette).any() else 0
    axes.scatter(
        points[~unknown, 0], points[~unknown, 1], s=size, c=palette[shown], alpha=0.75, edgecolors=rims[shown],
        linewidths=wide,
    )  # fmt: skip
    for colour, edge, word in zip(palette, rims, colouring.names, strict=True):
        axes.scatter([], [], s=30, color=colour, edgecolors=edge, label=word)
    columns = 2 if max(map(len, colouring.names)) > 8 else 4
    axes.legend(
        frameon=False, fontsize=SMALL, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, -0.16),
        handletextpad=0.1, columnspacing=0.8,
    )  # fmt: skip


@accepts("number", "by", lines=True)
def embedding(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw a map of the encodings of one model.

    Raises:
        UsageError: There is no such attribute or factor, or the data have no test examples.
    """
    return draw_embedding(sessions[0], options.number or _POINTS, options.by)

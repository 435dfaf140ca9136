"""Labels beside the points of a chart, placed so that they cover no mark and no other label."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

__all__ = ["LabelPlacer"]

_DIRECTIONS = [math.radians(angle) for angle in (0, 45, 315, 90, 270, 135, 225, 180)]
_DISTANCES = (5.0, 9.0, 14.0, 22.0, 32.0)
"""Distances of labels from their points; the nearest free one is taken."""
_NEAR = 9.0
"""Distance beyond which a label is connected to its point by a line."""
_STEP = 4.0
"""Typographic points between reserved places along a line."""


class LabelPlacer:
    """Placer of the labels of a chart: it puts each label at the first free place around its point.

    Args:
        axes: The axes to label, with final limits and size.
    """

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        figure = axes.get_figure(root=True)
        assert figure is not None
        figure.draw_without_rendering()  # settles where the axes are
        self._figure = figure
        self._pixels = figure.dpi / 72
        self._occupied: list[tuple[float, float, float, float]] = []  # x0, y0, x1, y1 of boxes, in pixels

    def keep_free(self, x: Sequence[float], y: Sequence[float], radius: float = 2.5) -> None:
        """Keep labels off the line through these points, and off ``radius`` typographic points to each side of it."""
        places = self._axes.transData.transform(np.column_stack([x, y]))
        for start, end in zip(places, [*places[1:], places[-1]], strict=True):
            steps = max(1, math.ceil(math.dist(start, end) / (_STEP * self._pixels)))
            for share in np.linspace(0, 1, steps, endpoint=False):
                self._occupy(start + share * (end - start), radius)

    def _occupy(self, place: np.ndarray, radius: float) -> None:
        reach = radius * self._pixels
        self._occupied.append((*(place - reach), *(place + reach)))

    def place_label(
        self, x: float, y: float, text: str, colour: str, *, required: bool = True, bold: bool = False, size: float = 9
    ) -> Annotation | None:
        """Place a label near the point (x, y); return None if no place is free and the label is not required."""
        label = self._axes.annotate(
            text, (x, y), xytext=(0, 0), textcoords="offset points", color=colour, fontsize=size,
            fontweight="bold" if bold else "normal", ha="center", va="center", annotation_clip=False, zorder=20,
        )  # fmt: skip
        label.set_in_layout(False)
        box = label.get_window_extent()
        half = np.array([box.width, box.height]) / 2 / self._pixels
        best, least = (0.0, 0.0), math.inf
        for offset in self._candidate_offsets(half, _DISTANCES if required else _DISTANCES[:2]):
            label.set_position(offset)
            cost = self._cost(label.get_window_extent())
            if cost < least:
                best, least = offset, cost
            if not cost:
                break
        if least and not required:
            label.remove()
            return None
        label.set_position(best)
        extent = label.get_window_extent()
        self._occupied.append(extent.padded(1).extents)
        place = self._axes.transData.transform((x, y))
        away = (np.clip(place, extent.min, extent.max) - place) / self._pixels
        if math.hypot(*away) > _NEAR + 0.5:
            line = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
            self._axes.annotate(
                "", (x, y), xytext=away, textcoords="offset points", arrowprops=line, annotation_clip=False, zorder=3
            )
        return label

    def _candidate_offsets(self, half: np.ndarray, distances: Sequence[float]) -> Iterable[tuple[float, float]]:
        for distance in distances:
            for angle in _DIRECTIONS:
                across, up = math.cos(angle), math.sin(angle)
                yield across * (distance + half[0]), up * (distance + half[1])

    def _cost(self, box: Bbox) -> float:
        """Return the number of occupied pixels that a label's box would cover; very large outside the picture."""
        taken = np.array(self._occupied).reshape(-1, 4)
        common = np.minimum(taken[:, 2:], box.max) - np.maximum(taken[:, :2], box.min)
        covered = float(common.clip(0).prod(1).sum())
        whole = self._figure.bbox
        outside = box.x0 < whole.x0 or box.x1 > whole.x1 or box.y0 < whole.y0 or box.y1 > whole.y1
        return covered + (1e9 if outside else 0.0)

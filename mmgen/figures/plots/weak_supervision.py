"""Accuracy of predicted labels of images over the number of paired examples, a line for each method (WG Fig. 3).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335, Fig. 3
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.style import FAINT, INK, SMALL, category_colours, new_figure, style_axes
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.session import Session
from mmgen.results.groups import group_runs
from mmgen.results.score import Score

__all__ = ["weak_supervision"]

_NAMES = {
    "mvae": "MVAE",
    "jmvae": "JMVAE, pairs alone",
    "supervised": "supervised network",
    "vae": "VAE + logistic regression",
    "autoencoder": "autoencoder + logistic regression",
    "rbm": "RBM + logistic regression",
    "logistic": "logistic regression on pixels",
}
_MARKERS = "osD^vP*XphH"


@dataclass(frozen=True)
class Point:
    """Label accuracy of a method that was trained with a certain number of pairs (image and labels).

    Attributes:
        pairs: Number of paired examples.
        value: Accuracy in percent, mean over seeds.
        stderr: Its standard error.
        n: Number of test images.
        by_seed: Accuracy of each seed; empty for a single seed.
    """

    pairs: int
    value: float
    stderr: float
    n: int
    by_seed: tuple[float, ...] = ()


@dataclass(frozen=True)
class Curve:
    """Label accuracies of one method over the number of pairs in training."""

    method: str
    points: tuple[Point, ...]

    @property
    def label(self) -> str:
        """Name of the method for the legend."""
        return _NAMES.get(self.method, self.method)


def make_curves(scores: Sequence[Score]) -> list[Curve]:
    """Make a curve of label accuracies for each method, joint models first; a point is the mean over seeds.

    Labels of models are predicted at the mean of q(z|x). The last of several scores of the same method, number of pairs
    and seed counts (:func:`count_repeated` counts the others).

    Raises:
        UsageError: No score has a number of pairs, or runs of a point differ in more than their seed.
    """
    found = _group_by_point(scores)
    if not found:
        raise UsageError(
            "weak-supervision shows accuracies over numbers of pairs, got no such scores; "
            "measure some with mmgen train "
            "--paired and mmgen eval --metric label-accuracy -o, and with mmgen baseline --paired"
        )
    methods = {method for method, _ in found}
    order = [name for name in _NAMES if name in methods] + sorted(methods - _NAMES.keys())
    return [
        Curve(
            method,
            tuple(_mean_point(*key, list(runs.values())) for key, runs in sorted(found.items()) if key[0] == method),
        )
        for method in order
    ]


def _belongs_to_figure(score: Score) -> bool:
    pairs, method = score.details.get("paired"), score.details.get("method")
    return (
        score.metric == "label-accuracy"
        and score.quantity == "whole description"
        and score.protocol in ("mean", "baseline")
        and isinstance(pairs, int)
        and isinstance(method, str)
        and pairs > 0
        and math.isfinite(score.value)
    )


def _group_by_point(scores: Sequence[Score]) -> dict[tuple[str, int], dict[str, Score]]:
    """Group scores by (method, number of pairs), then by the seed of the run, "" if unknown."""
    found: dict[tuple[str, int], dict[str, Score]] = {}
    for score in filter(_belongs_to_figure, scores):
        runs = found.setdefault((score.details["method"], score.details["paired"]), {})
        seed = score.run.get("seed", "")
        runs.pop(seed, None)
        runs[seed] = score
    return found


def count_repeated(scores: Sequence[Score]) -> int:
    """Count the scores that a later one of the same method, number of pairs and seed replaces."""
    return sum(map(_belongs_to_figure, scores)) - sum(map(len, _group_by_point(scores).values()))


def _mean_point(method: str, pairs: int, runs: Sequence[Score]) -> Point:
    """Compute the mean accuracy of runs; its error combines the spread over seeds and over test images."""
    if len({score.run.get("settings", "") for score in runs}) > 1:
        raise UsageError(
            f"{_NAMES.get(method, method)} with {pairs:,} pairs got {len(runs)} runs whose settings differ, expected "
            "runs that differ only in their seed; name scores of one setting, or plot each setting separately"
        )
    group = group_runs(runs)
    of_images = math.sqrt(fmean((score.stderr or 0.0) ** 2 for score in runs))
    if group.n == 1:
        return Point(pairs, group.mean, of_images, runs[0].n)
    each = tuple(score.value for score in runs)
    return Point(pairs, group.mean, math.hypot(of_images, group.stderr or 0.0), runs[0].n, each)


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """Draw label accuracy over the number of pairs with standard errors."""
    figure = new_figure(7.6, 4.4)
    axes = style_axes(figure.add_subplot(), "", "number of paired examples", "labels read off test images, % right")
    axes.set_xscale("log")
    pairs = sorted({point.pairs for curve in curves for point in curve.points})
    colours = category_colours(len(curves))
    for number, (curve, colour) in enumerate(zip(curves, colours, strict=True)):
        main = curve.method == "mvae"
        axes.errorbar(
            [point.pairs for point in curve.points],
            [point.value for point in curve.points],
            yerr=[point.stderr for point in curve.points],
            color=colour,
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=7 if main else 4.5,
            linewidth=2.6 if main else 1.3,
            capsize=2,
            zorder=10 if main else 5 - 0.1 * number,
            label=curve.label,
        )
        for point in curve.points:
            axes.scatter(
                [point.pairs] * len(point.by_seed), point.by_seed,
                s=12, color=colour, edgecolors="white", linewidths=0.5, zorder=11,
            )  # fmt: skip
    axes.set_xticks(pairs, [f"{count:,}" for count in pairs])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    axes.grid(axis="y", color=FAINT, linewidth=1)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=SMALL, loc="lower right", labelcolor=INK)
    return figure


@accepts(shows="scores", lines=True)
def weak_supervision(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw label accuracies over numbers of pairs from files of scores; models among the files are ignored.

    Raises:
        UsageError: No score has a number of pairs.
    """
    curves, over = make_curves(options.scores), count_repeated(options.scores)
    counts = sorted({point.n for curve in curves for point in curve.points})
    seeds = sorted({len(point.by_seed) or 1 for curve in curves for point in curve.points})
    images = f"{' or '.join(f'{count:,}' for count in counts)} test images"
    caption = (
        f"Each point is measured on {images}; bars are one binomial standard error."
        if seeds == [1]
        else f"Each point is the mean of {' or '.join(map(str, seeds))} seeds, whose own values are the dots, on "
        f"{images}; bars are one standard error, over seeds and over images."
    )
    if over:
        caption += f" {over:,} earlier scores of the same method, number of pairs and seed are not shown."
    return Picture("Labels read off images, by number of paired examples", caption, draw_curves(curves))

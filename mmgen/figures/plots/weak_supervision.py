"""Accuracy of predicted labels of images over the number of paired examples, a line for each method (WG Fig. 3).

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335, Fig. 3
"""

import math
from collections.abc import Sequence
from statistics import fmean

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.plots._lines import Line, Point, draw_legend, draw_lines, new_axes
from mmgen.figures.session import Session
from mmgen.results.groups import group_runs
from mmgen.results.number import Number
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


def make_curves(scores: Sequence[Score]) -> list[Line]:
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
        Line(
            _NAMES.get(method, method),
            tuple(_mean_point(*key, list(runs.values())) for key, runs in sorted(found.items()) if key[0] == method),
            method == "mvae",
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
    each = tuple(score.value for score in runs) if group.n > 1 else ()
    error = math.hypot(of_images, group.stderr or 0.0) if each else of_images
    return Point(Number(pairs), Number(group.mean, error), models=group.n, by_seed=each)


def draw_curves(curves: Sequence[Line]) -> Figure:
    """Draw label accuracy over the number of pairs with standard errors."""
    figure, axes = new_axes("number of paired examples", "labels read off test images, % right", 7.6, 4.4)
    axes.set_xscale("log")
    draw_lines(axes, curves)
    pairs = sorted({point.x.value for curve in curves for point in curve.points})
    axes.set_xticks(pairs, [f"{count:,}" for count in pairs])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    axes.grid(visible=False, axis="x")
    draw_legend(axes, loc="lower right")
    return figure


@accepts(shows="scores", lines=True)
def weak_supervision(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw label accuracies over numbers of pairs from files of scores; models among the files are ignored.

    Raises:
        UsageError: No score has a number of pairs.
    """
    curves, over = make_curves(options.scores), count_repeated(options.scores)
    counts = sorted({score.n for runs in _group_by_point(options.scores).values() for score in runs.values()})
    seeds = sorted({point.models for curve in curves for point in curve.points})
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

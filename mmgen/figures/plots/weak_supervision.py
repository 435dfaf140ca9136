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
from mmgen.figures.drawing.style import FAINT, INK, MUTED, SMALL, category_colours, new_figure, style_axes
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
_PAIRS_ALONE = ("jmvae", "supervised", "logistic")
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

    def point_at(self, pairs: int) -> Point | None:
        """Return the accuracy at this number of pairs; None if it was not measured."""
        return next((point for point in self.points if point.pairs == pairs), None)


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


def _leading_points(curves: Sequence[Curve]) -> list[tuple[Point, Point]]:
    """Return pairs of points, MVAE and supervised network, where MVAE is better by more than two standard errors."""
    by_method = {curve.method: curve for curve in curves}
    if "mvae" not in by_method or "supervised" not in by_method:
        return []
    both = [(point, by_method["supervised"].point_at(point.pairs)) for point in by_method["mvae"].points]
    return [
        (ours, theirs)
        for ours, theirs in both
        if theirs is not None and ours.value - theirs.value > 2 * math.hypot(ours.stderr, theirs.stderr)
    ]


def describe_finding(curves: Sequence[Curve]) -> str:
    """Describe for a caption at which numbers of pairs MVAE leads the other methods, as the paper found."""
    mvae = next((curve for curve in curves if curve.method == "mvae"), None)
    if mvae is None:
        return ""
    said = []
    ahead = _leading_points(curves)
    if ahead:
        ours, theirs = max(ahead, key=lambda pair: pair[0].value - pair[1].value)
        where = f"{ours.pairs:,} pairs"
        said.append(
            f"MVAE is above the supervised network by more than two standard errors at "
            f"{_join_with_and([f'{point.pairs:,}' for point, _ in ahead])} pairs, most of all at {where}: "
            f"{ours.value:.1f} % against {theirs.value:.1f} %."
        )
    elif any(curve.method == "supervised" for curve in curves):
        said.append("MVAE is nowhere above the supervised network by more than two standard errors.")
    first = [
        point.pairs
        for point in mvae.points
        if len(curves) > 1
        and all(
            other is None or point.value > other.value
            for other in (curve.point_at(point.pairs) for curve in curves if curve is not mvae)
        )
    ]
    if first:
        said.append(f"It is above every other method at {_join_with_and([f'{pairs:,}' for pairs in first])} pairs.")
    return " ".join(said)


def describe_unlabelled_use(curves: Sequence[Curve]) -> str:
    """Describe for a caption which methods also learn from images without labels."""
    alone = [curve.label.removesuffix(", pairs alone") for curve in curves if curve.method in _PAIRS_ALONE]
    if not alone:
        return "All methods learn from the same pairs, and from the other images without labels."
    if len(alone) == len(curves):
        return "All methods learn from the same pairs alone."
    return f"All methods learn from the same pairs; all but {_join_with_and(alone)} also from images without labels."


def differences_from_paper(scores: Sequence[Score]) -> str:
    """Describe for a caption how the training of MVAE differed from the paper's; "" if it did not."""
    said = {}
    for score in scores:
        drawn, predicts = score.details.get("least_paired_share"), score.details.get("predicts")
        if isinstance(drawn, int | float):
            said["drawn"] = f"at least {100 * drawn:g} % of the examples drawn are paired"
        if isinstance(predicts, dict):
            each = [
                f"q(z|{name}) explains {_join_with_and(list(map(str, others)))}" for name, others in predicts.items()
            ]
            said["predicts"] = f"{_join_with_and(each)} of paired examples too"
    return f"Unlike in the paper, {_join_with_and(list(said.values()))}." if said else ""


def _join_with_and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def draw_curves(curves: Sequence[Curve]) -> Figure:
    """Draw label accuracy over the number of pairs with standard errors, shaded where MVAE leads the network."""
    figure = new_figure(7.6, 4.4)
    axes = style_axes(figure.add_subplot(), "", "number of paired examples", "labels read off test images, % right")
    axes.set_xscale("log")
    pairs = sorted({point.pairs for curve in curves for point in curve.points})
    for ours, _ in _leading_points(curves):
        left, right = _interval(pairs, ours.pairs)
        axes.axvspan(left, right, color=FAINT, zorder=0, linewidth=0)
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
    if _leading_points(curves):
        axes.text(
            0, 1.02, "shaded: MVAE above the supervised network by more than two standard errors",
            transform=axes.transAxes, fontsize=SMALL, color=MUTED,
        )  # fmt: skip
    return figure


def _interval(pairs: Sequence[int], count: int) -> tuple[float, float]:
    """Return the interval around a number of pairs that reaches half way to its neighbours on a logarithmic axis."""
    place = pairs.index(count)
    step = 2.0
    left = math.sqrt(count * pairs[place - 1]) if place else count / step
    right = math.sqrt(count * pairs[place + 1]) if place + 1 < len(pairs) else count * step
    return left, right


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
    said = [caption, describe_unlabelled_use(curves), differences_from_paper(options.scores), describe_finding(curves)]
    return Picture(
        "Labels read off images, by number of paired examples", " ".join(filter(None, said)), draw_curves(curves)
    )

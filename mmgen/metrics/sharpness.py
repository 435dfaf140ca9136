"""Sharpness: fine detail and steepest edges of drawn pictures, as shares of real ones', and the weave on even areas.

References:
    Diatom autofocusing in brightfield microscopy: a comparative study (Pech-Pacheco et al., 2000), ICPR: the Laplacian
    as a measure of focus
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import avg_pool2d, max_pool2d

from mmgen.evaluation.queries import weighted_mean
from mmgen.evaluation.same_words import Bytes, draw_same_words, explain_missing_pictures
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Sharpness"]


_WINDOW = 5
"""Height and width over which a picture is smoothed, and an area has to be even."""
_EVEN = 0.05
"""Largest difference of smoothed values within an even area, from 0 to 1."""
_STEEP = 0.01
"""Share of the steepest pixels."""

Floats = NDArray[np.float64]


def measure_details(pictures: Bytes) -> Floats:
    """Measure pictures [n, C, H, W]: [n, 4].

    Columns: the mean squared Laplacian (fine detail); the mean gradient of the steepest 1 % of pixels; the mean over
    pixels of the squared residue of smoothing by 5 x 5, on even areas alone; and the share of pixels in such areas. An
    area of 5 x 5 is even if, smoothed twice, it differs by no more than 5 % of the range of values.
    """
    x = torch.from_numpy(pictures).float() / 255
    sides = x[..., :-2, 1:-1] + x[..., 2:, 1:-1] + x[..., 1:-1, :-2] + x[..., 1:-1, 2:]
    laplacian = sides - 4 * x[..., 1:-1, 1:-1]
    down, right = x[..., 1:, :-1] - x[..., :-1, :-1], x[..., :-1, 1:] - x[..., :-1, :-1]
    steepness = (down.square() + right.square()).mean(1).sqrt().flatten(1)
    steepest = steepness.topk(max(1, round(_STEEP * steepness.shape[1])), 1).values.mean(1)
    smooth = _smooth(x)
    twice = _smooth(smooth)
    reach = max_pool2d(twice, _WINDOW, 1, _WINDOW // 2) + max_pool2d(-twice, _WINDOW, 1, _WINDOW // 2)
    even = (reach <= _EVEN).float()
    each = laplacian.square(), (x - smooth).square() * even, even
    fine, residue, share = (values.mean((1, 2, 3)) for values in each)
    return torch.stack([fine, steepest, residue, share], 1).double().numpy()


def _smooth(x: Tensor) -> Tensor:
    return avg_pool2d(x, _WINDOW, 1, _WINDOW // 2, count_include_pad=False)


def _ratio_of_means(above: Floats, below: Floats, weights: Floats, seed: int) -> tuple[float, float | None]:
    """Return the ratio of two weighted means over descriptions [Q] with its error; NaN where all below are 0."""
    base = float(np.average(below, weights=weights)) or np.nan
    ratio = float(np.average(above, weights=weights)) / base
    return ratio, weighted_mean((above - ratio * below) / base, weights, seed).stderr


class Sharpness(Metric):
    r"""Fine detail of drawn pictures in percent of that of real pictures with the same words, edges, and weave.

    .. math:: 100 \, \frac{\sum_q w_q \overline{|\Delta x|^2}_{drawn, q}}{\sum_q w_q \overline{|\Delta x|^2}_{real, q}}

    ``fine detail`` is that of the squared Laplacian; ``steepest edges`` that of the mean gradient of the steepest 1 %
    of pixels; both are 100 % of a perfect model, less of blurred pictures, and more of noise. ``weave`` is what remains
    on even areas after smoothing by 5 x 5, root mean square in grey levels of 255, beside the same of real pictures.
    Errors are over descriptions, those with the most words that are asked for.
    """

    unit = "%"
    better = "neither"
    further_units: ClassVar = {"grey levels": "lower"}
    points = "seen"
    rank = 3
    reads = ("judge", *DESCRIPTIONS)
    columns: ClassVar = {"real pictures": "ceiling", "queries": "queries"}
    needs = (explain_missing_pictures,)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        if evaluation.has_further_judge:  # pixels are the same for all judges
            return []
        found = yield from draw_same_words(evaluation, posterior)
        drawn, real = (
            np.stack([measure_details(each).mean(0) for each in pictures]) for pictures in (found.drawn, found.real)
        )
        weights, seed, counts = found.queries.weights, evaluation.settings.seed, found.about["details"]
        scores = []
        for place, quantity in enumerate(("fine detail", "steepest edges")):
            value, error = _ratio_of_means(100 * drawn[:, place], real[:, place], weights, seed)
            about = {**found.about, "details": {**counts, "ceiling": 100.0}}
            scores.append(self.score(evaluation, value, error, quantity=quantity, **about))
        (square, error), (usual, its_error) = (
            _ratio_of_means(255**2 * each[:, 2], each[:, 3], weights, seed) for each in (drawn, real)
        )
        root, ceiling = float(np.sqrt(square)), float(np.sqrt(usual))
        about = {**found.about, "details": {**counts, "ceiling": ceiling, "ceiling_stderr": _halve(its_error, ceiling)}}
        scores.append(self.score(evaluation, root, _halve(error, root), quantity="weave", unit="grey levels", **about))
        return [score for score in scores if np.isfinite(score.value)]


def _halve(error: float | None, root: float) -> float | None:
    """Return the standard error of a root from that of its square, to first order."""
    return None if error is None else error / (2 * root or 1.0)

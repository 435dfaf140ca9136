"""Truth: how near drawn pictures are to real ones with their words, and whose words the nearest real one has."""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.evaluation.queries import average_by_attribute, weighted_mean
from mmgen.evaluation.retrieved import RetrievedPictures
from mmgen.evaluation.same_words import Bytes, SameWords, draw_same_words, explain_missing_pictures, read_pictures
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.evaluation.training_pictures import explain_missing_training_pictures
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Truth"]


_HALF_A_LEVEL = 1 / 12 / 255**2
"""Mean squared error of rounding to grey levels: pictures that differ by less are equal."""
_TOGETHER = 2048
"""Real pictures that are compared at a time."""

Floats = NDArray[np.float64]


def _square_distances(pictures: Bytes, others: Bytes) -> Floats:
    """Return the mean squared differences [n, m] of pictures [n, C, H, W] and others [m, C, H, W], values 0 to 1."""
    one, other = (torch.from_numpy(each).flatten(1).float() / 255 for each in (pictures, others))
    return (torch.cdist(one, other).double().square() / one.shape[1]).numpy()


def mean_psnr(pictures: Bytes, others: Bytes, leave_itself_out: bool = False) -> float:
    """Return the mean over pictures of the PSNR in dB of each to the nearest of others; at most 58.9 (equal bytes).

    Args:
        pictures: Pictures [n, C, H, W].
        others: Pictures [m, C, H, W].
        leave_itself_out: Whether both are the same, and each is compared with the rest.

    Example:
        >>> black, grey = np.zeros((1, 1, 2, 2), np.uint8), np.full((1, 1, 2, 2), 51, np.uint8)
        >>> round(mean_psnr(black, grey), 2)  # a fifth of the range
        13.98
    """
    squares = _square_distances(pictures, others)
    if leave_itself_out:
        np.fill_diagonal(squares, np.inf)
    return float(-10 * np.log10(np.maximum(squares.min(1), _HALF_A_LEVEL)).mean())


class Truth(Metric):
    r"""PSNR in dB of each drawn picture to the nearest real one of the evaluated part that has its words.

    .. math:: \frac{1}{Q n} \sum_{q, i} \max_{x \in R_q} 10 \log_{10} \frac{1}{\overline{(x_{qi} - x)^2}}

    R_q are real pictures with the words of description q, at most 64, and values lie from 0 to 1. ``real pictures`` is
    the same of these themselves, each beside the others, of descriptions with two or more. ``look-up`` is that of
    training pictures with the same words, or else with the most of them: what a model has to beat where words were
    never together.

    ``nearest has the words`` is the percentage of drawn pictures whose nearest real picture, of training or of the
    evaluated part, has exactly the words that were given; ``by_attribute`` has each word alone. Pixels are compared in
    place, so a truth that may stand elsewhere counts as another picture. Errors are over descriptions.
    """

    unit = "dB"
    better = "higher"
    further_units: ClassVar = {"%": "higher"}
    points = "seen"
    rank = 3
    reads = ("judge", *DESCRIPTIONS)
    columns: ClassVar = {"real pictures": "ceiling", "look-up": "look_up", "queries": "queries"}
    needs = (explain_missing_pictures, explain_missing_training_pictures)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        if evaluation.has_further_judge:  # pixels are the same for all judges
            return []
        found = yield from draw_same_words(evaluation, posterior)
        return [self._score_distances(evaluation, found), self._score_words(evaluation, found)]

    def _score_distances(self, evaluation: "Evaluation", found: SameWords) -> Score:
        seed, weights, training = evaluation.settings.seed, found.queries.weights, evaluation.training_pictures.rows
        retrieved = RetrievedPictures(evaluation.dataset, evaluation.loaded, training, seed)
        rows = retrieved.find_rows(found.queries, found.drawn.shape[1])
        looked_up = [read_pictures(evaluation, each) for each in rows]
        own, others = (
            np.array([mean_psnr(*pair) for pair in zip(pictures, found.real, strict=True)])
            for pictures in (found.drawn, looked_up)
        )
        several = np.array([len(real) > 1 for real in found.real])
        of_real = np.array([mean_psnr(real, real, True) if len(real) > 1 else np.nan for real in found.real])
        mean, look_up = (weighted_mean(values, weights, seed) for values in (own, others))
        details = {**found.about["details"], "look_up": look_up.value, "look_up_stderr": look_up.stderr}
        if several.any():
            ceiling = weighted_mean(of_real[several], weights[several], seed)
            details |= {"ceiling": ceiling.value, "ceiling_stderr": ceiling.stderr}
        points = ExampleValues.from_values(own, weights)
        about = {**found.about, "details": details, "points": points}
        return self.score(evaluation, mean.value, mean.stderr, quantity="nearest true picture", **about)

    def _score_words(self, evaluation: "Evaluation", found: SameWords) -> Score:
        """Score whether the nearest real picture of each drawn one has the words that were given."""
        queries, info, n = found.queries, evaluation.attributes, found.about["n"]
        rows = np.union1d(evaluation.training_pictures.rows, evaluation.rows())
        nearest = rows[_find_nearest(evaluation, np.concatenate(found.drawn), rows)]
        codes = evaluation.dataset.read_attributes(info.name, nearest).reshape(*found.drawn.shape[:2], -1)
        given = queries.codes != UNKNOWN
        right = codes == queries.codes[:, None]
        values = 100.0 * (right | ~given[:, None]).all(2).mean(1)
        mean = weighted_mean(values, queries.weights, evaluation.settings.seed)
        return self.score(
            evaluation, mean.value, share_error(mean.value, mean.stderr, n, len(queries)), unit="%",
            quantity="nearest has the words", points=ExampleValues.from_values(values, queries.weights),
            by_attribute=average_by_attribute(info.names, right, given, queries.weights), **found.about,
        )  # fmt: skip


def _find_nearest(evaluation: "Evaluation", pictures: Bytes, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each picture [n, C, H, W] which of ``rows`` of the dataset has the nearest one, [n]."""
    best, nearest = np.full(len(pictures), np.inf), np.zeros(len(pictures), np.int64)
    for start in range(0, len(rows), _TOGETHER):
        squares = _square_distances(pictures, read_pictures(evaluation, rows[start : start + _TOGETHER]))
        closer = squares.min(1) < best
        best[closer], nearest[closer] = squares.min(1)[closer], start + squares.argmin(1)[closer]
    return nearest

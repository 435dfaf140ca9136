"""Coverage: whether attributes that a description leaves open vary as in the data.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Section 3
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import needs
from mmgen.evaluation.divergence import jackknifed, jensen_shannon, remaining_bias
from mmgen.evaluation.queries import Frequencies, Mean, Queries, weighted_mean
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import Metric, Points, Score, relay
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Coverage"]

_PAPER_DRAWS = 10
_LEAST_DRAWS = 48
"""Below this the estimate of the remaining bias is itself not reliable for a 10-way attribute."""
_MOST_DRAWS = 768


@dataclass(frozen=True)
class _Measured:
    """Coverage of every query in percent: corrected, uncorrected, and the remaining bias."""

    values: NDArray[np.float64]
    uncorrected: NDArray[np.float64]
    bias: NDArray[np.float64]
    unmatched: int


def _partial_descriptions(evaluation: "Evaluation") -> str:
    """Need posteriors that read descriptions with attributes left out."""
    if not evaluation.questions.whole_captions:
        return ""
    return (
        "asks for descriptions with attributes left out, and this q(z | text) reads whole captions; fit one with: "
        f"mmgen fit-aggregate {evaluation.loaded.model_path} --given attributes"
    )


class Coverage(Metric):
    r"""Mean over unspecified attributes of 1 - JS(p_k, q_k), q_k being the predicted values on the pictures of a query.

    .. math:: \frac{1}{|M|} \sum_{k \in M} (1 - JS(p_k, q_k))  \qquad \text{(VE Section 3)}

    Protocol ``exact``: JS in base 2, so that the range is 0 to 100 %; p_k from the training part, given the attributes
    of the query; JS corrected by the jackknife; and as many pictures (doubling from 48) as bring the remaining bias
    below the standard error over queries, or for a single query below that over its pictures
    (``stderr_over_pictures``). The standard error includes the bias. The corrected mean of a perfect model is as often
    above 100 as below: it is clipped at 100, with ``unclipped`` in ``details`` for means over several models. Protocol
    ``paper``: 10 pictures, JS in nats (so that nothing is below 1 - ln 2 = 30.7 %), uniform p_k, no correction, as VE.
    """

    unit = "%"
    better = "higher"
    rank = 1
    reads = ("protocol", *DESCRIPTIONS)
    columns: ClassVar = {
        "sd of 5 splits": "splits_sd",
        "queries": "queries",
        "bias left": "bias",
        "uncorrected": "uncorrected",
    }

    protocols: ClassVar = {
        "exact": "How near the values that are left open come to their shares in the training data, in base 2, with so "
        "many pictures that the bias stays below the standard error.",
        "paper": "The same as Vedantam et al. (2018) compute it.",
    }

    needs = (needs.judge, _partial_descriptions)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        questions = evaluation.questions
        most = len(evaluation.info.names) - len(questions.hints)
        dropped = [number for number in questions.dropped if 0 < number <= most]
        scores = []
        for done, number in enumerate(dropped):
            queries = questions.of(number)
            measure = self._paper if evaluation.settings.protocol == "paper" else self._exact
            score = yield from relay(measure(evaluation, posterior, queries), done / len(dropped), 1 / len(dropped))
            scores.append(score)
        return scores

    def _paper(self, evaluation: "Evaluation", posterior: str, queries: Queries) -> Generator[float, None, Score]:
        judged = yield from evaluation.draws.judged(queries, posterior, _PAPER_DRAWS)
        judged = judged[:, :_PAPER_DRAWS]
        values = np.zeros(len(queries))
        for rows, _, counts in open_attributes(queries, judged, evaluation.info.sizes):
            uniform = np.full(counts.shape[1], 1 / counts.shape[1])
            values[rows] += 100 * (1 - jensen_shannon(uniform, counts / _PAPER_DRAWS, base=math.e)) / queries.dropped
        measured = _Measured(values, values, np.zeros(len(queries)), 0)
        return self._score(evaluation, posterior, queries, judged, measured, {})

    def _exact(self, evaluation: "Evaluation", posterior: str, queries: Queries) -> Generator[float, None, Score]:
        draws = max(_LEAST_DRAWS, evaluation.settings.draws)
        while True:
            judged = yield from evaluation.draws.judged(queries, posterior, draws)
            measured = exact_coverage(queries, judged, evaluation.questions.frequencies, evaluation.settings.seed)
            mean = weighted_mean(measured.values, queries.weights, evaluation.settings.seed)
            bias = float(np.average(measured.bias, weights=queries.weights))
            of_pictures = (
                picture_error(queries, judged, evaluation.questions.frequencies) if mean.stderr is None else None
            )
            settled = abs(bias) < (mean.stderr or of_pictures or 0.0)
            if settled or judged.shape[1] >= _MOST_DRAWS:
                break
            draws = 2 * judged.shape[1]
        pictures = judged.shape[0] * judged.shape[1]
        details = {
            "bias": bias,
            "bias_below_stderr": settled,
            **({} if of_pictures is None else {"stderr_over_pictures": share_error(mean.value, of_pictures, pictures)}),
            "unclipped": mean.value,
            "uncorrected": float(np.average(measured.uncorrected, weights=queries.weights)),
            "queries_without_training_examples": measured.unmatched,
        }
        return self._score(evaluation, posterior, queries, judged, measured, details)

    def _score(
        self,
        evaluation: "Evaluation",
        posterior: str,
        queries: Queries,
        judged: NDArray[np.uint8],
        measured: _Measured,
        details: dict[str, Any],
    ) -> Score:
        mean = weighted_mean(measured.values, queries.weights, evaluation.settings.seed)
        pictures = judged.shape[0] * judged.shape[1]
        value, stderr = reported(mean, float(np.average(measured.bias, weights=queries.weights)), pictures)
        return self.score(
            evaluation,
            value,
            stderr,
            pictures,
            posterior=posterior,
            given=queries.given_count,
            protocol=evaluation.settings.protocol,
            points=Points.from_values(measured.values, queries.weights),
            details={
                "queries": len(queries),
                "images_per_query": judged.shape[1],
                "splits_sd": mean.splits_sd,
                **details,
            },
        )


def reported(mean: Mean, bias: float, pictures: int) -> tuple[float, float | None]:
    """Return value and standard error in percent, such that value +- 1.96 errors covers a perfect model's 100 too.

    The corrected mean is clipped at 100, and the remaining bias is part of the error.
    """
    value = min(100.0, mean.value)
    if mean.stderr is None:
        return value, None
    return value, share_error(value, math.hypot(mean.stderr, bias), pictures)


def open_attributes(
    queries: Queries, judged: NDArray[np.uint8], sizes: tuple[int, ...]
) -> Generator[tuple[NDArray[np.int64], int, NDArray[np.int64]], None, None]:
    """Yield for each attribute the queries [q] that leave it open, its index, and counts of predicted values [q, V]."""
    for attribute, size in enumerate(sizes):
        rows = np.flatnonzero(queries.codes[:, attribute] == UNKNOWN)
        if len(rows):
            seen = judged[rows, :, attribute]
            yield rows, attribute, (seen[:, :, None] == np.arange(size)).sum(1)


def exact_coverage(queries: Queries, judged: NDArray[np.uint8], frequencies: Frequencies, seed: int) -> _Measured:
    """Measure coverage of every query in base 2 against training frequencies, corrected, with the remaining bias.

    Args:
        queries: Descriptions with at least one attribute dropped.
        judged: [Q, n, A].
        frequencies: Frequencies in the training part.
        seed: Seed of the simulation that estimates the bias.
    """
    corrected, uncorrected, bias = (np.zeros(len(queries)) for _ in range(3))
    unmatched = np.zeros(len(queries), bool)
    for rows, attribute, counts in open_attributes(queries, judged, frequencies.sizes):
        known = [frequencies.of(attribute, queries.codes[row]) for row in rows]
        p = np.stack([distribution for distribution, _ in known])
        unmatched[rows] |= ~np.array([matched for _, matched in known])
        share = 100 / queries.dropped
        corrected[rows] += share * (1 - jackknifed(p, counts))
        uncorrected[rows] += share * (1 - jensen_shannon(p, counts / judged.shape[1]))
        generator = numpy_generator(seed, "coverage bias", attribute, judged.shape[1])
        bias[rows] -= share * remaining_bias(p, counts, generator)  # a divergence too high is a coverage too low
    return _Measured(corrected, uncorrected, bias, int(unmatched.sum()))


def picture_error(queries: Queries, judged: NDArray[np.uint8], frequencies: Frequencies) -> float:
    """Return the standard error in percent of a single query over its pictures [1, n, A], by the jackknife."""
    count = judged.shape[1]
    left_out = np.zeros(count)
    for _, attribute, counts in open_attributes(queries, judged, frequencies.sizes):
        p, _ = frequencies.of(attribute, queries.codes[0])
        fewer = counts - (judged[0, :, attribute, None] == np.arange(len(p)))
        left_out += 100 / queries.dropped * (1 - jackknifed(p, fewer))
    return float(np.sqrt((count - 1) * left_out.var()))

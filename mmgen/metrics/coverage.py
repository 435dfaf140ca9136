"""Coverage: whether attributes that a description leaves open vary as in the data.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Section 3
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import map_fractions
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Frequencies, Queries, WeightedMean, weighted_mean
from mmgen.evaluation.real import jackknife_divergence, jensen_shannon, remaining_bias
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Coverage"]


_PAPER_DRAWS = 10
_LEAST_DRAWS = 48
"""With fewer draws the estimate of the remaining bias is itself unreliable for an attribute of ten values."""
_MOST_DRAWS = 768


_Divergence = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]
"""Function from true shares [..., V] and counts of draws [..., V] to divergences [...]."""


@dataclass(frozen=True)
class _QueryCoverage:
    """Coverage of each query in percent, corrected for few pictures or not, and the remaining bias."""

    values: NDArray[np.float64]
    uncorrected: NDArray[np.float64]
    bias: NDArray[np.float64]
    unmatched: int


def _unreadable_partial_descriptions(evaluation: "Evaluation") -> str:
    """Return why no posterior reads descriptions that leave attributes out; "" if one does."""
    if not evaluation.questions.whole_captions:
        return ""
    return (
        "needs a posterior of descriptions with attributes left out, but this q(z | text) reads whole captions; fit "
        f"one with: mmgen fit-aggregate {evaluation.loaded.model_path} --given attributes"
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

    ``all attributes`` is correctness and coverage in one number (VE Section 3): the same mean over all attributes,
    given ones too, where p_k is all on the given value.
    """

    unit = "%"
    better = "higher"
    rank = 1
    reads = ("protocol", *DESCRIPTIONS)
    columns: ClassVar = {
        "sd of 5 splits": "splits_sd",
        "queries": "queries",
        "bias left": "bias",
        "all attributes": "all_attributes",
        "uncorrected": "uncorrected",
    }

    protocols: ClassVar = {
        "exact": "How near the values that are left open come to their shares in the training data, in base 2, with so "
        "many pictures that the bias stays below the standard error.",
        "paper": "The same as Vedantam et al. (2018) compute it.",
    }

    needs = (needs.explain_missing_classifier, _unreadable_partial_descriptions)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        questions = evaluation.questions
        most = len(evaluation.attributes.names) - len(questions.hints)
        dropped = [number for number in questions.dropped if 0 < number <= most]
        scores = []
        for done, number in enumerate(dropped):
            queries = questions.make_queries(number)
            measure = self._score_as_paper if evaluation.settings.protocol == "paper" else self._score_exactly
            score = yield from map_fractions(
                measure(evaluation, posterior, queries), done / len(dropped), 1 / len(dropped)
            )
            scores.append(score)
        return scores

    def _score_as_paper(
        self, evaluation: "Evaluation", posterior: str, queries: Queries
    ) -> Generator[float, None, Score]:
        predicted = yield from evaluation.drawn_pictures.classify_pictures(queries, posterior, _PAPER_DRAWS)
        predicted = predicted[:, :_PAPER_DRAWS]
        values = np.zeros(len(queries))
        for rows, _, counts in count_unspecified_values(queries, predicted, evaluation.attributes.sizes):
            uniform = np.full(counts.shape[1], 1 / counts.shape[1])
            values[rows] += 100 * (1 - jensen_shannon(uniform, counts / _PAPER_DRAWS, base=math.e)) / queries.dropped
        coverage = _QueryCoverage(values, values, np.zeros(len(queries)), 0)
        return self._score(evaluation, posterior, queries, predicted, coverage, {}, _published_divergence)

    def _score_exactly(
        self, evaluation: "Evaluation", posterior: str, queries: Queries
    ) -> Generator[float, None, Score]:
        draws = max(_LEAST_DRAWS, evaluation.settings.draws)
        while True:
            predicted = yield from evaluation.drawn_pictures.classify_pictures(queries, posterior, draws)
            coverage = exact_coverage(queries, predicted, evaluation.questions.frequencies, evaluation.settings.seed)
            mean = weighted_mean(coverage.values, queries.weights, evaluation.settings.seed)
            bias = float(np.average(coverage.bias, weights=queries.weights))
            over_pictures = (
                query_coverage_error(queries, predicted, evaluation.questions.frequencies)
                if mean.stderr is None
                else None
            )
            is_precise = abs(bias) < (mean.stderr or over_pictures or 0.0)
            if is_precise or predicted.shape[1] >= _MOST_DRAWS:
                break
            draws = 2 * predicted.shape[1]
        pictures = predicted.shape[0] * predicted.shape[1]
        details = {
            "bias": bias,
            "bias_below_stderr": is_precise,
            **(
                {}
                if over_pictures is None
                else {"stderr_over_pictures": share_error(mean.value, over_pictures, pictures)}
            ),
            "unclipped": mean.value,
            "uncorrected": float(np.average(coverage.uncorrected, weights=queries.weights)),
            "queries_without_training_examples": coverage.unmatched,
        }
        return self._score(evaluation, posterior, queries, predicted, coverage, details, jackknife_divergence)

    def _score(
        self,
        evaluation: "Evaluation",
        posterior: str,
        queries: Queries,
        predicted: NDArray[np.uint8],
        coverage: _QueryCoverage,
        details: dict[str, Any],
        divergence: _Divergence,
    ) -> Score:
        told = list(evaluation.questions.hints)
        shown = given_coverage(np.delete(queries.codes, told, 1), np.delete(predicted, told, 2), divergence)
        of = queries.dropped + shown.shape[1]
        all_attributes = (queries.dropped * coverage.values + shown.sum(1)) / of
        mean = weighted_mean(coverage.values, queries.weights, evaluation.settings.seed)
        pictures = predicted.shape[0] * predicted.shape[1]
        value, stderr = combine_with_bias(mean, float(np.average(coverage.bias, weights=queries.weights)), pictures)
        return self.score(
            evaluation,
            value,
            stderr,
            pictures,
            posterior=posterior,
            given=queries.given_count,
            protocol=evaluation.settings.protocol,
            points=ExampleValues.from_values(coverage.values, queries.weights),
            details={
                "queries": len(queries),
                "images_per_query": predicted.shape[1],
                "splits_sd": mean.splits_sd,
                "all_attributes": float(np.average(all_attributes, weights=queries.weights)),
                **details,
            },
        )


def combine_with_bias(mean: WeightedMean, bias: float, pictures: int) -> tuple[float, float | None]:
    """Return a mean coverage, at most 100 %, and its standard error with the remaining bias added, both in percent.

    So value +- 1.96 errors also covers the 100 % of a perfect model.
    """
    value = min(100.0, mean.value)
    if mean.stderr is None:
        return value, None
    return value, share_error(value, math.hypot(mean.stderr, bias), pictures)


def count_unspecified_values(
    queries: Queries, predicted: NDArray[np.uint8], sizes: tuple[int, ...]
) -> Generator[tuple[NDArray[np.int64], int, NDArray[np.int64]], None, None]:
    """Yield for each attribute: queries that leave it open [q], its index, counts of its predicted values [q, V]."""
    for attribute, size in enumerate(sizes):
        rows = np.flatnonzero(queries.codes[:, attribute] == UNKNOWN)
        if len(rows):
            seen = predicted[rows, :, attribute]
            yield rows, attribute, (seen[:, :, None] == np.arange(size)).sum(1)


def _published_divergence(p: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return jensen_shannon(p, counts / counts.sum(-1, keepdims=True), base=math.e)


def given_coverage(
    codes: NDArray[np.uint8], predicted: NDArray[np.uint8], divergence: _Divergence
) -> NDArray[np.float64]:
    """Return 1 - JS(p_k, q_k) in percent for each attribute k that is given [Q, G], p_k all on its given value.

    Args:
        codes: Codes of the queries [Q, A], of which each gives G.
        predicted: Codes that the classifier predicts [Q, n, A].
        divergence: JS by true shares and counts.
    """
    right = (predicted == codes[:, None]).sum(1)  # [Q, A]
    counts = np.stack([right, predicted.shape[1] - right], -1)
    shares = 100 * (1 - divergence(np.array([1.0, 0.0]), counts))
    given = codes != UNKNOWN
    return shares[given].reshape(len(codes), -1)


def exact_coverage(
    queries: Queries, predicted: NDArray[np.uint8], frequencies: Frequencies, seed: int
) -> _QueryCoverage:
    """Return the coverage of every query by protocol ``exact``: corrected for few pictures, with the bias that remains.

    Args:
        queries: Descriptions with at least one attribute dropped.
        predicted: Codes that the classifier predicts [Q, n, A].
        frequencies: Frequencies in the training part.
        seed: Seed of the simulation that estimates the bias.
    """
    corrected, uncorrected, bias = (np.zeros(len(queries)) for _ in range(3))
    unmatched = np.zeros(len(queries), bool)
    for rows, attribute, counts in count_unspecified_values(queries, predicted, frequencies.sizes):
        known = [frequencies.conditional(attribute, queries.codes[row]) for row in rows]
        p = np.stack([distribution for distribution, _ in known])
        unmatched[rows] |= ~np.array([matched for _, matched in known])
        share = 100 / queries.dropped
        corrected[rows] += share * (1 - jackknife_divergence(p, counts))
        uncorrected[rows] += share * (1 - jensen_shannon(p, counts / predicted.shape[1]))
        generator = numpy_generator(seed, "coverage bias", attribute, predicted.shape[1])
        bias[rows] -= share * remaining_bias(p, counts, generator)  # a divergence too high is a coverage too low
    return _QueryCoverage(corrected, uncorrected, bias, int(unmatched.sum()))


def query_coverage_error(queries: Queries, predicted: NDArray[np.uint8], frequencies: Frequencies) -> float:
    """Return the standard error in percent of one query's coverage, by the jackknife over its pictures [1, n, A]."""
    count = predicted.shape[1]
    left_out = np.zeros(count)
    for _, attribute, counts in count_unspecified_values(queries, predicted, frequencies.sizes):
        p, _ = frequencies.conditional(attribute, queries.codes[0])
        fewer = counts - (predicted[0, :, attribute, None] == np.arange(len(p)))
        left_out += 100 / queries.dropped * (1 - jackknife_divergence(p, fewer))
    return float(np.sqrt((count - 1) * left_out.var()))

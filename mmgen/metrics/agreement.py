"""Agreement: how often two judges read the same words from a picture, which they do not where it shows two at once."""

import math
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries, average_by_attribute, weighted_mean
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.evaluation.training_pictures import read_sources
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.results.standard_errors import clustered_error, share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Agreement"]


_SURE = 0.9
"""Probability from which a judge is sure of a word."""

Floats = NDArray[np.float64]


def _explain_missing_second_judge(evaluation: "Evaluation") -> str:
    """Return a reason if there is one judge alone; else "". From then on the first judge's confidences are stored."""
    if not evaluation.further:
        network = "small" if evaluation.judge.network_name == "attentive" else "attentive"
        return (
            "needs two judges, got one; make a second with: mmgen train-classifier "
            f"{evaluation.dataset.path} --network {network} --seed 1 -o second-judge.safetensors, and name both: "
            "--judge FIRST --judge second-judge.safetensors"
        )
    evaluation.drawn_pictures.store_confidences(lambda _: evaluation.settings.draws)
    return ""


@dataclass(frozen=True)
class _Readings:
    """What two judges read from pictures: whether they read each word alike, and the first is sure of it, [..., A]."""

    alike: NDArray[np.bool_]
    sure: NDArray[np.bool_]

    def __getitem__(self, pictures: Any) -> "_Readings":
        return _Readings(self.alike[pictures], self.sure[pictures])

    def percentages(self, words: NDArray[np.bool_]) -> Floats:
        """Return 100 for pictures whose ``words`` [A] are all read alike, and are all sure; else 0: [2, n]."""
        return np.stack([100.0 * each[..., words].all(-1) for each in (self.alike, self.sure)])


class Agreement(Metric):
    r"""Percentage of drawn pictures from which two judges read every open word alike, beside the same of real pictures.

    .. math:: \frac{1}{n} \sum_i \prod_{k \in M} I(\hat y^1_k(x_i) = \hat y^2_k(x_i))

    M are the words that the description leaves open; with all words given, or for captions, every word. A picture that
    shows two shapes at once is read as either, so that judges of different networks differ. ``sure`` is the percentage
    of pictures on which the first judge gives every such word at least 90 %. Both of real pictures of the evaluated
    part, those of the same descriptions, are in ``ceiling``: at most 2,000 pictures, judges' errors included.

    Of three judges or more, the first is compared with each other one.
    """

    unit = "%"
    better = "higher"
    rank = 2
    points = "seen"
    reads = DESCRIPTIONS
    compares_judges = True
    columns: ClassVar = {"real pictures": "ceiling", "queries": "queries", "second judge": "second_judge"}
    conditions = ("second_judge",)
    needs = (needs.explain_missing_classifier, needs.explain_unreadable_queries, _explain_missing_second_judge)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        scores: list[Score] = []
        asked, draws = list(_make_queries(evaluation)), evaluation.settings.draws
        drawn_pictures = evaluation.drawn_pictures
        for done, queries in enumerate(asked):
            work = drawn_pictures.classify_pictures(queries, posterior, draws)
            codes = yield from map_fractions(work, done / len(asked), 1 / len(asked))
            confidences = yield from drawn_pictures.compute_confidences(queries, posterior, draws)
            for other in evaluation.further:
                others = yield from other.drawn_pictures.classify_pictures(queries, posterior, draws)
                drawn = _Readings(codes[:, :draws] == others[:, :draws], confidences[:, :draws] >= _SURE)
                scores += self._score_queries(evaluation, other, posterior, queries, drawn)
        return scores

    def _score_queries(
        self, evaluation: "Evaluation", other: "Evaluation", posterior: str, queries: Queries, drawn: _Readings
    ) -> list[Score]:
        """Score readings of drawn pictures [Q, n, A], beside those of real pictures of the same descriptions."""
        values, real, real_errors, number = _compare_with_real(evaluation, other, queries, drawn)
        has_real, weights, seed = ~np.isnan(real[0]), queries.weights, evaluation.settings.seed
        pictures = drawn.alike.shape[0] * drawn.alike.shape[1]
        words = _words_to_read(evaluation, queries)
        by_attribute = average_by_attribute(evaluation.attributes.names, drawn.alike, words, weights)
        scores = []
        for quantity, own, theirs, spread in zip(("agreement", "sure"), values, real, real_errors, strict=True):
            mean = weighted_mean(own, weights, seed)
            details: dict[str, Any] = {
                "second_judge": f"{other.judge.network_name} {other.judge.content_id[:8]}".strip()
            }
            if has_real.any():
                ceiling = weighted_mean(theirs[has_real], weights[has_real], seed)
                short = weighted_mean((theirs - own)[has_real], weights[has_real], seed)
                error = share_error(ceiling.value, spread, number)
                details |= {"ceiling": ceiling.value, "ceiling_stderr": error}
                shared = math.sqrt(max(0.0, spread**2 - (ceiling.stderr or 0.0) ** 2))  # of pictures in several
                below = None if short.stderr is None else math.hypot(short.stderr, shared)
                details |= {"below_ceiling": short.value, "below_ceiling_stderr": below}
            scores.append(
                self.score(
                    evaluation,
                    mean.value,
                    share_error(mean.value, mean.stderr, pictures, len(queries)),
                    pictures,
                    quantity=quantity,
                    posterior=posterior,
                    given=queries.given_count,
                    points=ExampleValues.from_values(own, weights),
                    by_attribute=by_attribute if quantity == "agreement" else {},
                    details={
                        "queries": len(queries),
                        "images_per_query": drawn.alike.shape[1],
                        "real": number,
                        "splits_sd": mean.splits_sd,
                        "pixels": evaluation.drawn_pictures.pixels,
                        **details,
                    },
                )
            )
        return scores


def _make_queries(evaluation: "Evaluation") -> Iterator[Queries]:
    """Make the queries of each number of open words; captions in free words once."""
    questions = evaluation.questions
    if questions.free_captions:
        yield questions.make_caption_queries().merge_alike(questions.hints)[0]
        return
    most = len(evaluation.attributes.names) - len(questions.hints)
    for number in questions.dropped:
        if number <= most:
            yield questions.make_queries(number)


def _words_to_read(evaluation: "Evaluation", queries: Queries) -> NDArray[np.bool_]:
    """Return which words [Q, A] of each query's pictures are compared: the open ones, or all; never hints."""
    is_open = queries.codes == UNKNOWN
    if queries.tokens is not None or not queries.dropped:
        is_open = np.ones_like(is_open)
    is_open[:, list(evaluation.questions.hints)] = False
    return is_open


def _compare_with_real(
    evaluation: "Evaluation", other: "Evaluation", queries: Queries, drawn: _Readings
) -> tuple[Floats, Floats, Floats, int]:
    """Return agreement and sureness [2, Q] of drawn pictures, of real ones (NaN without any), the errors [2] of the
    latter's means, and how many there are.

    A real picture belongs to several descriptions, so errors are over pictures: of each one's own mean over these.
    Captions in free words hardly occur twice: their real pictures are those of all descriptions.
    """
    pictures, rows = evaluation.real_pictures, evaluation.real_pictures.read_rows
    real = _Readings(pictures.predicted == other.real_pictures.predicted, pictures.confidences >= _SURE)
    known = evaluation.dataset.read_attributes(evaluation.attributes.name, rows)
    words = _words_to_read(evaluation, queries)
    values, of_real = np.full((2, len(queries)), np.nan), np.full((2, len(queries)), np.nan)
    sums, weights = np.zeros((2, len(rows))), np.zeros(len(rows))
    for query, (code, compared) in enumerate(zip(queries.codes, words, strict=True)):
        values[:, query] = drawn[query].percentages(compared).mean(1)
        given = (code != UNKNOWN) & (queries.tokens is None)
        matching = (known[:, given] == code[given]).all(1)
        if matching.any():
            found = real[matching].percentages(compared)
            of_real[:, query] = found.mean(1)
            sums[:, matching] += queries.weights[query] * found / matching.sum()
            weights[matching] += queries.weights[query] / matching.sum()
    used = weights > 0
    sources = read_sources(evaluation.dataset, rows[used])
    errors = np.array([clustered_error(each[used] / weights[used], sources, weights[used]) for each in sums])
    return values, of_real, np.nan_to_num(errors), int(used.sum())

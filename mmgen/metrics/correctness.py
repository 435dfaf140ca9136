"""Correctness: how often a picture shows the attributes of its description, by a classifier.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Section 3
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Sections 4.2 and 5.4
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import map_fractions
from mmgen.descriptions import named_attributes
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries, average_by_attribute, weighted_mean
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.metrics._worst import RIGHT_COLUMNS, count_right, find_worst
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Correctness"]


_SKEWED = 10.0
"""Points by which a constant answer must beat chance to stand beside a score."""
_GENERATED = 2400
"""Number of pictures with words drawn from a density that ignores the text."""


def correctness_by_query(attributes: NDArray[np.uint8], predicted: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return for each query [Q] the share of its given attributes that the classifier finds in its images, from 0 to 1.

    Source: VE Section 3.

    Args:
        attributes: Codes of the queries [Q, A], ``UNKNOWN`` where not given; each query gives at least one.
        predicted: Codes that the classifier predicts [Q, n, A].

    Example:
        >>> import numpy as np
        >>> attributes = np.array([[3, 255]], np.uint8)
        >>> correctness_by_query(attributes, np.array([[[3, 0], [3, 1], [3, 0], [5, 1]]], np.uint8))
        array([0.75])
    """
    given = attributes != UNKNOWN
    right = (predicted == attributes[:, None]) & given[:, None]
    fraction: NDArray[np.float64] = right.sum((1, 2)) / (predicted.shape[1] * given.sum(1))
    return fraction


class CodeAgreement(Metric):
    """Base of metrics that count how often predicted attributes equal those of the description, in percent over
    queries.
    """

    unit = "%"
    better = "higher"
    columns: ClassVar = {
        **RIGHT_COLUMNS,
        "queries": "queries",
        "commonest values": "commonest",
        "balanced": "balanced",
    }

    def score_codes(
        self, evaluation: "Evaluation", posterior: str, queries: Queries, predicted: NDArray[np.uint8]
    ) -> list[Score]:
        """Score the attribute codes [Q, n, A] that the classifier predicts for n pictures of each of Q queries.

        Protocol ``exact`` leaves out words that the classifier gets as input; where it gets some there is also
        ``paper``, over all words (CK 5.4; its input always matches). Captions in free words have ``free-captions``,
        over the known attributes of their examples; queries of one caption have the same pictures, which count once.
        Captions whose words are names of attributes also have ``caption-words``, over the attributes that they name.
        """
        hints = evaluation.questions.hints
        without_hints = queries.codes.copy()
        without_hints[:, hints] = UNKNOWN
        if queries.tokens is None:
            protocols = {**({"paper": queries.codes} if hints else {}), "exact": without_hints}
        else:
            protocols = {"free-captions": without_hints}
            text = evaluation.loaded.text
            assert text is not None
            mentions = named_attributes(queries.tokens, text, evaluation.attributes)
            if mentions.any():
                protocols["caption-words"] = np.where(mentions, without_hints, np.uint8(UNKNOWN))
        return [
            self._score_protocol(evaluation, posterior, queries, predicted, protocol, codes)
            for protocol, codes in protocols.items()
        ]

    def _score_protocol(
        self,
        evaluation: "Evaluation",
        posterior: str,
        queries: Queries,
        predicted: NDArray[np.uint8],
        protocol: str,
        codes: NDArray[np.uint8],
    ) -> Score:
        """Score predicted codes [Q, n, A] against those that count, [Q, A]; queries without any are left out."""
        counted = (codes != UNKNOWN).any(1)
        codes, predicted, queries = codes[counted], predicted[counted], queries.select(np.flatnonzero(counted))
        values, weights = _average_by_caption(100 * correctness_by_query(codes, predicted), queries)
        mean = weighted_mean(values, weights, evaluation.settings.seed)
        right, names = predicted == queries.codes[:, None], evaluation.attributes.names
        by_attribute = average_by_attribute(names, right, codes != UNKNOWN, queries.weights)
        pictures = len(values) * predicted.shape[1]
        return self.score(
            evaluation,
            mean.value,
            share_error(mean.value, mean.stderr, pictures, len(values)),
            pictures,
            quantity="correctness",
            posterior=posterior,
            given=queries.given_count,
            protocol=protocol,
            by_attribute=by_attribute,
            points=ExampleValues.from_values(values, weights),
            details={
                "queries": len(values),
                "images_per_query": predicted.shape[1],
                "splits_sd": mean.splits_sd,
                **_share_all_right(codes, predicted, queries),
                **find_worst(codes, right, evaluation.attributes),
                **(_read_real_pictures(evaluation, codes) if queries.tokens is None else {}),
                "pixels": evaluation.drawn_pictures.pixels,
                **_compare_with_constant(codes, predicted, queries.weights, evaluation.attributes.sizes),
            },
        )


def _read_real_pictures(evaluation: "Evaluation", codes: NDArray[np.uint8]) -> dict[str, Any]:
    """Return the worst words of real pictures of the part, of which all are known; and their share with all words right
    if the descriptions [Q, A] give all: as of drawn pictures, with the prefix "real_".
    """
    hints, name = list(evaluation.questions.hints), evaluation.attributes.name
    known = evaluation.dataset.read_attributes(name, evaluation.real_pictures.read_rows)
    known[:, hints] = UNKNOWN
    complete = (np.delete(known, hints, 1) != UNKNOWN).all(1)
    right = (evaluation.real_pictures.predicted == known)[complete]
    found = count_right(known[complete], right, evaluation.attributes) if complete.any() else {}
    some_open = (np.delete(codes, hints, 1) == UNKNOWN).any()
    return {f"real_{key}": value for key, value in found.items() if not (some_open and key.startswith("all_right"))}


def _share_all_right(
    codes: NDArray[np.uint8], predicted: NDArray[np.uint8], queries: Queries
) -> dict[str, float | None]:
    """Return the percentage of pictures that have all given attributes right, with its error; {} where one is given."""
    given = codes != UNKNOWN
    if given.sum(1).max() < 2:
        return {}
    right = ((predicted == codes[:, None]) | ~given[:, None]).all(2).mean(1)
    values, weights = _average_by_caption(100 * right, queries)
    mean = weighted_mean(values, weights, 0)
    error = share_error(mean.value, mean.stderr, len(values) * predicted.shape[1], len(values))
    return {"all_right": mean.value, "all_right_stderr": error}


def _compare_with_constant(
    codes: NDArray[np.uint8], predicted: NDArray[np.uint8], weights: NDArray[np.float64], sizes: tuple[int, ...]
) -> dict[str, float]:
    """Return the correctness of always the commonest values, and the balanced one; {} where values are about as common,
    or where each attribute has one value.

    Balanced correctness is the mean over an attribute's values of the share of pictures of this value that show it, and
    then over attributes: a constant answer gets 100 % divided by the number of values.

    Args:
        codes: Codes of the queries [Q, A], ``UNKNOWN`` where they do not count.
        predicted: Codes that the classifier predicts [Q, n, A].
        weights: Weight of each query [Q].
        sizes: Number of values of each attribute [A].
    """
    constant = np.zeros(codes.shape[1], np.uint8)
    balanced, chance, differing = [], [], False
    for index, size in enumerate(sizes):
        right = (predicted[:, :, index] == codes[:, None, index]).mean(1)
        values = [codes[:, index] == value for value in range(size)]
        constant[index] = np.argmax([weights[rows].sum() for rows in values])
        shares = [np.average(right[rows], weights=weights[rows]) for rows in values if rows.any()]
        differing = differing or len(shares) > 1
        if shares:
            balanced.append(np.mean(shares))
            chance.append(1 / size)
    commonest = 100 * float(np.average(correctness_by_query(codes, constant[None, None]), weights=weights))
    if not differing or commonest - 100 * float(np.mean(chance)) < _SKEWED:
        return {}
    return {"commonest": commonest, "balanced": 100 * float(np.mean(balanced))}


def _average_by_caption(
    values: NDArray[np.float64], queries: Queries
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Average values of queries with the same caption, whose pictures are the same; return averages and weights."""
    if queries.tokens is None:
        return values, queries.weights
    _, of = np.unique(queries.tokens, axis=0, return_inverse=True)
    weights = np.bincount(of.ravel(), queries.weights).astype(np.float64)
    return np.bincount(of.ravel(), queries.weights * values) / weights, weights


class Correctness(CodeAgreement):
    r"""Percentage of given attributes that the classifier finds in drawn images, mean over images and attributes.

    .. math:: \frac{1}{|S|} \sum_{x \in S} \frac{1}{|O|} \sum_{k \in O} I(\hat y(x)_k = y_k) \quad \text{(VE Section 3)}

    Queries are concepts; where captions spell the attributes, they are those of random examples. Pictures for captions
    in free words are compared with the known attributes of their examples: protocol ``free-captions``, whose queries
    are captions. Where captions are made of the names of attributes there is also ``caption-words``, over those that a
    caption names. Densities that ignore the text (the prior, a learned q(z)) are also asked for pictures and words of
    the same z, which should agree (CK Table 2): protocol ``generated-text``, nothing given; of free text, the words
    that are names of attributes of the values yes and no.

    ``all right`` is the percentage of pictures in which every given attribute is found; ``worst word`` and ``worst
    pair`` are those of the given words that are found least, with errors that allow for their having been picked.

    Where some values are much commoner than others, ``commonest values`` is what pictures of these alone get, and
    ``balanced`` weighs all values of an attribute alike.

    Protocol ``exact`` is over the words that the classifier predicts. One that gets words as input (CK 5.4: the
    relation) gives two scores each: over all words, as CK count (``paper``, ``generated-text``), and over the
    predicted words (``exact``, ``generated-text-exact``).
    """

    rank = 2
    reads = DESCRIPTIONS
    needs = (needs.explain_missing_classifier, needs.explain_unreadable_queries)
    protocols: ClassVar = {
        "exact": "How many of the given attributes the judge sees in a picture; what it is told does not count.",
        "paper": "The same with the words that the judge is told, which always match, as Cremer and Kushman count.",
        "free-captions": "Pictures are drawn for the caption of an example and compared with its known attributes.",
        "caption-words": "The same over the attributes that the caption names: how many of the words are seen.",
        "generated-text": "Nothing is given: pictures are compared with the words that the model says of the same z.",
        "generated-text-exact": "The same without the words that the judge is told.",
    }

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        questions, draws = evaluation.questions, evaluation.settings.draws
        if questions.free_captions:
            queries = questions.make_caption_queries()
            distinct, of = queries.merge_alike(questions.hints)  # pictures of one caption are the same
            codes = yield from evaluation.drawn_pictures.classify_pictures(distinct, posterior, draws)
            return self.score_codes(evaluation, posterior, queries, codes[of])
        scores = []
        most = len(evaluation.attributes.names) - len(questions.hints)
        dropped = [number for number in questions.dropped if number < most]
        for done, number in enumerate(dropped):
            queries = questions.make_queries(number)
            work = evaluation.drawn_pictures.classify_pictures(queries, posterior, draws)
            codes = yield from map_fractions(work, done / len(dropped), 1 / len(dropped))
            scores += self.score_codes(evaluation, posterior, queries, codes)
        if evaluation.ignores_text(posterior) and evaluation.drawn_pictures.generates_words:
            scores += self._score_generated_words(evaluation, posterior)
        return scores

    def _score_generated_words(self, evaluation: "Evaluation", posterior: str) -> list[Score]:
        """Score how often words drawn from the same z agree with the picture.

        A value UNKNOWN counts as wrong where every attribute has its place in the text, and not at all in free text.
        """
        predicted, words = evaluation.drawn_pictures.classify_generated(posterior, _GENERATED)
        hints, names = evaluation.questions.hints, evaluation.attributes.names
        counted = words != UNKNOWN if evaluation.drawn_pictures.says_few else np.ones(words.shape, np.bool_)
        columns = {"generated-text": list(range(len(names)))}
        if hints:
            columns["generated-text-exact"] = [index for index in range(len(names)) if index not in hints]
        scores = []
        for protocol, chosen in columns.items():
            right, of = 100.0 * ((predicted == words) & (words != UNKNOWN))[:, chosen], counted[:, chosen]
            if of.any(1).sum() < 2:
                continue  # the model's texts name no attribute
            by_image = (right.sum(1) / of.sum(1).clip(1))[of.any(1)]
            value, error = float(by_image.mean()), float(by_image.std(ddof=1) / np.sqrt(len(by_image)))
            shares = (right.sum(0) / of.sum(0).clip(1)).tolist()
            said = [bool(column.any()) for column in of.T]
            by_attribute = {
                names[index]: share for index, share, any_said in zip(chosen, shares, said, strict=True) if any_said
            }
            scores.append(
                self.score(
                    evaluation,
                    value,
                    share_error(value, error, len(by_image)),
                    len(by_image),
                    posterior=posterior,
                    given=0,
                    protocol=protocol,
                    by_attribute=by_attribute,
                )
            )
        return scores

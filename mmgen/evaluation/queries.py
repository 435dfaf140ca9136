"""The descriptions for which an evaluation draws pictures: every concept of a split, with attributes dropped.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Sections 1 (abstract concepts) and 5.1 (standard deviation over 5 splits of the queries)
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.choices import choose_covering, choose_positions
from mmgen.posteriors import CFG
from mmgen.results.naming import RETRIEVAL
from mmgen.results.standard_errors import widen_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation


_SPLITS = 5


@dataclass(frozen=True)
class Queries:
    """Distinct descriptions to draw pictures for, all with the same number of attributes left out.

    Attributes:
        codes: uint8 [Q, A], ``UNKNOWN`` where dropped.
        weights: float64 [Q]: how many pairs of a concept and a choice of dropped attributes lead to the description.
            "Anything big, upright, top-left" stands for all its digits, so that every choice of dropped attributes
            counts the same however many values those attributes have.
        dropped: How many attributes are unknown.
        tokens: Captions in free words as descriptions, word codes [Q, T]; ``codes`` are then the known attributes of
            their examples. None where the attributes are the descriptions.
        part: Part of the split that they describe; "" for the evaluated part.
    """

    codes: NDArray[np.uint8]
    weights: NDArray[np.float64]
    dropped: int
    tokens: NDArray[np.uint16] | None = None
    part: str = ""

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def given_count(self) -> int | None:
        """Number of attributes that each description gives; None for captions in free words."""
        return None if self.tokens is not None else self.codes.shape[1] - self.dropped

    def select(self, rows: NDArray[np.int64]) -> "Queries":
        """Return the queries at the positions ``rows``."""
        tokens = None if self.tokens is None else self.tokens[rows]
        return Queries(self.codes[rows], self.weights[rows], self.dropped, tokens)

    def merge_alike(self, hints: Collection[int]) -> tuple["Queries", NDArray[np.int64]]:
        """Merge queries of equal caption and hints; return them, and the new position of each query [Q].

        Args:
            hints: Positions of the attributes that are inputs of the classifier.
        """
        assert self.tokens is not None
        key = np.concatenate([self.tokens, self.codes[:, list(hints)].astype(self.tokens.dtype)], 1)
        _, first, of = np.unique(key, axis=0, return_index=True, return_inverse=True)
        return self.select(first), of.reshape(-1)


def make_queries(
    attributes: NDArray[np.uint8],
    dropped: int,
    *,
    never_dropped: Collection[int] = (),
    limit: int | None = None,
    captions: bool = False,
    seed: int = 0,
) -> Queries:
    """Make queries from the distinct descriptions of examples, with each choice of ``dropped`` attributes left out.

    Concepts are examples whose attributes are all known. Where there is none, the known attributes of an example are
    its concept, and its unknown ones are among those left out.

    Args:
        attributes: uint8 [N, A] of one part of a split; incomplete examples count only if there is no complete one.
        dropped: Number of attributes to leave out, unknown ones included.
        never_dropped: Positions of attributes that are never left out.
        limit: Take at most so many of them, at random; None for all.
        captions: Take at most ``limit`` examples and weigh a description by how many of them it has, as the data do;
            else every concept weighs the same.
        seed: Seed of the choice.

    Raises:
        UsageError: More attributes are to be dropped than there are, or no example is known in so many as are left.
    """
    count = attributes.shape[1]
    droppable = [position for position in range(count) if position not in never_dropped]
    if not 0 <= dropped <= len(droppable):
        raise UsageError(f"dropped attributes got {dropped}, expected 0 to {len(droppable)}; choose fewer")
    fewest = fewest_dropped(attributes, never_dropped)
    if fewest == count:
        known = "all attributes that the judge gets as input" if never_dropped else "a known attribute"
        raise UsageError(
            f"no example of this part of the split has {known}, so there is nothing to draw; choose another "
            "--part or --split"
        )
    if dropped < fewest:
        raise UsageError(
            f"no example of this part of the split has more than {count - fewest} of its {count} attributes known: "
            f"none can be described by {count - dropped}; use --given-count {count - fewest} or less"
        )
    unknown = (attributes == UNKNOWN).sum(1)
    concepts = attributes[unknown <= (dropped if fewest else 0)]
    concepts = concepts[choose_covering(concepts, limit, seed, "examples")] if captions else np.unique(concepts, axis=0)
    parts = []
    for choice in combinations(droppable, dropped):
        partial = concepts.copy()
        partial[:, list(choice)] = UNKNOWN
        parts.append(partial[(partial == UNKNOWN).sum(1) == dropped])  # what is unknown is left out, and nothing else
    codes, counts = np.unique(np.concatenate(parts), axis=0, return_counts=True)
    chosen = choose_covering(codes, limit, seed, "queries")
    return Queries(codes[chosen], counts[chosen].astype(np.float64), dropped)


def fewest_dropped(attributes: NDArray[np.uint8], never_dropped: Collection[int] = ()) -> int:
    """Return the smallest number of attributes that a description of these examples leaves out.

    Args:
        attributes: uint8 [N, A] of one part of a split.
        never_dropped: Positions of attributes that are never left out.

    Returns:
        A where no example can be described.

    Example:
        >>> fewest_dropped(np.array([[0, 255, 255], [255, 1, 2]], np.uint8))
        1
    """
    unknown = attributes == UNKNOWN
    describable = unknown[~unknown[:, list(never_dropped)].any(1)]
    return int(describable.sum(1).min(initial=attributes.shape[1]))


def make_caption_queries(
    tokens: NDArray[np.uint16],
    attributes: NDArray[np.uint8],
    *,
    required: Collection[int] = (),
    limit: int | None = None,
    seed: int = 0,
) -> Queries:
    """Make queries from the captions of examples, each with the attributes of its example.

    Args:
        tokens: Word codes [N, T] of one part of a split.
        attributes: uint8 [N, A] of the same examples; those without a known attribute are skipped.
        required: Positions of attributes that must be known.
        limit: Take at most so many examples, at random; None for all. Those alike are one query, which weighs as many.
        seed: Seed of the choice.

    Raises:
        UsageError: Nothing is known of any example.
    """
    known = attributes != UNKNOWN
    rows = np.flatnonzero(np.delete(known, list(required), 1).any(1) & known[:, list(required)].all(1))
    if not len(rows):
        raise UsageError(
            "no example of this part of the split has a known attribute to compare pictures of its caption with; "
            "choose another --part or --split"
        )
    rows = rows[choose_positions(len(rows), limit, seed, "examples")]
    pairs = np.concatenate([tokens[rows].astype(np.uint16), attributes[rows].astype(np.uint16)], 1)
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    width = tokens.shape[1]
    codes = distinct[:, width:].astype(np.uint8)
    return Queries(codes, counts.astype(np.float64), 0, np.ascontiguousarray(distinct[:, :width]))


def make_plain_caption_queries(tokens: NDArray[np.uint16], limit: int, seed: int) -> Queries:
    """Make queries from the captions [N, T] of at most ``limit`` random examples of data without attributes."""
    rows = choose_positions(len(tokens), limit, seed, "examples")
    distinct, counts = np.unique(tokens[rows], axis=0, return_counts=True)
    return Queries(np.zeros((len(distinct), 0), np.uint8), counts.astype(np.float64), 0, distinct)


class Frequencies:
    """The distributions p(y_k | y_O) of attributes in the training examples, with which coverage compares.

    Args:
        attributes: uint8 [N, A] of the training part.
        sizes: Number of values V of every attribute.
    """

    def __init__(self, attributes: NDArray[np.uint8], sizes: tuple[int, ...]) -> None:
        self._concepts, self._counts = np.unique(attributes, axis=0, return_counts=True)
        self.sizes = sizes

    def conditional(self, attribute: int, conditions: NDArray[np.uint8]) -> tuple[NDArray[np.float64], bool]:
        """Return p(y_attribute | conditions) [V] and True; p(y_attribute) and False if no training example fits."""
        known = conditions != UNKNOWN
        matching = (self._concepts[:, known] == conditions[known]).all(1)
        counted = self._histogram(attribute, matching)
        if counted.sum() > 0:
            return counted / counted.sum(), True
        counted = self._histogram(attribute, np.ones(len(self._concepts), bool))
        if counted.sum() == 0:
            return np.full(self.sizes[attribute], 1.0 / self.sizes[attribute]), False
        return counted / counted.sum(), False

    def _histogram(self, attribute: int, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        values = self._concepts[rows, attribute]
        seen = values != UNKNOWN
        counts = self._counts[rows][seen]
        return np.bincount(values[seen], counts, self.sizes[attribute]).astype(np.float64)


@dataclass(frozen=True)
class WeightedMean:
    """A weighted mean over queries with its standard error.

    Attributes:
        value: The mean.
        stderr: Standard error with queries as the independent units, wider by Student's t where they are few, so that
            value +- 1.96 errors is the 95 % interval; None for a single query.
        splits_sd: Standard deviation over 5 splits of the queries (VE Fig. 4a); None with fewer than two queries.
    """

    value: float
    stderr: float | None
    splits_sd: float | None


def weighted_mean(values: NDArray[np.float64], weights: NDArray[np.float64], seed: int) -> WeightedMean:
    """Compute the weighted mean of ``values`` [Q] of queries, with a standard error over queries."""
    count = len(values)
    value = float(np.average(values, weights=weights))
    if count < 2:
        return WeightedMean(value, None, None)
    # The usual ratio-estimator variance of a weighted mean; with equal weights this is s / sqrt(Q).
    spread = float((weights**2 * (values - value) ** 2).sum()) * count / (count - 1)
    order = numpy_generator(seed, "query splits").permutation(count)
    splits = [
        float(np.average(values[part], weights=weights[part])) for part in np.array_split(order, min(_SPLITS, count))
    ]
    error = widen_error(float(np.sqrt(spread) / weights.sum()), count)
    return WeightedMean(value, error, float(np.std(splits, ddof=1)))


def average_by_attribute(
    names: Sequence[str], right: NDArray[np.bool_], counted: NDArray[np.bool_], weights: NDArray[np.float64]
) -> dict[str, float]:
    """Return the percentage of pictures that are right in each attribute, over the queries where it counts.

    Args:
        names: Names of the attributes.
        right: Whether pictures are right [Q, n, A].
        counted: Which attributes count [Q, A].
        weights: Weight of each query [Q].
    """
    return {
        name: 100 * float(np.average(right[rows, :, place].mean(1), weights=weights[rows]))
        for place, (name, rows) in enumerate(zip(names, counted.T, strict=True))
        if rows.any()
    }


class Questions:
    """Maker of queries from the evaluated part of a split, in the form that the evaluated posteriors read.

    Args:
        evaluation: The evaluation.
    """

    def __init__(self, evaluation: "Evaluation") -> None:
        self._evaluation, self._loaded, self._settings = evaluation, evaluation.loaded, evaluation.settings

    @cached_property
    def codes(self) -> NDArray[np.uint8]:
        """Attribute codes uint8 [N, A] of all examples of the evaluated part."""
        return self._read_codes(self._evaluation.rows())

    @cached_property
    def frequencies(self) -> Frequencies:
        """Distributions of attributes in the training part."""
        return Frequencies(self._read_codes(self._evaluation.rows("train")), self._evaluation.attributes.sizes)

    def _read_codes(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        return self._evaluation.dataset.read_attributes(self._evaluation.attributes.name, rows)

    @property
    def hints(self) -> tuple[int, ...]:
        """Positions of the attributes that the classifier receives as input; no query leaves them out."""
        if not self._evaluation.has_judge:
            return ()
        names = self._evaluation.attributes.names
        return tuple(index for index, name in enumerate(names) if name in self._evaluation.judge.hints)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Numbers of attributes that queries leave out: by default the fewest possible, and up to three more."""
        if self._settings.dropped is not None:
            return self._settings.dropped
        if self._loaded.text is not None and self._loaded.description_kind != "attributes":
            return (0,)
        count = len(self._evaluation.attributes.names)
        # At least one attribute is given; where no example has one, queries() raises.
        fewest = min(fewest_dropped(self.codes, self.hints), count - 1)
        return tuple(range(fewest, min(fewest + 4, count)))

    @property
    def whole_captions(self) -> bool:
        """True if a posterior or the decoder reads whole captions, from which no attribute can be left out.

        Captions that spell the attributes are completed.
        """
        text = self._loaded.text
        names = [name for name in self._evaluation.posteriors if name != RETRIEVAL]
        if text is not None and text.slots and any(self._loaded.posteriors[name].is_completing for name in names):
            return False
        if text is not None and text.name in self._loaded.model.conditional_on:
            return True
        by_words = self._loaded.guidance and self._loaded.guidance.method != CFG
        if by_words and self._evaluation.attributes.name not in self._loaded.likelihood.names:
            return True  # p(words | z) is of whole captions
        reading = [name for name in self._evaluation.posteriors if not self._evaluation.ignores_text(name)]
        return self._loaded.description_kind == "text" and bool(reading)

    @property
    def free_captions(self) -> bool:
        """True if a posterior reads captions in free words, which do not spell attributes."""
        text = self._loaded.text
        return self.whole_captions and text is not None and not text.slots

    def make_queries(self, dropped: int) -> Queries:
        """Make queries from the descriptions of the evaluated part without ``dropped`` of their attributes."""
        return make_queries(
            self.codes,
            dropped,
            never_dropped=self.hints,
            limit=self._settings.queries,
            captions=self._loaded.text is not None,
            seed=self._settings.seed,
        )

    def make_most_complete_queries(self) -> list[Queries]:
        """Make queries for each chosen number of attributes, else with as many as possible; or distinct captions."""
        text, attributes = self._loaded.text, self._loaded.attributes
        if text is not None and attributes is None:
            return [
                make_plain_caption_queries(
                    self._read_tokens(self._evaluation.rows()), self._settings.queries, self._settings.seed
                )
            ]
        if self.free_captions:
            return [self.make_caption_queries().merge_alike(self.hints)[0]]
        most = len(self._evaluation.attributes.names) - len(self.hints)
        chosen = self.dropped if self._settings.dropped is not None else self.dropped[:1]
        return [self.make_queries(number) for number in chosen if number <= most]

    def make_training_queries(self, queries: Queries) -> tuple[Queries | None, float]:
        """Return queries like ``queries`` of the training pictures, and what percentage of ``queries`` these have.

        The first is None where training pictures have all of ``queries``, or describe nothing in as many attributes.
        """
        rows, limit, seed = self._evaluation.training_pictures.rows, self._settings.queries, self._settings.seed
        codes = self._read_codes(rows) if self._loaded.attributes is not None else np.zeros((len(rows), 0), np.uint8)
        if queries.tokens is not None:
            tokens = self._read_tokens(rows)
            there = [bool((tokens == one).all(1).any()) for one in queries.tokens]
        else:
            there = [bool(((codes == one) | (one == UNKNOWN)).all(1).any()) for one in queries.codes]
        share = 100 * float(np.average(there, weights=queries.weights))
        if all(there) or (queries.tokens is None and queries.dropped < fewest_dropped(codes, self.hints)):
            return None, share
        if queries.tokens is None:
            made = make_queries(codes, queries.dropped, never_dropped=self.hints, limit=limit, seed=seed)
        elif codes.shape[1]:
            made = make_caption_queries(tokens, codes, required=self.hints, limit=limit, seed=seed)
            made = made.merge_alike(self.hints)[0]
        else:
            made = make_plain_caption_queries(tokens, limit, seed)
        return replace(made, part="train"), share

    def _read_tokens(self, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        assert self._loaded.text is not None
        return self._evaluation.dataset.read_text(self._loaded.text.name, rows)

    def make_caption_queries(self) -> Queries:
        """Make queries from the captions of the evaluated part, with the attributes of each example."""
        settings, tokens = self._settings, self._read_tokens(self._evaluation.rows())
        return make_caption_queries(tokens, self.codes, required=self.hints, limit=settings.queries, seed=settings.seed)

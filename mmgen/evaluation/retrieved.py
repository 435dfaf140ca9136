"""Retrieval: the training pictures that match a description best, and ranks of right candidates among all.

For attributes the match is the number of given values that agree; for captions it is the cosine similarity of words
weighted by inverse document frequency. Pictures that match equally well are returned in random order, each once before
any is returned again.

References:
    A statistical interpretation of term specificity and its application in retrieval (Spärck Jones, 1972), Journal of
    Documentation 28
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation.queries import Queries
from mmgen.generation.decode import DecodedPictures

if TYPE_CHECKING:
    from mmgen.artifacts import Dataset
    from mmgen.generation import TrainedModel


_TIE = 1e-6
"""Scores that differ by less than this share of their size tie: the difference is rounding."""


@dataclass(frozen=True)
class Ranks:
    """Ranks of right candidates: for each of Q queries, how many of N candidates score better than the right ones.

    Attributes:
        better: Number of wrong candidates above the best right one, [Q].
        tied: Number of wrong candidates that tie with it, [Q].
        right: Number of right candidates that tie with it, including itself, [Q].
        relevant: Number of right candidates, [Q].
        candidates: N.
    """

    better: NDArray[np.int64]
    tied: NDArray[np.int64]
    right: NDArray[np.int64]
    relevant: NDArray[np.int64]
    candidates: int

    @classmethod
    def from_scores(cls, scores: NDArray[np.float64], is_right: NDArray[np.bool_]) -> "Ranks":
        """Rank the N candidates of Q queries by scores [Q, N], higher is better; ``is_right`` [Q, N] marks right ones.

        NaN counts as minus infinity.
        """
        scores = np.where(np.isnan(scores), -np.inf, scores)
        best = np.where(is_right, scores, -np.inf).max(1, keepdims=True)
        with np.errstate(invalid="ignore"):  # infinite ones less each other
            near = np.where(np.isfinite(best), _TIE * np.maximum(1.0, np.abs(best)), 0.0)
            equal = (scores == best) | (np.abs(scores - best) <= near)
        return cls(
            ((scores > best) & ~equal & ~is_right).sum(1),
            (equal & ~is_right).sum(1),
            (equal & is_right).sum(1),
            is_right.sum(1),
            scores.shape[1],
        )

    @property
    def chance(self) -> "Ranks":
        """Ranks of the same queries if candidates were ordered at random."""
        return Ranks(0 * self.better, self.candidates - self.relevant, self.relevant, self.relevant, self.candidates)

    def recall_at(self, k: int) -> NDArray[np.float64]:
        """Return the probability [Q] that a right candidate is among the first k, with ties in random order.

        If t wrong and r right candidates tie, the first m = k - better places hold no right one with probability
        C(t, m) / C(t + r, m).
        """
        places = np.clip(k - self.better, 0, self.tied + self.right)
        none = np.ones(len(self.better))
        for taken in range(int(places.max(initial=0))):  # the ratio of binomials as a product
            left = self.tied + self.right - taken
            step = np.clip(self.tied - taken, 0, None) / np.maximum(left, 1)
            none = np.where(taken < places, none * step, none)
        return np.asarray(1 - none)

    @property
    def ranks(self) -> NDArray[np.float64]:
        """Mean rank [Q] of the first right candidate with ties in random order: 1 + better + tied / (right + 1)."""
        return np.asarray(1 + self.better + self.tied / (self.right + 1))


_AT_ONCE = 256
"""Pictures that are read together."""
_SAME_FIT = 1e-9

Floats = NDArray[np.float64]


class RetrievedPictures:
    """Training pictures whose words fit descriptions best, in place of pictures drawn from a model.

    Args:
        dataset: An open dataset.
        loaded: The model, which names the modalities.
        rows: Rows of the training pictures.
        seed: Seed of the order of pictures that fit equally well.
    """

    def __init__(self, dataset: "Dataset", loaded: "TrainedModel", rows: NDArray[np.int64], seed: int) -> None:
        self._dataset, self._loaded, self._rows, self._seed = dataset, loaded, rows, seed

    @cached_property
    def _codes(self) -> NDArray[np.uint8]:
        assert self._loaded.attributes is not None
        return self._dataset.read_attributes(self._loaded.attributes.name, self._rows)

    @cached_property
    def _tokens(self) -> NDArray[np.uint16]:
        assert self._loaded.text is not None
        return self._dataset.read_text(self._loaded.text.name, self._rows)

    def find_rows(self, queries: Queries, n: int, have: int = 0) -> NDArray[np.int64]:
        """Return the rows [Q, n] of pictures number ``have`` to ``have + n`` of each query."""
        if queries.tokens is None:
            words, fits = queries.codes.tolist(), fit_of_attributes(queries.codes, self._codes)
        else:
            assert self._loaded.text is not None
            words = queries.tokens.tolist()
            fits = fit_of_captions(queries.tokens, self._tokens, len(self._loaded.text.vocabulary))
        found = []
        for query, fit in zip(words, fits, strict=True):
            best = np.flatnonzero(fit >= fit.max() - _SAME_FIT)
            rng = numpy_generator(self._seed, "retrieval", *query)
            rounds = -(-(have + n) // len(best))
            order = np.concatenate([rng.permutation(best) for _ in range(rounds)])
            found.append(self._rows[order[have : have + n]])
        return np.stack(found)

    def draw_pictures(self, queries: Queries, n: int, have: int = 0) -> Iterator[DecodedPictures]:
        """Yield pictures number ``have`` to ``have + n`` of each query, in pieces."""
        assert self._loaded.observation is not None
        rows = self.find_rows(queries, n, have)
        together = max(1, _AT_ONCE // n)
        for start in range(0, len(rows), together):
            part = rows[start : start + together]
            distinct, places = np.unique(part, return_inverse=True)
            values = self._dataset.read_values(self._loaded.observation.name, distinct, self._seed)
            images = torch.from_numpy(values[places.reshape(part.shape)]).to(self._loaded.device)
            yield DecodedPictures(slice(start, start + len(part)), slice(0, n), images.float())


def fit_of_attributes(queries: NDArray[np.uint8], codes: NDArray[np.uint8]) -> Iterator[Floats]:
    """Yield for each query [A] the number of its given attributes that equal those of each example [N].

    Args:
        queries: Codes [Q, A], ``UNKNOWN`` where not given.
        codes: Codes of the examples [N, A]; an unknown value never equals a given one.

    Example:
        >>> query, examples = np.array([[1, 255, 0]]), np.array([[1, 1, 0], [1, 0, 1], [255, 0, 0]])
        >>> next(fit_of_attributes(query, examples))
        array([2., 1., 1.])
    """
    distinct, places = np.unique(codes, axis=0, return_inverse=True)
    for query in queries:
        given = query != UNKNOWN
        agreeing: Floats = (distinct[:, given] == query[given]).sum(1).astype(np.float64)
        yield agreeing[places.reshape(-1)]


def fit_of_captions(queries: NDArray[np.uint16], tokens: NDArray[np.uint16], size: int) -> Iterator[Floats]:
    """Yield for each query [T] the similarity of its words to those of each caption [N], from 0 to 1.

    Args:
        queries: Word codes [Q, T].
        tokens: Word codes of the captions [N, T].
        size: Size of the vocabulary; codes from it on stand for no word.

    Example:
        >>> captions = np.array([[0, 1, 3], [0, 2, 3], [2, 2, 1]])
        >>> [float(round(fit, 2)) for fit in next(fit_of_captions(np.array([[0, 1, 3]]), captions, 3))]
        [1.0, 0.5, 0.5]
    """

    def once(row_tokens: NDArray[np.uint16]) -> NDArray[np.int64]:
        """Replace codes of no word and words that occur again by the code ``size``."""
        ordered = np.sort(np.minimum(row_tokens, size).astype(np.int64), axis=1)
        ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = size
        return ordered

    words = once(tokens)
    documents = np.bincount(words.reshape(-1), minlength=size + 1)[:size]
    squares = np.r_[np.log((1 + len(words)) / (1 + documents)) ** 2, 0.0]
    squares[:size] += np.finfo(np.float64).eps  # a word of all captions is still a word
    norms = np.sqrt(squares[words].sum(1))
    for query in once(queries):
        shared = np.zeros(size + 1)
        shared[query] = squares[query]
        norm = norms * np.sqrt(shared.sum())
        yield np.divide(shared[words].sum(1), norm, out=np.zeros(len(words)), where=norm > 0)

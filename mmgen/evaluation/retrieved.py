"""Retrieval baseline: the training pictures that match a description best.

For attributes the match is the number of given values that agree; for captions it is the cosine similarity of words
weighted by inverse document frequency. Pictures that match equally well are returned in random order, each once before
any is returned again.

References:
    A statistical interpretation of term specificity and its application in retrieval (Spärck Jones, 1972), Journal of
    Documentation 28
"""

from collections.abc import Iterator
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

__all__ = ["RetrievedPictures", "fit_of_attributes", "fit_of_captions"]

_AT_ONCE = 256
"""Pictures that are read together."""
_TIE = 1e-9

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
            best = np.flatnonzero(fit >= fit.max() - _TIE)
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

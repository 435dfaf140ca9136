"""Drawn pictures at full size, beside the real pictures that have the same words."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries
from mmgen.evaluation.training_pictures import to_bytes

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation


Bytes = NDArray[np.uint8]

_MOST = 2000
"""Drawn pictures at most."""
_REAL = 64
"""Real pictures of a description at most."""
_LEAST = 5
"""Pixels of a side at least."""


@dataclass(frozen=True)
class SameWords:
    """Drawn and real pictures of the Q descriptions with the most words that were asked for.

    Attributes:
        queries: The descriptions.
        drawn: Drawn pictures [Q, n, C, H, W].
        real: Real pictures [m, C, H, W] of each description, of the evaluated part: at most 64 at random.
        about: Fields that all scores of these pictures share.
    """

    queries: Queries
    drawn: Bytes
    real: list[Bytes]
    about: dict[str, Any]


def explain_missing_pictures(evaluation: "Evaluation") -> str:
    """Return a reason if no pictures of attributes are drawn; else "": they are stored at full size from then on."""
    main = evaluation.loaded.observation
    if main is None or main.picture_shape != main.event_shape or min(main.event_shape[1:]) < _LEAST:
        return f"needs a model that draws pictures of {_LEAST} x {_LEAST} or more; use another metric, or another model"
    missing = needs.explain_unspelled_descriptions(evaluation) if evaluation.attributes else ""
    if not missing:
        evaluation.drawn_pictures.store_pixels(lambda queries: _picture_count(evaluation, queries), whole=True)
    return missing


def _picture_count(evaluation: "Evaluation", queries: int) -> int:
    return max(1, min(evaluation.settings.draws, _MOST // queries))


def read_pictures(evaluation: "Evaluation", rows: NDArray[np.int64]) -> Bytes:
    """Read the pictures [n, C, H, W] in rows of the evaluated dataset."""
    assert evaluation.loaded.observation is not None
    values = evaluation.dataset.read_values(evaluation.loaded.observation.name, rows, evaluation.settings.seed)
    return to_bytes(torch.from_numpy(values)).numpy().reshape(values.shape)


def draw_same_words(evaluation: "Evaluation", posterior: str) -> Generator[float, None, SameWords]:
    """Draw pictures of the descriptions with the most words, and read real ones with these words."""
    queries = evaluation.questions.make_queries(min(evaluation.questions.dropped))
    n = _picture_count(evaluation, len(queries))
    flat = yield from evaluation.drawn_pictures.compute_pixels(queries, posterior, n, whole=True)
    rows = numpy_generator(evaluation.settings.seed, "same words").permutation(evaluation.rows())
    codes = evaluation.dataset.read_attributes(evaluation.attributes.name, rows)
    alike = (rows[((query == codes) | (query == UNKNOWN)).all(1)][:_REAL] for query in queries.codes)
    real = [read_pictures(evaluation, each) for each in alike]
    details = {"queries": len(queries), "images_per_query": n, "real": sum(map(len, real))}
    about = {"posterior": posterior, "given": queries.given_count, "n": len(queries) * n, "details": details}
    return SameWords(queries, flat[:, :n].reshape(len(queries), n, *real[0].shape[1:]), real, about)

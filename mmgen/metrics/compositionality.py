"""Compositionality: correctness on combinations of attributes that are not in the training data.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Sections 3 and 5.1
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np

from mmgen.evaluation import needs
from mmgen.evaluation.queries import fewest_dropped
from mmgen.metrics._base import Score
from mmgen.metrics.correctness import CodeAgreement

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Compositionality"]


def _missing_held_out_combinations(evaluation: "Evaluation") -> str:
    """Return why the evaluated part has no attribute combinations that training held out; "" if it has."""
    if fewest_dropped(evaluation.questions.codes):
        return (
            "needs examples with all attributes known, but the part "
            f"'{evaluation.settings.part}' has none; use --metric correctness, which also takes incomplete ones"
        )
    trained_on = evaluation.loaded.settings.data.split
    held_out = evaluation.questions.make_queries(0).codes
    rows = evaluation.dataset.split(trained_on, "train")
    seen = {row.tobytes() for row in evaluation.dataset.read_attributes(evaluation.attributes.name, rows)}
    known = np.array([row.tobytes() in seen for row in held_out])
    if not known.any():
        return ""
    return (
        f"got a model trained on split '{trained_on}', which holds {int(known.sum())} of the {len(held_out)} "
        "combinations to evaluate, expected none; train one with mmgen train --split compositional, and leave "
        "--split out here"
    )


class Compositionality(CodeAgreement):
    """Correctness of pictures of complete descriptions whose combination of attributes was held out of training."""

    rank = 3
    reads = ("queries", "draws", "split", "part")
    needs = (needs.explain_missing_classifier, needs.explain_unspelled_descriptions, _missing_held_out_combinations)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        queries = evaluation.questions.make_queries(0)
        codes = yield from evaluation.drawn_pictures.classify_pictures(queries, posterior, evaluation.settings.draws)
        return self.score_codes(evaluation, posterior, queries, codes)

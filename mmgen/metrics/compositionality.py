"""Compositionality: correctness on combinations of attributes that training never showed.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Sections 3 and 5.1
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mmgen.core.errors import UsageError
from mmgen.evaluation.queries import fewest_dropped
from mmgen.metrics._base import Metric, Score
from mmgen.metrics._correctness import correctness_scores

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["Compositionality"]


class Compositionality(Metric):
    """Correctness with all attributes given, over the held-out combinations of a compositional split."""

    unit = "%"
    better = "higher"
    judged = True
    rank = 3
    reads = ("queries", "draws", "split", "part")
    columns: ClassVar = {"sd of 5 splits": "splits_sd", "queries": "queries"}

    def check(self, evaluation: "Evaluation") -> None:
        evaluation.check_queries("compositionality")
        part = evaluation.settings.part
        if fewest_dropped(evaluation.attributes_of(part)):
            raise UsageError(
                f"compositionality asks for whole combinations of attributes, and no example of the part '{part}' has "
                "all of them known; ask for --metric correctness, which takes those known in part"
            )
        trained_on = evaluation.loaded.settings.data.split
        held_out = evaluation.queries(0).codes
        rows = evaluation.dataset.split(trained_on, "train")
        seen = {row.tobytes() for row in evaluation.dataset.read_attributes(evaluation.info.name, rows)}
        known = np.array([row.tobytes() in seen for row in held_out])
        if known.any():
            raise UsageError(
                f"compositionality got a model trained on split '{trained_on}', which has {int(known.sum())} of the "
                f"{len(held_out)} combinations that it would be asked for; "
                "train one with mmgen train --split compositional, and leave --split out here"
            )

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        queries = evaluation.queries(0)
        codes = yield from evaluation.draws.judged(queries, posterior, evaluation.settings.draws)
        return correctness_scores("compositionality", evaluation, posterior, queries, codes)

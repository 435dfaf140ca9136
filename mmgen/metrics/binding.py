"""Binding: how often all objects of a picture are wholly right, each with its own properties.

References:
    CLEVR: A Diagnostic Dataset for Compositional Language and Elementary Visual Reasoning (Johnson, Hariharan, van der
    Maaten, Fei-Fei, Zitnick, Girshick, 2017), arXiv:1612.06890
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mmgen.evaluation import needs
from mmgen.evaluation.objects import explain_missing_objects, read_drawn_objects
from mmgen.evaluation.queries import weighted_mean
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Binding"]


class Binding(Metric):
    """Percentage of pictures in which the classifier reads each property of each object as described.

    Objects are attributes with the same properties, such as ``size_1 colour_1 size_2 colour_2``. Further attributes,
    such as a relation, do not count. ``swapped`` is the percentage of pictures with all objects wholly there, but in
    another order; ``mixed`` that with all values there, but bound to other objects: a red ball beside a blue cube in
    place of a blue ball beside a red cube. ``independent`` is the percentage that would be right if properties were
    right or wrong independently of each other, as often as they are. Descriptions give all attributes.
    """

    unit = "%"
    better = "higher"
    rank = 2
    reads = ("queries", "draws", "split", "part")
    columns: ClassVar = {
        "swapped": "swapped",
        "mixed": "mixed",
        "if independent": "independent",
        "queries": "queries",
    }
    needs = (needs.explain_missing_classifier, needs.explain_unspelled_descriptions, explain_missing_objects)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        seed = evaluation.settings.seed
        objects, queries, predicted, readings = yield from read_drawn_objects(evaluation, posterior)
        pictures = readings.bound.size
        values = 100.0 * readings.bound.mean(1)
        mean, swapped, mixed = (
            weighted_mean(100.0 * part.mean(1), queries.weights, seed)
            for part in (readings.bound, readings.exchanged, readings.mixed)
        )
        by_object = np.average(readings.right.all(3).mean(1), axis=0, weights=queries.weights)
        by_property = np.average(readings.right.mean(1), axis=0, weights=queries.weights)

        return [
            self.score(
                evaluation,
                mean.value,
                share_error(mean.value, mean.stderr, pictures, len(queries)),
                pictures,
                quantity="all objects right",
                posterior=posterior,
                given=queries.given_count,
                points=ExampleValues.from_values(values, queries.weights),
                details={
                    "swapped": swapped.value,
                    "swapped_stderr": share_error(swapped.value, swapped.stderr, pictures, len(queries)),
                    "mixed": mixed.value,
                    "mixed_stderr": share_error(mixed.value, mixed.stderr, pictures, len(queries)),
                    "by_object": dict(zip(objects.labels, (100 * by_object).tolist(), strict=True)),
                    "independent": 100 * float(by_property.prod()),
                    "queries": len(queries),
                    "images_per_query": predicted.shape[1],
                    "pixels": evaluation.drawn_pictures.pixels,
                },
            )
        ]

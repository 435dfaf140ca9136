"""Position: how often the objects of a picture are where the description places them, and not exchanged."""

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

__all__ = ["Position"]


class Position(Metric):
    """Percentage of pictures whose objects fit the description better in its order than in another one.

    Objects are attributes with the same properties, such as ``size_1 colour_1 size_2 colour_2``. The classifier reads
    them in the order that the description says; one that is told the relation of two objects reads first the object
    that the relation names first. A picture counts if more properties are right in this order than in any other, and
    by half if as many are: 50 % is chance for two objects. Of three or four the described order must beat the best of
    5 or 23 others, so that chance is lower: it is no share of pictures whose most likely order is the described one.
    Other attributes that the classifier predicts, such as a relation, must be right too. Descriptions
    of equal objects are left out. ``both seen`` is the percentage of pictures with all objects wholly there in any
    order, and ``strict`` the percentage of these in the right order.
    """

    unit = "%"
    better = "higher"
    rank = 2
    reads = ("queries", "draws", "split", "part")
    columns: ClassVar = {"both seen": "seen", "strict": "strict", "queries": "queries"}
    unmeasured = "no description of this part has objects that differ"
    needs = (needs.explain_missing_classifier, needs.explain_unspelled_descriptions, explain_missing_objects)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        objects, queries, predicted, readings = yield from read_drawn_objects(evaluation, posterior)
        if not readings.distinct.any():
            return []
        others = [
            index
            for index in range(len(evaluation.attributes.names))
            if index not in objects.positions and index not in evaluation.questions.hints
        ]
        related = (predicted[:, :, others] == queries.codes[:, None, others]).all(2)
        placed = related * np.where(
            readings.in_order == readings.in_other_order, 0.5, readings.in_order > readings.in_other_order
        )
        chosen, weights = np.flatnonzero(readings.distinct), queries.weights[readings.distinct]
        values = 100.0 * placed[chosen].mean(1)
        mean = weighted_mean(values, weights, evaluation.settings.seed)
        right = np.average((readings.bound & related)[chosen].mean(1), weights=weights)
        seen = np.average((readings.bound | readings.exchanged)[chosen].mean(1), weights=weights)
        pictures = len(chosen) * predicted.shape[1]
        return [
            self.score(
                evaluation,
                mean.value,
                share_error(mean.value, mean.stderr, pictures, len(chosen)),
                pictures,
                quantity="objects in their places",
                posterior=posterior,
                given=queries.given_count,
                points=ExampleValues.from_values(values, weights),
                details={
                    "seen": 100 * float(seen),
                    "strict": 100 * float(right / seen) if seen else None,
                    "queries": len(chosen),
                    "images_per_query": predicted.shape[1],
                    "pixels": evaluation.drawn_pictures.pixels,
                },
            )
        ]

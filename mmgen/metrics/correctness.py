"""Correctness: how often a picture shows what was asked for, as the judge sees it.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Section 3
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Section 4.2
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np

from mmgen.metrics._base import Metric, Score, relay
from mmgen.metrics._correctness import correctness_score

if TYPE_CHECKING:
    from mmgen.metrics._evaluation import Evaluation

__all__ = ["Correctness"]

_GENERATED = 2400
"""Pictures and words drawn from a density that ignores the text."""


class Correctness(Metric):
    r"""Mean over images and given attributes of [judge = asked].

    .. math:: \frac{1}{|S|} \sum_{x \in S} \frac{1}{|O|} \sum_{k \in O} I(\hat y(x)_k = y_k) \quad \text{(VE Section 3)}

    Densities that ignore the text (the prior, a learned q(z)) are also asked for pictures and words of the same z,
    which should agree (CK Table 2): protocol ``generated-text``, nothing given.
    """

    unit = "%"
    better = "higher"
    judged = True
    rank = 2

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        scores = []
        dropped = [number for number in evaluation.dropped if number < len(evaluation.info.names)]
        for done, number in enumerate(dropped):
            queries = evaluation.queries(number)
            judged = evaluation.draws.judged(queries, posterior, evaluation.settings.draws)
            codes = yield from relay(judged, done / len(dropped), 1 / len(dropped))
            scores.append(correctness_score("correctness", evaluation, posterior, queries, codes))
        model = evaluation.loaded.model
        says_words = evaluation.info.name in model.modalities and not model.conditional_on
        if evaluation.ignores_text(posterior) and says_words:
            scores.append(_generated(evaluation, posterior))
        return scores


def _generated(evaluation: "Evaluation", posterior: str) -> Score:
    """Agreement of pictures with the words of the same z."""
    seen, said = evaluation.draws.generated(posterior, _GENERATED)
    right = 100.0 * (seen == said)
    of_image = right.mean(1)
    return Score(
        metric="correctness",
        quantity="correctness",
        value=float(of_image.mean()),
        stderr=float(of_image.std(ddof=1) / np.sqrt(len(of_image))),
        unit="%",
        better="higher",
        n=len(of_image),
        posterior=posterior,
        given=0,
        protocol="generated-text",
        judge_accuracy=evaluation.judge.accuracy or None,
        ids=evaluation.judged_ids,
        extra={"by_attribute": dict(zip(evaluation.info.names, right.mean(0).tolist(), strict=True))},
    )

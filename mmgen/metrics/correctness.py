"""Correctness: how often a picture shows what was asked for, as the judge sees it.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Section 3
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Sections 4.2 and 5.4
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.metrics._base import Metric, Score, relay
from mmgen.metrics._correctness import correctness_scores
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["Correctness"]

_GENERATED = 2400
"""Pictures and words drawn from a density that ignores the text."""


class Correctness(Metric):
    r"""Mean over images and given attributes of [judge = asked].

    .. math:: \frac{1}{|S|} \sum_{x \in S} \frac{1}{|O|} \sum_{k \in O} I(\hat y(x)_k = y_k) \quad \text{(VE Section 3)}

    Where captions spell the attributes, those of random examples are asked for, as often as they occur. Of captions in
    free words, what the judge sees on pictures drawn for the caption of an example is compared with what is known of
    the attributes of that example: protocol ``free-captions``, whose queries are captions. Densities that
    ignore the text (the prior, a learned q(z)) are also asked for pictures and words of the same z, which should agree
    (CK Table 2): protocol ``generated-text``, nothing given.

    Protocol ``exact`` is over the words that the judge says. One that is told words (CK 5.4: the relation) gives two
    scores each: over all words, the told ones among them, as CK count (``paper``, ``generated-text``), and over the
    words that it says (``exact``, ``generated-text-exact``).
    """

    unit = "%"
    better = "higher"
    judged = True
    rank = 2
    reads = DESCRIPTIONS
    columns: ClassVar = {"sd of 5 splits": "splits_sd", "queries": "queries"}
    protocols: ClassVar = {
        "exact": "How many of the attributes asked for the judge sees in a picture; what it is told does not count.",
        "paper": "The same with the words that the judge is told, which always match, as Cremer and Kushman count.",
        "free-captions": "Pictures are drawn for the caption of an example and compared with its known attributes.",
        "generated-text": "Nothing is given: pictures are compared with the words that the model says of the same z.",
        "generated-text-exact": "The same without the words that the judge is told.",
    }

    def check(self, evaluation: "Evaluation") -> None:
        if not evaluation.free_captions or any(evaluation.dropped):
            evaluation.check_queries("correctness")

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        scores = []
        if evaluation.free_captions:
            queries = evaluation.captions()
            drawn, of = queries.distinct(evaluation.told)  # pictures of one caption are the same
            codes = yield from evaluation.draws.judged(drawn, posterior, evaluation.settings.draws)
            return correctness_scores("correctness", evaluation, posterior, queries, codes[of])
        most = len(evaluation.info.names) - len(evaluation.told)
        dropped = [number for number in evaluation.dropped if number < most]
        for done, number in enumerate(dropped):
            queries = evaluation.queries(number)
            judged = evaluation.draws.judged(queries, posterior, evaluation.settings.draws)
            codes = yield from relay(judged, done / len(dropped), 1 / len(dropped))
            scores += correctness_scores("correctness", evaluation, posterior, queries, codes)
        if evaluation.ignores_text(posterior) and evaluation.draws.says_words:
            seen, said = evaluation.draws.generated(posterior, _GENERATED)
            everything = list(range(len(evaluation.info.names)))
            scores.append(_generated(evaluation, posterior, seen, said, "generated-text", everything))
            if evaluation.told:
                said_only = [index for index in everything if index not in evaluation.told]
                scores.append(_generated(evaluation, posterior, seen, said, "generated-text-exact", said_only))
        return scores


def _generated(
    evaluation: "Evaluation",
    posterior: str,
    seen: NDArray[np.uint8],
    said: NDArray[np.uint8],
    protocol: str,
    columns: list[int],
) -> Score:
    """Agreement of pictures with the words of the same z, [n, A] each; UNKNOWN is never right."""
    right = 100.0 * ((seen == said) & (said != UNKNOWN))[:, columns]
    of_image = right.mean(1)
    names = [evaluation.info.names[index] for index in columns]
    value, spread = float(of_image.mean()), float(of_image.std(ddof=1) / np.sqrt(len(of_image)))
    return Score(
        metric="correctness",
        quantity="correctness",
        value=value,
        stderr=share_error(value, spread, len(of_image)),
        unit="%",
        better="higher",
        n=len(of_image),
        posterior=posterior,
        given=0,
        protocol=protocol,
        judge_accuracy=evaluation.judge.accuracy or None,
        ids=evaluation.judged_ids,
        by_attribute=dict(zip(names, right.mean(0).tolist(), strict=True)),
    )

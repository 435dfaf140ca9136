"""Link prediction: whether the model gives held-back edges of a graph higher scores than pairs without an edge.

References:
    Variational Graph Auto-Encoders (Kipf, Welling, 2016), arXiv:1611.07308, Table 1
    Comparing the Areas under Two or More Correlated Receiver Operating Characteristic Curves (DeLong, DeLong,
    Clarke-Pearson, 1988): the error of an area
"""

import math
from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.contrib.graphs.modalities.graph import Graph
from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator
from mmgen.metrics._base import Metric, Score
from mmgen.training.batches import DatasetRows

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["LinkPrediction"]


_RESAMPLES = 200


def area_under_roc(joined: NDArray[np.float64], absent: NDArray[np.float64]) -> tuple[float, float]:
    """Return the area under the ROC curve of scores of joined and absent pairs, with standard error (DeLong et al.,
    1988).

    Args:
        joined: Scores [m] of pairs that are joined, higher for likelier edges.
        absent: Scores [n] of pairs that are not.

    Example:
        >>> area_under_roc(np.array([3.0, 1.0]), np.array([2.0, 0.0]))[0]
        0.75
    """
    from scipy.stats import rankdata

    m, n = len(joined), len(absent)
    ranks = rankdata(np.concatenate([joined, absent]))
    # Share of the other side that each one beats, ties as half.
    won = (ranks[:m] - rankdata(joined)) / n
    lost = 1 - (ranks[m:] - rankdata(absent)) / m
    variance = sum(float(part.var(ddof=1)) / len(part) for part in (won, lost) if len(part) > 1)
    return float(won.mean()), math.sqrt(variance)


def average_precision(joined: NDArray[np.float64], absent: NDArray[np.float64], seed: int) -> tuple[float, float]:
    """Return the average precision of scores of joined and absent pairs, with its standard error by bootstrap over
    pairs.

    Arguments are those of :func:`area_under_roc`.
    """
    from sklearn.metrics import average_precision_score

    generator = numpy_generator(seed, "average precision")

    def precision_of(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> float:
        truth = np.repeat([1, 0], [len(positive), len(negative)])
        return float(average_precision_score(truth, np.concatenate([positive, negative])))

    drawn = ((generator.choice(part, len(part)) for part in (joined, absent)) for _ in range(_RESAMPLES))
    return precision_of(joined, absent), float(np.std([precision_of(*parts) for parts in drawn], ddof=1))


def _missing_held_back_edges(evaluation: "Evaluation") -> str:
    """Return why no edges are held back for this model (no graph, other dataset or part); "" if some are."""
    loaded, dataset = evaluation.loaded, evaluation.dataset
    if not any(isinstance(modality, Graph) for modality in loaded.model.modalities.values()):
        return "needs a model that generates a graph; this one does not"
    if dataset.header.content_id not in [parent.content_id for parent in loaded.model_header.parents]:
        return (
            f"got {dataset.path}, expected the dataset that {loaded.path} was trained on, since training on another "
            "may have seen the edges that this one holds back; leave the dataset out"
        )
    if evaluation.settings.part == "train":
        return "needs pairs that are held back, and part train has none; use --part val or --part test"
    return ""


class LinkPrediction(Metric):
    """AUC and average precision with which a graph model separates held-back edges from pairs that are not joined.

    The encoder sees only the edges of the training part. Half of the pairs of a test part are joined.
    """

    unit = "percent"
    better = "higher"
    posteriors = "none"
    points = "seen"
    reads = ("split", "part")
    needs = (_missing_held_back_edges,)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, settings = evaluation.loaded, evaluation.settings
        name, graph = next((n, m) for n, m in loaded.model.modalities.items() if isinstance(m, Graph))
        rows = DatasetRows.open_split(evaluation.dataset, evaluation.split, settings.part, loaded.device)
        nodes = rows.batch(torch.arange(len(rows)))
        means = loaded.model.means(nodes, loaded.encoder_inputs)
        parameters = torch.empty_like(means)
        parameters[nodes.values[name]] = loaded.model.decode(name, means)
        yield 0.5
        if not nodes.shared[f"{name}.held_edges"].shape[1]:
            raise UsageError(
                f"link-prediction got the {settings.part} part of split '{evaluation.split}', which has no held-back "
                "edges to predict; choose another with --part or --split"
            )
        joined, absent = (
            graph.log_odds(parameters, nodes.shared[f"{name}.{pairs}"]).double().cpu().numpy()
            for pairs in ("held_edges", "held_absent")
        )
        areas = {
            f"AUC of {name}": area_under_roc(joined, absent),
            f"average precision of {name}": average_precision(joined, absent, settings.seed),
        }
        yield 1.0
        return [
            self.score(
                evaluation,
                100 * value,
                100 * stderr,
                len(joined) + len(absent),
                quantity=quantity,
                posterior="+".join(loaded.encoder_inputs),
                protocol="pairs held back, as many joined as not",
            )
            for quantity, (value, stderr) in areas.items()
        ]

"""Probe: how well a linear classifier reads the labels off z, off its shared layers and off each private one.

References:
    Generalized Multimodal ELBO (Sutter, Daunhawer, Vogt, 2021), arXiv:2105.02470: latent classification
    MMVAE+ (Palumbo, Daunhawer, Vogt, ICLR 2023): shared and private parts apart
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.evaluation import needs
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.posteriors import means_in_slices
from mmgen.results.standard_errors import binomial_error
from mmgen.training.batches import DatasetRows

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Probe"]

_AT_ONCE = 2048
_ITERATIONS = 1000


def _explain_missing_labels(evaluation: "Evaluation") -> str:
    """Return a reason if the model's data have no attributes; else ""."""
    if evaluation.loaded.attributes is not None:
        return ""
    return "needs labels to read, and the data of this model have no attributes; choose another metric"


class Probe(Metric):
    """Percentage of examples whose label a logistic regression reads off the mean of q(z | pictures).

    It learns from at most ``encodings`` examples of the training part, and reads ``number`` examples of the evaluated
    part. Each attribute has a score for all of z, and where z has several layers one for each: a layer that modalities
    share should tell the label, and one that belongs to a modality should not. z is given all modalities but words, if
    the model has such a posterior, else those that its encoder needs. ``chance`` is what always answering the
    commonest label of the training part gets. Numbers are standardised first; the penalty is scikit-learn's default.
    """

    unit = "%"
    better = "higher"
    posteriors = "none"
    points = "averaged"
    reads = (*POINTS, "encodings")
    columns: ClassVar = {"chance": "chance", "dimensions": "dimensions", "z given": "inputs"}
    conditions = ("inputs", "learnt_from")
    needs = (_explain_missing_labels, needs.explain_missing_encodings)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        every, limit, inputs = evaluation.rows("train"), evaluation.settings.encodings, _inputs(evaluation)
        chosen = numpy_generator(evaluation.settings.seed, "probe").permutation(len(every))[:limit]
        rows = [every[np.sort(chosen)], evaluation.rows_of_points]  # to learn from, and to test
        means = [_encode(evaluation, rows[0], inputs)]
        yield 0.5
        means.append(_encode(evaluation, rows[1], inputs))
        codes = [evaluation.dataset.read_attributes(evaluation.attributes.name, of_part) for of_part in rows]
        layers, scores = _layers(evaluation), []
        for number, (layer, place) in enumerate(layers.items()):
            for index, attribute in enumerate(evaluation.attributes.names):
                learnt, test = ((mean[:, place], code[:, index]) for mean, code in zip(means, codes, strict=True))
                values, chance = _read_labels(*learnt, *test)
                if len(values):
                    value, about = float(values.mean()), {"inputs": ", ".join(inputs), "learnt_from": len(rows[0])}
                    score = self.score(
                        evaluation, value, binomial_error(value, len(values)), len(values),
                        quantity=f"{attribute} from {layer}", points=ExampleValues.from_values(values),
                        details={**about, "chance": chance, "dimensions": learnt[0].shape[1]},
                    )  # fmt: skip
                    scores.append(score)
            yield 0.6 + 0.4 * (number + 1) / len(layers)
        return scores


def _inputs(evaluation: "Evaluation") -> tuple[str, ...]:
    """Return the modalities that z is inferred from: all but words, if the model has such a posterior."""
    observed = tuple(name for name in evaluation.loaded.observed if name in evaluation.loaded.model.modalities)
    return observed if evaluation.loaded.model.has_posterior(observed) else evaluation.source_modalities


@torch.no_grad()
def _encode(evaluation: "Evaluation", rows: NDArray[np.int64], inputs: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the means of z of examples, float64 [N, D]."""
    loaded, settings = evaluation.loaded, evaluation.settings
    source = DatasetRows(evaluation.dataset, rows, loaded.device, modalities=inputs, seed=settings.seed)
    generator = torch_generator(settings.seed, "layers of codes", device=loaded.device)
    means = []
    for indices in torch.arange(len(source)).split(_AT_ONCE):
        parts = means_in_slices(loaded.model, source.batch(indices), inputs, settings.precision, generator)
        means += [mean.double().cpu().numpy() for _, mean in parts]
    return np.concatenate(means)


def _layers(evaluation: "Evaluation") -> dict[str, slice]:
    """Return the places of z, and of each of its layers if there are several, by what a table calls them."""
    latent, start = evaluation.loaded.model.latent, 0
    layers = {"z": slice(None)}
    for layer, size in latent.layers.items() if len(latent.layers) > 1 else ():
        is_shared = latent.owners and layer not in latent.owners
        layers[f"{layer} (shared)" if is_shared else layer] = slice(start, start + size)
        start += size
    return layers


def _read_labels(
    numbers: NDArray[np.float64], labels: NDArray[np.uint8], tested: NDArray[np.float64], answers: NDArray[np.uint8]
) -> tuple[NDArray[np.float64], float]:
    """Learn labels from numbers; return 100 for each known label of the tested ones that is read right, and chance.

    Nothing is returned, [0], where no tested label is known, or fewer than two of those to learn from.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    known, asked = labels != UNKNOWN, answers != UNKNOWN
    values, counts = np.unique(labels[known], return_counts=True)
    if len(values) < 2 or not asked.any():
        return np.zeros(0), 0.0
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=_ITERATIONS))
    classifier.fit(numbers[known], labels[known])
    right, chance = (answers[asked] == each for each in (classifier.predict(tested[asked]), values[counts.argmax()]))
    return 100.0 * right, 100 * float(chance.mean())

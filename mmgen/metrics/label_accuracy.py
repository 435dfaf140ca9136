"""Label accuracy: the share of pictures for which the model predicts the true description.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5.1
"""

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.likelihoods import description_modality, has_description, infer_proposal, main_modality
from mmgen.evaluation.settings import POINTS
from mmgen.generation.encode import iterate_attribute_probabilities, iterate_posterior_draws
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.modalities.text import Text
from mmgen.results.standard_errors import binomial_error, share_error
from mmgen.training.labelling import label_seed
from mmgen.training.pairing import effective_paired_share, paired_count
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation
    from mmgen.generation import TrainedModel

__all__ = ["LabelAccuracy"]


_PICTURES = 512
"""Pictures described together."""


def _missing_descriptions(evaluation: "Evaluation") -> str:
    """Return why the model cannot describe images, without p(description | z) or q(z | image); "" if it can."""
    loaded = evaluation.loaded
    image = main_modality(loaded)
    if description_modality(loaded) is None:
        return (
            "needs a model that generates descriptions, but this one does not; train one with an objective that "
            "generates them, such as mvae"
        )
    return "" if loaded.model.has_posterior((image,)) else f"needs q(z | {image}), and this model has no such posterior"


class LabelAccuracy(Metric):
    r"""Share of pictures whose true description the model predicts (WG's p(x2|x1)).

    .. math:: \hat y_k = \arg\max_{y_k} \frac{1}{S} \sum_{s=1}^S p(y_k | z_s), \quad z_s \sim q(z|x)

    Each attribute is the likeliest of its marginal; a sentence is read greedily, each word the likeliest after those
    before it. With several attributes or words another description may be likelier as a whole. Protocol ``samples``
    averages over S draws (``--samples``), ``mean`` takes the mean of q(z|x). A model with q(y|x) in closed form, such
    as a semi-supervised one, predicts the label by it (protocol ``posterior``) without draws.

    Scores are of the whole description (all known attributes, or the exact sentence; standard error binomial) and,
    where it has parts, of each attribute or word (for sentences: matching places out of those of the longer one; for
    sets of words: shared words out of those of either).
    """

    unit = "%"
    better = "higher"
    posteriors = "none"
    points = "averaged"
    reads = ("samples", *POINTS)
    protocols: ClassVar = {
        "samples": "The description that is likeliest on average over draws of q(z|x).",
        "mean": "The description that is likeliest at the mean of q(z|x).",
        "posterior": "The description that is likeliest under the model's own q(y|x), in closed form.",
    }

    needs = (_missing_descriptions, needs.explain_missing_memory)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, settings = evaluation.loaded, evaluation.settings
        points, scores = _select_described_images(evaluation), []
        exact = yield from map_fractions(_predict_exactly(loaded, points, settings.precision), 0.0, 1.0)
        if exact is not None:
            return self._score_predictions(evaluation, points, exact, "posterior", 0)
        for number, (protocol, draws) in enumerate((("samples", settings.samples), ("mean", 0))):
            work = _predict(loaded, points, draws, settings.seed, settings.precision)
            scores += self._score_predictions(
                evaluation, points, (yield from map_fractions(work, number / 2, 0.5)), protocol, draws
            )
        return scores

    def _score_predictions(
        self, evaluation: "Evaluation", points: Batch, codes: Tensor, protocol: str, draws: int
    ) -> list[Score]:
        """Score predicted descriptions: as wholes, and by attribute or word if they have several."""
        name = description_modality(evaluation.loaded)
        assert name is not None
        modality = evaluation.loaded.model.modalities[name]
        true, present = points.values[name], points.present[name]
        by_attribute: dict[str, float] = {}
        if isinstance(modality, Text):
            part = "each word"
            right, counted = modality.compare(true, codes)
        else:
            part, counted = "each attribute", present
            info = evaluation.attributes
            right = (codes == true) & counted
            by_attribute = {
                known: float(100 * right[:, place].sum() / counted[:, place].sum().clamp_min(1))
                for place, known in enumerate(info.names)
            }
        wrong = counted & ~right
        whole = 100.0 * (~wrong.any(1)).double()
        error: float | None = binomial_error(float(whole.mean()), len(whole))
        scores = [self._make_score(evaluation, "whole description", protocol, whole, error, draws, by_attribute)]
        if true.shape[1] > 1:
            length = counted.sum(1)
            shares = 100.0 * torch.where(length > 0, 1 - wrong.sum(1) / length.clamp_min(1), 1.0).double()
            spread = float(shares.std() / math.sqrt(len(shares))) if len(shares) > 1 else None
            error = share_error(float(shares.mean()), spread, len(shares))
            scores.append(self._make_score(evaluation, part, protocol, shares, error, draws, by_attribute))
        return scores

    def _make_score(
        self,
        evaluation: "Evaluation",
        quantity: str,
        protocol: str,
        values: Tensor,
        stderr: float | None,
        draws: int,
        by_attribute: dict[str, float],
    ) -> Score:
        return self.score(
            evaluation,
            float(values.mean()),
            stderr,
            len(values),
            quantity=quantity,
            posterior="image",
            protocol=protocol,
            points=ExampleValues.from_values(values.tolist()),
            by_attribute=by_attribute,
            details={"draws": draws, **_describe_supervision(evaluation)},
        )


def _select_described_images(evaluation: "Evaluation") -> Batch:
    """Return the evaluated data points that have both an image and a description."""
    points, words = evaluation.data_points, description_modality(evaluation.loaded)
    assert words is not None
    rows = points.present[main_modality(evaluation.loaded)] & has_description(points, words)
    if not rows.any():
        raise UsageError(
            f"no data point of the {evaluation.settings.part} part has both an image and {words}; "
            "choose another with --part"
        )
    return points[rows.nonzero().flatten()]


def _predict_exactly(loaded: "TrainedModel", points: Batch, precision: str) -> Generator[float, None, Tensor | None]:
    """Return the likeliest attribute codes [N, A] under q(y|x); None if the model has no closed form of q(y|x)."""
    image, name = main_modality(loaded), description_modality(loaded)
    assert name is not None
    codes: list[Tensor] = []
    for rows in torch.arange(points.size, device=points.device).split(_PICTURES):
        with autocast(loaded.device, precision):
            table = loaded.model.label_log_probabilities(name, points[rows], (image,))
        if table is None:
            return None
        codes.append(table.argmax(-1))
        yield sum(map(len, codes)) / points.size
    return torch.cat(codes)


def _predict(
    loaded: "TrainedModel", points: Batch, draws: int, seed: int, precision: str
) -> Generator[float, None, Tensor]:
    """Predict descriptions of pictures, codes [N, A] or words [N, T], from draws of z or, with 0 draws, its mean."""
    q, _ = infer_proposal(loaded, points, precision, "image", seed)
    name = description_modality(loaded)
    assert name is not None
    modality = loaded.model.modalities[name]
    codes: list[Tensor] = []
    if isinstance(modality, Text):
        for z in iterate_posterior_draws(loaded, q, draws, seed):
            with autocast(loaded.device, precision):
                codes.append(modality.likeliest(loaded.model.decode(name, z)))
            yield sum(map(len, codes)) / points.size
    else:
        for probabilities in iterate_attribute_probabilities(loaded, name, q, draws, seed, precision):
            codes.append(probabilities.argmax(-1))
            yield sum(map(len, codes)) / points.size
    return torch.cat(codes)


def _describe_supervision(evaluation: "Evaluation") -> dict[str, object]:
    """Return details for a score: the objective, and how many training examples had a description."""
    settings = evaluation.loaded.settings
    known: dict[str, object] = {"method": settings.objective["name"], "share": settings.data.paired}
    labelled = settings.data.labelled
    if labelled is not None:
        draw = label_seed(settings.data, settings.training.seed)
        known |= {"labelled": labelled, "labelled_seed": draw, "paired": labelled}
    if settings.objective.get("predicts"):
        known["predicts"] = settings.objective["predicts"]
    if settings.data.split in evaluation.dataset.schemes:
        size = len(evaluation.dataset.split(settings.data.split, "train"))
        if labelled is not None:
            return known | {"share": labelled / size}
        known["paired"] = paired_count(size, settings.data.paired)
        drawn = effective_paired_share(size, settings.build_objective(), settings.data)
        if drawn is not None:
            known["least_paired_share"] = drawn
    return known

"""Label accuracy: how often the description that a model reads off a picture is the true one.

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
from mmgen.evaluation.likelihoods import described, described_by, main_image, proposal_of
from mmgen.evaluation.settings import POINTS
from mmgen.generation.read import latents_to_read, read_parts
from mmgen.metrics._base import Metric, Score, relay
from mmgen.modalities.text import Text
from mmgen.results.score import Points
from mmgen.results.standard_errors import binomial_error, share_error
from mmgen.training.labelling import label_draw
from mmgen.training.pairing import drawn_share, paired_count
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation
    from mmgen.generation import TrainedModel

__all__ = ["LabelAccuracy"]

_PICTURES = 512
"""Pictures whose label is read off at a time."""


class LabelAccuracy(Metric):
    r"""Share of pictures whose description, read off through the model, is the true one (WG's p(x2|x1)).

    .. math:: \hat y_k = \arg\max_{y_k} \frac{1}{S} \sum_{s=1}^S p(y_k | z_s), \quad z_s \sim q(z|x)

    Each attribute is the likeliest by itself, of its marginal; a sentence is read greedily, each word the likeliest
    after those before it. Of one attribute that is the likeliest description; of several attributes or words another
    one may be likelier as a whole. Protocol ``samples`` averages over S draws (``--samples``), ``mean`` takes the mean
    of q(z|x) alone. Where a model has q(y|x) in closed form, as a semi-supervised one, that alone says the label
    (protocol ``posterior``), and nothing is drawn.

    Scores are of the whole description (all known attributes, or the exact sentence; standard error binomial) and,
    where it has parts, of each attribute or word (of a sentence: places that agree out of those of the longer of the
    two).
    """

    unit = "%"
    better = "higher"
    takes_guidance = False
    per_posterior = False
    scores_points = True
    values_of_points = True
    reads = ("samples", *POINTS)
    protocols: ClassVar = {
        "samples": "The description that is likeliest on average over draws of q(z|x).",
        "mean": "The description that is likeliest at the mean of q(z|x).",
        "posterior": "The description that is likeliest under the model's own q(y|x), in closed form.",
    }

    def check(self, evaluation: "Evaluation") -> None:
        loaded = evaluation.loaded
        image = main_image(loaded)
        if described_by(loaded) is None:
            raise UsageError(
                "label-accuracy is of a model that generates descriptions, and this one does not; train one with an "
                "objective that does, such as mvae"
            )
        if not loaded.model.answers((image,)):
            raise UsageError(f"label-accuracy needs q(z | {image}), and this model has no such posterior")
        evaluation.check_samples()

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, settings = evaluation.loaded, evaluation.settings
        points, scores = _complete(evaluation), []
        exact = yield from relay(_read_exactly(loaded, points, settings.precision), 0.0, 1.0)
        if exact is not None:
            return _scores(evaluation, points, exact, "posterior", 0)
        for number, (protocol, draws) in enumerate((("samples", settings.samples), ("mean", 0))):
            said = yield from relay(_read(loaded, points, draws, settings.seed, settings.precision), number / 2, 0.5)
            scores += _scores(evaluation, points, said, protocol, draws)
        return scores


def _complete(evaluation: "Evaluation") -> Batch:
    """The data points that have an image and a description."""
    points, words = evaluation.points, described_by(evaluation.loaded)
    assert words is not None
    rows = points.present[main_image(evaluation.loaded)] & described(points, words)
    if not rows.any():
        raise UsageError(
            f"no data point of the {evaluation.settings.part} part has both an image and {words}; "
            "choose another with --part"
        )
    return points[rows.nonzero().flatten()]


def _read_exactly(loaded: "TrainedModel", points: Batch, precision: str) -> Generator[float, None, Tensor | None]:
    """Codes [N, A] that are likeliest under q(y|x); None where the model does not have it in closed form."""
    image, name = main_image(loaded), described_by(loaded)
    assert name is not None
    said: list[Tensor] = []
    for rows in torch.arange(points.size, device=points.device).split(_PICTURES):
        with autocast(loaded.device, precision):
            table = loaded.model.label_log_probabilities(name, points[rows], (image,))
        if table is None:
            return None
        said.append(table.argmax(-1))
        yield sum(map(len, said)) / points.size
    return torch.cat(said)


def _read(
    loaded: "TrainedModel", points: Batch, draws: int, seed: int, precision: str
) -> Generator[float, None, Tensor]:
    """Descriptions read off pictures, codes [N, A] or words [N, T]; at the mean if there are no draws."""
    q, _ = proposal_of(loaded, points, precision, "image", seed)
    name = described_by(loaded)
    assert name is not None
    modality = loaded.model.modalities[name]
    said: list[Tensor] = []
    if isinstance(modality, Text):
        for z in latents_to_read(loaded, q, draws, seed):
            with autocast(loaded.device, precision):
                said.append(_greedy_words(modality, loaded.model.decode(name, z)))
            yield sum(map(len, said)) / points.size
    else:
        for probabilities in read_parts(loaded, name, q, draws, seed, precision):
            said.append(probabilities.argmax(-1))
            yield sum(map(len, said)) / points.size
    return torch.cat(said)


def _greedy_words(text: Text, contexts: Tensor) -> Tensor:
    """Sentences [B, T] of the mixture of S contexts [S, B, F], each word the likeliest after those before it.

    A context counts by how well it foretold the words so far: that makes it the mixture's own next word.
    """
    draws, size = contexts.shape[:2]
    words = torch.full((size, text.length), text.padding, dtype=torch.int64, device=contexts.device)
    so_far = contexts.new_zeros(draws, size, dtype=torch.float64)  # log p(words so far | context)
    ended = torch.zeros(size, dtype=torch.bool, device=contexts.device)
    state, previous = text.speaker.start(contexts)
    for place in range(text.length):
        state, logits = text.speaker.step(contexts, state, previous)
        table = logits.double().log_softmax(-1)
        mixture = (so_far.log_softmax(0).unsqueeze(-1) + table).logsumexp(0)
        said = mixture.argmax(-1).masked_fill(ended, text.padding)
        chosen = said.expand(draws, size).unsqueeze(-1)
        so_far = so_far + table.gather(-1, chosen).squeeze(-1).masked_fill(ended, 0.0)
        words[:, place], previous, ended = said, said, said == text.padding
        if ended.all():
            break
    return words


def _scores(evaluation: "Evaluation", points: Batch, said: Tensor, protocol: str, draws: int) -> list[Score]:
    """Scores of the whole description, and of its parts where it has several."""
    name = described_by(evaluation.loaded)
    assert name is not None
    modality = evaluation.loaded.model.modalities[name]
    true, present = points.values[name], points.present[name]
    by_attribute: dict[str, float] = {}
    if isinstance(modality, Text):
        part = "each word"
        counted = (true != modality.padding) | (said != modality.padding)
    else:
        part, counted = "each attribute", present
        info = evaluation.info
        right = (said == true) & counted
        by_attribute = {
            known: float(100 * right[:, place].sum() / counted[:, place].sum().clamp_min(1))
            for place, known in enumerate(info.names)
        }
    wrong = (said != true) & counted
    whole = 100.0 * (~wrong.any(1)).double()
    error: float | None = binomial_error(float(whole.mean()), len(whole))
    scores = [_score(evaluation, "whole description", protocol, whole, error, draws, by_attribute)]
    if true.shape[1] > 1:
        length = counted.sum(1)
        shares = 100.0 * torch.where(length > 0, 1 - wrong.sum(1) / length.clamp_min(1), 1.0).double()
        spread = float(shares.std() / math.sqrt(len(shares))) if len(shares) > 1 else None
        error = None if spread is None else share_error(float(shares.mean()), spread, len(shares))
        scores.append(_score(evaluation, part, protocol, shares, error, draws, by_attribute))
    return scores


def _score(
    evaluation: "Evaluation",
    quantity: str,
    protocol: str,
    values: Tensor,
    stderr: float | None,
    draws: int,
    by_attribute: dict[str, float],
) -> Score:
    return Score(
        metric="label-accuracy",
        quantity=quantity,
        value=float(values.mean()),
        stderr=stderr,
        unit="%",
        better="higher",
        n=len(values),
        posterior="image",
        protocol=protocol,
        ids=evaluation.ids,
        points=Points.of(values.tolist()),
        by_attribute=by_attribute,
        details={"draws": draws, **_supervision(evaluation)},
    )


def _supervision(evaluation: "Evaluation") -> dict[str, object]:
    """What the model learnt from: objective, share and number of examples that were paired, departures from WG."""
    settings = evaluation.loaded.settings
    known: dict[str, object] = {"method": settings.objective["name"], "share": settings.data.paired}
    labelled = settings.data.labelled
    if labelled is not None:
        draw = label_draw(settings.data, settings.training.seed)
        known |= {"labelled": labelled, "labelled_seed": draw, "paired": labelled}
    if settings.objective.get("predicts"):
        known["predicts"] = settings.objective["predicts"]
    if settings.data.split in evaluation.dataset.schemes:
        size = len(evaluation.dataset.split(settings.data.split, "train"))
        if labelled is not None:
            return known | {"share": labelled / size}
        known["paired"] = paired_count(size, settings.data.paired)
        drawn = drawn_share(size, settings.build_objective(), settings.data)
        if drawn is not None:
            known["least_paired_share"] = drawn
    return known

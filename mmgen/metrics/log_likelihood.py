"""Log-likelihoods of images and descriptions, importance-weighted and as one-sample bounds.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Eq. 6 and Tables 1 and 2
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.metrics._base import Metric, Score, relay
from mmgen.metrics._importance import Estimate, diagnostics, estimate, summarise
from mmgen.metrics._likelihoods import (
    described,
    described_by,
    guiding_words,
    image_terms,
    main_image,
    proposal_given,
    text_components,
    text_estimate,
    under_prior,
    with_normaliser,
)

if TYPE_CHECKING:
    from mmgen.metrics._evaluation import Evaluation

__all__ = ["LogLikelihood"]


class LogLikelihood(Metric):
    r"""log p(x), p(y), p(x,y), p(x|y) and p(y|x), nats per example, unweighted whatever training weighed.

    Under a density that ignores the text (the prior, a learned q(z)) all five, with the model's own or the learned
    density as p(z) (CK Table 2); p(x|y) = p(x,y) / p(y) and p(y|x) = p(x,y) / p(x) point by point. Under a posterior of
    the text q(z|y), log p(x|y) (CK Eq. 6, Table 1):

    .. math:: \log p(x|y) \ge E_{q(z|x)}\left[\log \frac{p(x|z) \, q(z|y)}{q(z|x)}\right]

    Protocol ``importance`` is the log of the mean of K weights (a better bound, tight as K grows), ``bound`` the mean
    of log weights. Standard errors are over points; effective sample size, variance of log weights and the noise and
    bias of the estimate itself are in ``extra``. All posteriors share the draws of one pass through the decoders.

    A guided posterior is known up to log Z(y), which is estimated once for a description; its error is in ``stderr``.

    A density fitted to attributes, of a model whose y is its text, gives log p(x|attributes) instead. A conditional
    model's log p(x|y) is its own, from p(x|z,y). Points without an image are left out, and those without
    a description of what needs one; what else is missing is integrated out. Of a model of more modalities than x and y
    there is also log p(x1..xM), of all that it generates.
    """

    unit = "nats"
    better = "higher"
    per_posterior = False
    of_points = True

    def check(self, evaluation: "Evaluation") -> None:
        proposal_given(evaluation.loaded, evaluation.settings.proposal)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, settings = evaluation.loaded, evaluation.settings
        points = _with_images(evaluation)
        posteriors = evaluation.posteriors
        # Images take nearly all the time where there are any decoders worth the name.
        work = image_terms(
            loaded, points, posteriors, settings.samples, settings.seed, settings.precision, settings.proposal
        )
        terms = yield from relay(work, 0.0, 0.9)
        scores: list[Score] = []
        for number, name in enumerate(posteriors):
            share = 0.1 / len(posteriors)
            start = 0.9 + number * share
            if evaluation.ignores_text(name) and not loaded.model.conditional_on:
                scores += yield from relay(_marginal(evaluation, points, name, terms), start, share)
            else:
                weights = terms["image"] + terms[name] - terms["proposal"]
                words = _read_by(evaluation, name)
                rows = _described(points, words)
                # A density fitted to attributes, of a model whose y is its text, knows less than y.
                quantity = "log p(x|y)" if described_by(loaded) in (None, words) else f"log p(x|{words})"
                if len(rows):
                    found = _both(evaluation, name, quantity, estimate(weights)[rows])
                    scores += with_normaliser(loaded, name, points[rows], found) if loaded.guidance else found
        return scores


def _with_images(evaluation: "Evaluation") -> Batch:
    """The data points that have an image."""
    points = evaluation.points
    present = points.present[main_image(evaluation.loaded)]
    if not present.any():
        raise UsageError(
            f"no data point of the {evaluation.settings.part} part has an image; choose another with --part"
        )
    return points if present.all() else points[present.nonzero().flatten()]


def _read_by(evaluation: "Evaluation", posterior: str) -> str | None:
    """The modality that a posterior of the text is given."""
    loaded = evaluation.loaded
    if loaded.guidance:
        return guiding_words(loaded, posterior, evaluation.points)
    if posterior == loaded.target:
        info = loaded.text if loaded.given == "text" else loaded.attributes
        return info.name if info is not None else None
    return described_by(loaded)


def _described(points: Batch, words: str | None) -> Tensor:
    """Positions of the points that are described by ``words``; all of them where that is no part of the points."""
    if words is None or words not in points.values:
        return torch.arange(points.size, device=points.device)
    return described(points, words).nonzero().flatten()


def _marginal(
    evaluation: "Evaluation", points: Batch, prior: str, terms: dict[str, Tensor]
) -> Generator[float, None, list[Score]]:
    """Everything under one density in place of p(z)."""
    loaded, settings = evaluation.loaded, evaluation.settings
    found = under_prior(terms, prior, len(loaded.model.modalities))
    scores = _both(evaluation, prior, "log p(x)", found["log p(x)"])
    rows = _described(points, described_by(loaded))
    if "log p(x,y)" in found and len(rows):
        work = text_estimate(loaded, points[rows], prior, settings.text_samples, settings.seed, settings.precision)
        text = yield from work
        image, joint = found["log p(x)"][rows], found["log p(x,y)"][rows]
        score = _score(evaluation, prior, "log p(y)", "importance", text.value, text)
        components = text_components(loaded, prior)
        score.extra["proposal"] = " and ".join(components if len(components) > 1 else [prior, "q(z|image)"])
        scores.append(score)
        bound = found["log p(y) through q(z|x)"][rows]
        scores.append(_score(evaluation, prior, "log p(y)", "bound", bound.bound, bound))
        scores += _both(evaluation, prior, "log p(x,y)", joint)
        scores.append(_score(evaluation, prior, "log p(x|y)", "importance", joint.value - text.value, joint, text))
        scores.append(_score(evaluation, prior, "log p(y|x)", "importance", joint.value - image.value, joint, image))
    for quantity in found:
        if quantity.startswith("log p(x1.."):
            scores += _both(evaluation, prior, quantity, found[quantity])
    return scores


def _both(evaluation: "Evaluation", posterior: str, quantity: str, found: Estimate) -> list[Score]:
    return [
        _score(evaluation, posterior, quantity, "importance", found.value, found),
        _score(evaluation, posterior, quantity, "bound", found.bound, found),
    ]


def _score(
    evaluation: "Evaluation",
    posterior: str,
    quantity: str,
    protocol: str,
    values: Tensor,
    found: Estimate,
    denominator: Estimate | None = None,
) -> Score:
    value, stderr = summarise(values)
    extra = diagnostics(found)
    if protocol == "bound":
        # One sample is what the bound is defined with; averaging over K only makes its estimate quieter.
        del extra["estimated_bias"], extra["monte_carlo_stderr"]
    if denominator is not None:
        extra["denominator"] = diagnostics(denominator)
    return Score(
        metric="log-likelihood",
        quantity=quantity,
        value=value,
        stderr=stderr,
        unit="nats",
        better="higher",
        n=len(values),
        posterior=posterior,
        protocol=protocol,
        ids=evaluation.ids,
        extra={
            **extra,
            "proposal": f"q(z|{', '.join(proposal_given(evaluation.loaded, evaluation.settings.proposal))})",
            # Of each point, for paired comparisons: points differ by far more than what they are compared for.
            "values": [round(value, 4) for value in values.tolist()],
        },
    )

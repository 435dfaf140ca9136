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

from mmgen.errors import UsageError
from mmgen.metrics._base import Metric, Score, relay
from mmgen.metrics._importance import Estimate, diagnostics, estimate, summarise
from mmgen.metrics._likelihoods import image_terms, text_estimate, under_prior

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
    """

    unit = "nats"
    better = "higher"
    per_posterior = False

    def check(self, evaluation: "Evaluation") -> None:
        if evaluation.loaded.image is None:
            raise UsageError("log-likelihoods are of a model of images; this one has none")

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, settings, points = evaluation.loaded, evaluation.settings, evaluation.points
        posteriors = evaluation.posteriors
        # Images take nearly all the time where there are any decoders worth the name.
        terms = yield from relay(
            image_terms(loaded, points, posteriors, settings.samples, settings.seed, settings.precision), 0.0, 0.9
        )
        scores: list[Score] = []
        for number, name in enumerate(posteriors):
            share = 0.1 / len(posteriors)
            start = 0.9 + number * share
            if evaluation.ignores_text(name) and not loaded.model.conditional_on:
                scores += yield from relay(_marginal(evaluation, name, terms), start, share)
            else:
                weights = terms["image"] + terms[name] - terms["proposal"]
                scores += _both(evaluation, name, "log p(x|y)", estimate(weights))
        return scores


def _marginal(evaluation: "Evaluation", prior: str, terms: dict[str, Tensor]) -> Generator[float, None, list[Score]]:
    """Everything under one density in place of p(z)."""
    settings = evaluation.settings
    found = under_prior(terms, prior)
    scores = _both(evaluation, prior, "log p(x)", found["log p(x)"])
    if "log p(x,y)" not in found:
        return scores
    work = text_estimate(
        evaluation.loaded, evaluation.points, prior, settings.text_samples, settings.seed, settings.precision
    )
    text = yield from work
    image, joint = found["log p(x)"], found["log p(x,y)"]
    scores.append(_score(evaluation, prior, "log p(y)", "importance", text.value, text))
    bound = found["log p(y) through q(z|x)"]
    scores.append(_score(evaluation, prior, "log p(y)", "bound", bound.bound, bound))
    scores += _both(evaluation, prior, "log p(x,y)", joint)
    scores.append(_score(evaluation, prior, "log p(x|y)", "importance", joint.value - text.value, joint, text))
    scores.append(_score(evaluation, prior, "log p(y|x)", "importance", joint.value - image.value, joint, image))
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
            "split": evaluation.split,
            "part": evaluation.settings.part,
            "seed": evaluation.settings.seed,
            # Of each point, for paired comparisons: points differ by far more than what they are compared for.
            "values": [round(value, 4) for value in values.tolist()],
        },
    )

"""Log-likelihoods of images and descriptions, importance-weighted and as one-sample bounds.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Eq. 6 and Tables 1 and 2
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.evaluation.errors import diagnostics, shared_error, standard_error
from mmgen.evaluation.importance import Estimate, Noise, Terms
from mmgen.evaluation.likelihoods import (
    Quantities,
    described,
    guiding_words,
    image_terms,
    text_estimate,
    text_through,
    under_prior,
    with_normaliser,
)
from mmgen.evaluation.proposals import MIXTURE, described_by, main_image, proposal_given
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import Metric, Score, relay
from mmgen.results.score import Points

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["LogLikelihood"]

_CHECKED = 64
"""Points at which an estimate through one proposal is compared with that through all of them."""


class LogLikelihood(Metric):
    r"""log p(x), p(y), p(x,y), p(x|y) and p(y|x), nats per example, unweighted whatever training weighed.

    Under a density that ignores the text (the prior, a learned q(z)) all five, with the model's own or the learned
    density as p(z) (CK Table 2); p(x|y) = p(x,y) / p(y) and p(y|x) = p(x,y) / p(x) point by point. Under a posterior of
    the text q(z|y), log p(x|y) (CK Eq. 6, Table 1):

    .. math:: \log p(x|y) \ge E_{q(z|x)}\left[\log \frac{p(x|z) \, q(z|y)}{q(z|x)}\right]

    Protocol ``importance`` is the log of the mean of K weights (a better bound, tight as K grows), ``bound`` the mean
    of log weights through q(z|x), for log p(y) through q(z|y). ``importance-text`` is log p(y) with K draws of q(z|y)
    alone (CK Table 2 has K = 10). All posteriors share the draws of one pass through the decoders.

    Standard errors are over points, and of the draws where points share them. ``details`` say what the draws know of
    their own error: its noise (``monte_carlo_stderr``), and ``too_low_by_at_least``, a lower bound of the bias, since
    no draw tells of a mode that none has found (``too_high_by_at_least`` is that of what is divided by). So z is drawn
    from all proposals evenly unless one is chosen, and where one of them alone says something else than all together,
    beyond their errors, ``warnings`` says so.

    A guided posterior is known up to log Z(y), which is estimated once for a description; its error is in ``stderr``.

    A density fitted to attributes, of a model whose y is its text, gives log p(x|attributes) instead. A conditional
    model's log p(x|y) is its own, from p(x|z,y). Points without an image are left out, and those without
    a description of what needs one; what else is missing is integrated out. Of a model of more modalities than x and y
    there is also log p(x1..xM), of all that it generates.
    """

    unit = "nats"
    better = "higher"
    per_posterior = False
    scores_points = True
    values_of_points = True
    reads = ("samples", "proposal", "text_samples", "text_proposal", "posteriors", *POINTS)
    protocols: ClassVar = {
        "importance": "The log of the mean of K importance weights: a bound that is tight as K grows.",
        "bound": "The mean of log weights: the one-sample bound.",
        "importance-text": "log p(y) with draws of q(z|y) alone.",
    }
    columns: ClassVar = {
        "bits per pixel": "bits_per_pixel",
        "proposal": "proposal",
        "pixels": "pixels",
        "draws of z": "samples",
        "effective": "effective_sample_size",
        "noise of the draws": "monte_carlo_stderr",
        "too low by at least": "too_low_by_at_least",
        "too high by at least": "too_high_by_at_least",
        "var of log w": "log_weight_variance",
    }

    def check(self, evaluation: "Evaluation") -> None:
        together = [name for name, each in evaluation.loaded.model.modalities.items() if not each.alone]
        if together:
            raise UsageError(
                f"log-likelihoods weigh draws of z example by example, but that of {together[0]} depends on the z of "
                "several; its bound is what training validates (mmgen show), and link-prediction says how good it is"
            )
        proposal_given(evaluation.loaded, evaluation.settings.proposal)
        evaluation.check_samples(evaluation.number_of_points)
        evaluation.check_images(evaluation.loaded.model.modalities)
        evaluation.check_text_proposal()

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded = evaluation.loaded
        points = _with_images(evaluation)
        drawn = yield from relay(_drawn(evaluation, points), 0.0, 0.9)
        scores: list[Score] = []
        for number, name in enumerate(evaluation.posteriors):
            share = 0.1 / len(evaluation.posteriors)
            start = 0.9 + number * share
            if evaluation.ignores_text(name) and not loaded.model.conditional_on:
                scores += yield from relay(_marginal(evaluation, points, name, drawn), start, share)
            else:
                words = _read_by(evaluation, name)
                rows = _described(points, words)
                # A density fitted to attributes, of a model whose y is its text, knows less than y.
                quantity = "log p(x|y)" if described_by(loaded) in (None, words) else f"log p(x|{words})"
                if len(rows):
                    found = drawn.found(_given_text(quantity, name))[quantity]
                    measured = _both(evaluation, name, quantity, found.at(rows))
                    scores += with_normaliser(loaded, name, points[rows], measured) if loaded.tilt else measured
        return scores


@dataclass(frozen=True)
class _Found:
    """An estimate [N] and, where it is through one proposal, what all of them say at some of its points.

    Attributes:
        result: The estimate.
        again: Positions of the points that were estimated again [C], and the estimates [C] of the mixture.
    """

    result: Estimate
    again: tuple[Tensor, Estimate] | None = None

    def at(self, rows: Tensor) -> "_Found":
        """The same of the points at ``rows``, increasing positions."""
        if self.again is None:
            return _Found(self.result[rows])
        positions, mixture = self.again
        kept = torch.isin(positions, rows).nonzero().flatten()
        again = (torch.searchsorted(rows, positions[kept]), mixture[kept]) if len(kept) else None
        return _Found(self.result[rows], again)

    @property
    def drawn_from(self) -> str:
        """What its draws are from, as tables say it."""
        return " + ".join(self.result.names)

    def known(self) -> dict[str, Any]:
        """What is to be told of it."""
        if self.again is None:
            return diagnostics(self.result)
        positions, mixture = self.again
        return diagnostics(self.result, (self.drawn_from, self.result[positions], mixture))


@dataclass(frozen=True)
class _Drawn:
    """Log densities at the draws, and, where these are from one proposal, at draws from all of them at a few points."""

    terms: Terms
    again: tuple[Tensor, Terms] | None = None

    def found(self, quantities: Callable[[Terms], Quantities]) -> dict[str, _Found]:
        """Quantities of the terms, by name."""
        found = quantities(self.terms)
        if self.again is None:
            return {name: _Found(result) for name, result in found.items()}
        rows, terms = self.again
        mixed = quantities(terms)
        return {name: _Found(result, (rows, mixed[name])) for name, result in found.items()}


def _given_text(quantity: str, posterior: str) -> Callable[[Terms], Quantities]:
    """log p(x|y) with a posterior of the text in place of p(z|y)."""
    return lambda terms: {quantity: terms.weigh(terms["image"] + terms[posterior])}


def _drawn(evaluation: "Evaluation", points: Batch) -> Generator[float, None, _Drawn]:
    """The one pass through the decoders, which takes nearly all the time; and a check where it is of one proposal."""
    settings, posteriors = evaluation.settings, evaluation.posteriors
    priors = [name for name in posteriors if evaluation.ignores_text(name)] or ["prior"]

    def drawn(part: Batch, wanted: str) -> Generator[float, None, Terms]:
        return image_terms(
            evaluation.loaded, part, posteriors, settings.samples, settings.seed, settings.precision, wanted, priors
        )

    if settings.proposal == MIXTURE:
        return _Drawn((yield from drawn(points, MIXTURE)))
    terms = yield from relay(drawn(points, settings.proposal), 0.0, 0.9)
    spaced = torch.linspace(0, points.size - 1, min(_CHECKED, points.size), device=points.device).round().long()
    return _Drawn(terms, (spaced, (yield from relay(drawn(points[spaced], MIXTURE), 0.9, 0.1))))


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
    if loaded.tilt:
        return guiding_words(loaded, posterior, evaluation.points)
    source = loaded.posteriors[posterior]
    if source.is_fitted and source.is_unconditional:
        return loaded.attributes.name if loaded.attributes is not None else None
    return source.reads[0] if source.is_fitted else described_by(loaded)


def _described(points: Batch, words: str | None) -> Tensor:
    """Positions of the points that are described by ``words``; all of them where that is no part of the points."""
    if words is None or words not in points.values:
        return torch.arange(points.size, device=points.device)
    return described(points, words).nonzero().flatten()


def _marginal(
    evaluation: "Evaluation", points: Batch, prior: str, drawn: _Drawn
) -> Generator[float, None, list[Score]]:
    """Everything under one density in place of p(z)."""
    loaded = evaluation.loaded
    found = drawn.found(lambda terms: under_prior(terms, prior, len(loaded.model.modalities)))
    scores = _both(evaluation, prior, "log p(x)", found["log p(x)"])
    rows = _described(points, described_by(loaded))
    if "log p(x,y)" in found and len(rows):
        text = yield from relay(_text(evaluation, points[rows], prior, scores), 0.0, 1.0)
        image, joint = found["log p(x)"].at(rows), found["log p(x,y)"].at(rows)
        scores += _both(evaluation, prior, "log p(x,y)", joint)
        scores.append(_ratio(evaluation, prior, "log p(x|y)", joint, text))
        scores.append(_ratio(evaluation, prior, "log p(y|x)", joint, image))
    for quantity in found:
        if quantity.startswith("log p(x1.."):
            scores += _both(evaluation, prior, quantity, found[quantity])
    return scores


def _text(evaluation: "Evaluation", points: Batch, prior: str, scores: list[Score]) -> Generator[float, None, _Found]:
    """log p(y), whose scores are added to ``scores``."""
    loaded, settings, more = evaluation.loaded, evaluation.settings, evaluation.text_proposal
    fixed = (settings.seed, settings.precision, more)
    text = yield from relay(text_estimate(loaded, points, prior, settings.text_samples, *fixed), 0.0, 0.9)
    through = yield from relay(text_through(loaded, points, prior, settings.samples, *fixed), 0.9, 0.1)
    found = _Found(text)
    scores.append(_score(evaluation, prior, "log p(y)", "importance", found))
    if through is not None:
        alone = _Found(through)
        scores.append(_score(evaluation, prior, "log p(y)", "importance-text", alone))
        scores.append(_score(evaluation, prior, "log p(y)", "bound", alone))
    return found


def _both(evaluation: "Evaluation", posterior: str, quantity: str, found: _Found) -> list[Score]:
    return [
        _score(evaluation, posterior, quantity, "importance", found),
        _score(evaluation, posterior, quantity, "bound", found),
    ]


def _ratio(evaluation: "Evaluation", posterior: str, quantity: str, joint: _Found, denominator: _Found) -> Score:
    """log of one density over another, point by point."""
    below = denominator.known()
    details = {**joint.known(), "denominator": below}
    details["monte_carlo_stderr"] = math.hypot(details["monte_carlo_stderr"], below["monte_carlo_stderr"])
    details["too_high_by_at_least"] = below["too_low_by_at_least"]
    warnings = [*details.pop("warnings", []), *(f"below the line, {text}" for text in below.pop("warnings", []))]
    details["warnings"] = warnings
    values = joint.result.value - denominator.result.value
    noises = (joint.result.noise, denominator.result.noise)
    return _of(evaluation, posterior, quantity, "importance", values, noises, joint.drawn_from, details)


def _score(evaluation: "Evaluation", posterior: str, quantity: str, protocol: str, found: _Found) -> Score:
    result, details = found.result, found.known()
    if protocol != "bound":
        return _of(evaluation, posterior, quantity, protocol, result.value, (result.noise,), found.drawn_from, details)
    # One sample is what the bound is defined with; averaging over K only makes its estimate quieter. It is through the
    # first proposal, of a mixture too.
    for key in ("too_low_by_at_least", "monte_carlo_stderr", "alone", "checked", "warnings"):
        details.pop(key, None)
    return _of(evaluation, posterior, quantity, protocol, result.bound, (result.bound_noise,), result.names[0], details)


def _of(
    evaluation: "Evaluation",
    posterior: str,
    quantity: str,
    protocol: str,
    values: Tensor,
    noises: tuple[Noise, ...],
    drawn_from: str,
    details: dict[str, Any],
) -> Score:
    stderr = standard_error(values, *noises)
    return Score(
        metric="log-likelihood",
        quantity=quantity,
        value=float(values.mean()),
        stderr=stderr,
        unit="nats",
        better="higher",
        n=len(values),
        posterior=posterior,
        protocol=protocol,
        ids=evaluation.ids | _drawn_with(evaluation, quantity),
        points=Points.of(values.tolist(), shared_stderr=shared_error(len(values), *noises)),
        warnings=tuple(details.pop("warnings", ())),
        details={
            **details,
            **_in_bits(evaluation, quantity, float(values.mean()), stderr),
            "proposal": drawn_from,
        },
    )


def _drawn_with(evaluation: "Evaluation", quantity: str) -> dict[str, str]:
    """Content id of another file that draws of log p(y) came from, for the quantities that it is part of."""
    more = evaluation.text_proposal
    return {"text-proposal": more.header.content_id} if more and quantity in ("log p(y)", "log p(x|y)") else {}


def _in_bits(evaluation: "Evaluation", quantity: str, value: float, stderr: float | None) -> dict[str, float]:
    """The same in bits a pixel, where x is told so."""
    if not quantity.startswith(("log p(x)", "log p(x|")):
        return {}
    described = evaluation.loaded.observed.get(main_image(evaluation.loaded))
    if described is None or described.nats_per_bit is None:
        return {}
    found = {"bits_per_pixel": value / described.nats_per_bit}
    return found if stderr is None else {**found, "bits_per_pixel_stderr": stderr / described.nats_per_bit}

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
from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.importance import Estimate, Noise, Terms
from mmgen.evaluation.likelihoods import (
    Quantities,
    add_normaliser_error,
    compute_image_terms,
    estimate_text,
    estimate_text_by_posterior,
    find_guiding_modality,
    has_description,
    quantities_under_prior,
)
from mmgen.evaluation.needs import explain_slow_densities, importance_samples, text_samples
from mmgen.evaluation.proposals import (
    MIXTURE,
    description_modality,
    diagnostics,
    main_modality,
    proposal_conditions,
    shared_error,
    standard_error,
)
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import ExampleValues, Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["LogLikelihood"]


_CHECKED = 64
"""Points at which the estimate through one proposal is compared with that through all."""


@dataclass(frozen=True)
class _CheckedEstimate:
    """Importance-sampling estimate at N points; one by a single proposal has a second at a few points, to check it.

    Attributes:
        result: The estimate [N].
        check: Positions of some points [C], and the second estimate of them [C].
    """

    result: Estimate
    check: tuple[Tensor, Estimate] | None = None

    def at_points(self, rows: Tensor) -> "_CheckedEstimate":
        """Return the estimate at the data points with these row numbers, in increasing order."""
        if self.check is None:
            return _CheckedEstimate(self.result[rows])
        positions, mixture = self.check
        kept = torch.isin(positions, rows).nonzero().flatten()
        check = (torch.searchsorted(rows, positions[kept]), mixture[kept]) if len(kept) else None
        return _CheckedEstimate(self.result[rows], check)

    @property
    def proposal(self) -> str:
        """Names of the proposal densities, joined by " + "."""
        return " + ".join(self.result.names)

    def diagnostics(self) -> dict[str, Any]:
        """Return diagnostics of the importance weights, such as effective sample sizes."""
        if self.check is None:
            return diagnostics(self.result)
        positions, mixture = self.check
        return diagnostics(self.result, (self.proposal, self.result[positions], mixture))


@dataclass(frozen=True)
class _DecodedTerms:
    """Log densities of draws of z from the proposal; for a single proposal also of draws from all, at a few points."""

    terms: Terms
    check: tuple[Tensor, Terms] | None = None

    def estimates(self, quantities: Callable[[Terms], Quantities]) -> dict[str, _CheckedEstimate]:
        """Return estimates of quantities by name, computed from the log densities."""
        results = quantities(self.terms)
        if self.check is None:
            return {name: _CheckedEstimate(result) for name, result in results.items()}
        rows, terms = self.check
        checks = quantities(terms)
        return {name: _CheckedEstimate(result, (rows, checks[name])) for name, result in results.items()}


def _jointly_modelled_examples(evaluation: "Evaluation") -> str:
    """Return why log p cannot be estimated example by example, as in a graph; "" if it can."""
    joint = [name for name, each in evaluation.loaded.model.modalities.items() if not each.is_independent]
    if not joint:
        return ""
    return (
        f"weights draws of z example by example, but the likelihood of {joint[0]} depends on the z of several "
        "examples; use --metric link-prediction, or the bound of training (mmgen show)"
    )


def _missing_proposal(evaluation: "Evaluation") -> str:
    """Return ""; errors are raised if the text proposal, memory for the draws or a modality is missing."""
    proposal_conditions(evaluation.loaded, evaluation.settings.proposal)
    needs.explain_missing_memory(evaluation, min(evaluation.settings.number, len(evaluation.rows())))
    needs.check_modalities(evaluation, evaluation.loaded.model.modalities)
    return ""


class LogLikelihood(Metric):
    r"""log p(x), p(y), p(x,y), p(x|y) and p(y|x) in nats per example, without the weights of training.

    A density that ignores the text (the prior, a learned q(z)) takes the place of p(z) and has all five (CK Table 2);
    p(x|y) = p(x,y) / p(y) and p(y|x) = p(x,y) / p(x) point by point. A posterior of the text q(z|y) has log p(x|y)
    (CK Eq. 6, Table 1):

    .. math:: \log p(x|y) \ge E_{q(z|x)}\left[\log \frac{p(x|z) \, q(z|y)}{q(z|x)}\right]

    Protocol ``importance`` is the log of the mean of K weights (a better bound, tight as K grows), ``bound`` the mean
    of log weights through q(z|x), for log p(y) through q(z|y). ``importance-text`` is log p(y) with K draws of q(z|y)
    alone (CK Table 2 has K = 10). All posteriors share the draws of one pass through the decoders.

    Standard errors are over points, and of the draws where points share them. ``details`` has the noise of the draws
    (``monte_carlo_stderr``) and ``too_low_by_at_least``, a lower bound of the bias, since draws may miss modes
    (``too_high_by_at_least`` is that of the denominator). By default z is drawn from all proposals evenly;
    where a chosen one disagrees with all together beyond their errors, ``warnings`` says so.

    A guided posterior is known up to log Z(y), which is estimated once for a description; its error is in ``stderr``.
    A rectified flow has log q(z|y) by its differential equation, with 10 samples by default; of many latents it is
    an estimate by random probes, other ones for each point, whose error is in ``stderr`` too (``density_stderr``).

    A density fitted to attributes, for a model whose y is its text, has log p(x|attributes). A conditional model has
    log p(x|y) from p(x|z,y). Points without an image are left out, and those without a description where one is
    needed; other missing modalities are integrated out. A model of more modalities than x and y also has
    log p(x1..xM) of all that it generates.
    """

    unit = "nats"
    better = "higher"
    posteriors = "together"
    points = "averaged"
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

    needs = (
        _jointly_modelled_examples,
        _missing_proposal,
        needs.explain_wrong_text_proposal,
        explain_slow_densities,
    )

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded = evaluation.loaded
        points = _select_points_with_image(evaluation)
        decoded = yield from map_fractions(_evaluate_densities(evaluation, points), 0.0, 0.9)
        scores: list[Score] = []
        for number, name in enumerate(evaluation.posteriors):
            share = 0.1 / len(evaluation.posteriors)
            start = 0.9 + number * share
            if evaluation.ignores_text(name) and not loaded.model.conditional_on:
                scores += yield from map_fractions(
                    self._score_under_prior(evaluation, points, name, decoded), start, share
                )
            else:
                words = _conditioning_modality(evaluation, name)
                rows = _described_positions(points, words)
                # A density fitted to attributes, of a model whose y is its text, knows less than y.
                quantity = "log p(x|y)" if description_modality(loaded) in (None, words) else f"log p(x|{words})"
                if len(rows):
                    estimate = decoded.estimates(_conditional_quantity(quantity, name))[quantity]
                    new_scores = self._score_estimate_and_bound(evaluation, name, quantity, estimate.at_points(rows))
                    scores += (
                        add_normaliser_error(loaded, name, points[rows], new_scores) if loaded.guidance else new_scores
                    )
        return scores

    def _score_under_prior(
        self, evaluation: "Evaluation", points: Batch, prior: str, decoded: _DecodedTerms
    ) -> Generator[float, None, list[Score]]:
        """Score all quantities with one density in place of p(z): the prior, or one learned afterwards."""
        loaded = evaluation.loaded
        estimates = decoded.estimates(lambda terms: quantities_under_prior(terms, prior, len(loaded.model.modalities)))
        scores = self._score_estimate_and_bound(evaluation, prior, "log p(x)", estimates["log p(x)"])
        rows = _described_positions(points, description_modality(loaded))
        if "log p(x,y)" in estimates and len(rows):
            text = yield from map_fractions(self._score_text(evaluation, points[rows], prior, scores), 0.0, 1.0)
            image, joint = estimates["log p(x)"].at_points(rows), estimates["log p(x,y)"].at_points(rows)
            scores += self._score_estimate_and_bound(evaluation, prior, "log p(x,y)", joint)
            scores.append(self._score_ratio(evaluation, prior, "log p(x|y)", joint, text))
            scores.append(self._score_ratio(evaluation, prior, "log p(y|x)", joint, image))
        for quantity in estimates:
            if quantity.startswith("log p(x1.."):
                scores += self._score_estimate_and_bound(evaluation, prior, quantity, estimates[quantity])
        return scores

    def _score_text(
        self, evaluation: "Evaluation", points: Batch, prior: str, scores: list[Score]
    ) -> Generator[float, None, _CheckedEstimate]:
        """Return an estimate of log p(y), and append its scores to ``scores``."""
        loaded, settings, text_proposal = evaluation.loaded, evaluation.settings, evaluation.text_proposal
        fixed = (settings.seed, settings.precision, text_proposal)
        counts = text_samples(evaluation), importance_samples(evaluation)
        text = yield from map_fractions(estimate_text(loaded, points, prior, counts[0], *fixed), 0.0, 0.9)
        through = yield from map_fractions(
            estimate_text_by_posterior(loaded, points, prior, counts[1], *fixed), 0.9, 0.1
        )
        estimate = _CheckedEstimate(text)
        scores.append(self._score(evaluation, prior, "log p(y)", "importance", estimate))
        if through is not None:
            alone = _CheckedEstimate(through)
            scores.append(self._score(evaluation, prior, "log p(y)", "importance-text", alone))
            scores.append(self._score(evaluation, prior, "log p(y)", "bound", alone))
        return estimate

    def _score_estimate_and_bound(
        self, evaluation: "Evaluation", posterior: str, quantity: str, estimate: _CheckedEstimate
    ) -> list[Score]:
        return [
            self._score(evaluation, posterior, quantity, "importance", estimate),
            self._score(evaluation, posterior, quantity, "bound", estimate),
        ]

    def _score_ratio(
        self,
        evaluation: "Evaluation",
        posterior: str,
        quantity: str,
        joint: _CheckedEstimate,
        denominator: _CheckedEstimate,
    ) -> Score:
        """Score the mean over points of the log ratio of two estimated densities."""
        below = denominator.diagnostics()
        details = {**joint.diagnostics(), "denominator": below}
        details["monte_carlo_stderr"] = math.hypot(details["monte_carlo_stderr"], below["monte_carlo_stderr"])
        details["too_high_by_at_least"] = below["too_low_by_at_least"]
        warnings = [*details.pop("warnings", []), *(f"below the line, {text}" for text in below.pop("warnings", []))]
        details["warnings"] = warnings
        values = joint.result.value - denominator.result.value
        noises = (joint.result.noise, denominator.result.noise)
        return self._make_score(evaluation, posterior, quantity, "importance", values, noises, joint.proposal, details)

    def _score(
        self, evaluation: "Evaluation", posterior: str, quantity: str, protocol: str, estimate: _CheckedEstimate
    ) -> Score:
        result, details = estimate.result, estimate.diagnostics()
        if protocol != "bound":
            return self._make_score(
                evaluation, posterior, quantity, protocol, result.value, (result.noise,), estimate.proposal, details
            )
        # The bound is defined with one sample; averaging over K only makes its estimate quieter. It is through the
        # first proposal, of a mixture too.
        for key in ("too_low_by_at_least", "monte_carlo_stderr", "alone", "checked", "warnings"):
            details.pop(key, None)
        return self._make_score(
            evaluation, posterior, quantity, protocol, result.bound, (result.noise_of_bound,), result.names[0], details
        )

    def _make_score(
        self,
        evaluation: "Evaluation",
        posterior: str,
        quantity: str,
        protocol: str,
        values: Tensor,
        noises: tuple[Noise, ...],
        proposal: str,
        details: dict[str, Any],
    ) -> Score:
        stderr = standard_error(values, *noises)
        return self.score(
            evaluation,
            float(values.mean()),
            stderr,
            len(values),
            quantity=quantity,
            posterior=posterior,
            protocol=protocol,
            ids=_proposal_ids(evaluation, quantity),
            points=ExampleValues.from_values(values.tolist(), shared_stderr=shared_error(len(values), *noises)),
            warnings=tuple(details.pop("warnings", ())),
            details={
                **details,
                **_bits_per_pixel(evaluation, quantity, float(values.mean()), stderr),
                "proposal": proposal,
            },
        )


def _conditional_quantity(quantity: str, posterior: str) -> Callable[[Terms], Quantities]:
    """Return a function that computes log p(x|y) from log densities, with q(z|y) of a posterior for p(z|y)."""
    return lambda terms: {quantity: terms.weigh(terms["image"] + terms[posterior], terms.errors.get(posterior))}


def _evaluate_densities(evaluation: "Evaluation", points: Batch) -> Generator[float, None, _DecodedTerms]:
    """Return log densities at draws of z for every point; a single proposal is checked at a few points."""
    settings, posteriors = evaluation.settings, evaluation.posteriors
    priors = [name for name in posteriors if evaluation.ignores_text(name)] or ["prior"]
    samples = importance_samples(evaluation)

    def evaluate_terms(batch: Batch, proposal: str) -> Generator[float, None, Terms]:
        return compute_image_terms(
            evaluation.loaded, batch, posteriors, samples, settings.seed, settings.precision, proposal, priors
        )

    if settings.proposal == MIXTURE:
        return _DecodedTerms((yield from evaluate_terms(points, MIXTURE)))
    terms = yield from map_fractions(evaluate_terms(points, settings.proposal), 0.0, 0.9)
    spaced = torch.linspace(0, points.size - 1, min(_CHECKED, points.size), device=points.device).round().long()
    return _DecodedTerms(terms, (spaced, (yield from map_fractions(evaluate_terms(points[spaced], MIXTURE), 0.9, 0.1))))


def _select_points_with_image(evaluation: "Evaluation") -> Batch:
    """Return the evaluated data points that have an image."""
    points = evaluation.data_points
    present = points.present[main_modality(evaluation.loaded)]
    if not present.any():
        raise UsageError(
            f"no data point of the {evaluation.settings.part} part has an image; choose another with --part"
        )
    return points if present.all() else points[present.nonzero().flatten()]


def _conditioning_modality(evaluation: "Evaluation", posterior: str) -> str | None:
    """Return the name of the modality that a posterior conditions on."""
    loaded = evaluation.loaded
    if loaded.guidance:
        return find_guiding_modality(loaded, posterior, evaluation.data_points)
    source = loaded.posteriors[posterior]
    if source.is_fitted and source.is_unconditional:
        return loaded.attributes.name if loaded.attributes is not None else None
    return source.reads[0] if source.is_fitted else description_modality(loaded)


def _described_positions(points: Batch, name: str | None) -> Tensor:
    """Return positions of the points that have a description in the named modality; all if they lack this modality."""
    if name is None or name not in points.values:
        return torch.arange(points.size, device=points.device)
    return has_description(points, name).nonzero().flatten()


def _proposal_ids(evaluation: "Evaluation", quantity: str) -> dict[str, str]:
    """Return the content id of the fitted text proposal, for the quantities that use one."""
    more = evaluation.text_proposal
    return {"text-proposal": more.header.content_id} if more and quantity in ("log p(y)", "log p(x|y)") else {}


def _bits_per_pixel(evaluation: "Evaluation", quantity: str, value: float, stderr: float | None) -> dict[str, float]:
    """Return a log-likelihood and its error in bits per pixel; {} for quantities without such a unit."""
    if not quantity.startswith(("log p(x)", "log p(x|")):
        return {}
    described = evaluation.loaded.observed.get(main_modality(evaluation.loaded))
    if described is None or described.nats_per_bit is None:
        return {}
    found = {"bits_per_pixel": value / described.nats_per_bit}
    return found if stderr is None else {**found, "bits_per_pixel_stderr": stderr / described.nats_per_bit}

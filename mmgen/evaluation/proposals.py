"""What importance samples of z are drawn from, and how wrong an importance-weighted estimate may be.

x is the main image, y its description, the text that the model generates or else its attributes.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.evaluation.importance import Component, Estimate, Noise, variance_of_mean
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior, posterior_of

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel


MIXTURE = "mixture"
"""The proposal that is all of them evenly."""


def main_modality(loaded: "TrainedModel") -> str:
    """Return the name of the modality x of log p(x): the main image, else the first modality without words.

    Raises:
        UsageError: It generates words alone.
    """
    for name in loaded.observed:
        if name in loaded.model.modalities:
            return name
    raise UsageError(
        "log-likelihood got a model that generates words alone, expected one of images or other data; choose another "
        "metric or model"
    )


def description_modality(loaded: "TrainedModel") -> str | None:
    """Return the name of the modality y of log p(y): text if the model generates it, else attributes, else None."""
    known = (part for part in (loaded.text, loaded.attributes) if part is not None)
    return next((part.name for part in known if part.name in loaded.model.modalities), None)


def _available_conditions(loaded: "TrainedModel") -> dict[str, list[tuple[str, ...]]]:
    """Return, for each value of --proposal, the sets of modalities that its posterior may use."""
    model, image, words = loaded.model, main_modality(loaded), description_modality(loaded)
    if model.conditional_on:
        # q(z | x) would belong to another p(z, x) for each description.
        return {"auto": [loaded.encoder_inputs], "joint": [loaded.encoder_inputs]}
    description = [(words,)] if words is not None else []
    return {
        "auto": [(image,), loaded.encoder_inputs],
        "image": [(image,)],
        "joint": [tuple(model.modalities), *((image, *given) for given in description)],
        "description": [*description],
    }


def proposal_conditions(loaded: "TrainedModel", proposal: str = MIXTURE) -> tuple[str, ...]:
    """Return the modalities that the posterior of a proposal is conditioned on.

    Args:
        loaded: The model.
        proposal: "image", "joint" for all modalities, or only image and description where it has no such posterior,
            "description", or "auto": the image, or what decoders were trained with where there is no q(z | x); or
            "mixture", whose first component is that of "auto".

    Raises:
        UsageError: The model has no such posterior.
    """
    available = _available_conditions(loaded)
    for conditions in available.get("auto" if proposal == MIXTURE else proposal, []):
        if loaded.model.has_posterior(conditions):
            return conditions
    able = [
        name for name, sets in available.items() if any(loaded.model.has_posterior(conditions) for conditions in sets)
    ]
    raise UsageError(
        f"--proposal got {proposal}, but this model has no posterior for it, expected one of "
        f"{', '.join([*able, MIXTURE])}"
    )


def infer_proposal(
    loaded: "TrainedModel", points: Batch, precision: str = "auto", proposal: str = "auto", seed: int = 0
) -> tuple[DiagonalGaussian | LayeredPosterior, tuple[str, ...]]:
    """Infer the posterior of z to draw importance samples from; return it with the modalities that it uses.

    Args:
        loaded: The model.
        points: The N points.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        proposal: As :func:`proposal_conditions` takes it.
        seed: Seed of means of layers, which are given draws of those below.

    Raises:
        UsageError: The model has no such posterior.
    """
    conditions = proposal_conditions(loaded, proposal)
    return posterior_of(loaded.model, points, conditions, precision, seed), conditions


def _proposal_name(conditions: tuple[str, ...]) -> str:
    return f"q(z|{', '.join(conditions)})"


def _mixture_conditions(loaded: "TrainedModel", points: Batch) -> list[tuple[str, ...]]:
    """Return the sets of modalities that the mixture's posteriors use: image, image and words."""
    first = proposal_conditions(loaded)
    wider = [
        conditions for conditions in _available_conditions(loaded)["joint"] if loaded.model.has_posterior(conditions)
    ]
    answerable = [
        conditions
        for conditions in wider
        if all(name in points.values and points.present[name].any() for name in conditions)
    ]
    return list(dict.fromkeys([first, *answerable[:1]]))


def make_components(
    loaded: "TrainedModel", points: Batch, precision: str, proposal: str, priors: Sequence[str] = ("prior",)
) -> list[Component]:
    """Make the densities from which importance samples for ``points`` are drawn.

    The mixture is of q(z | x), of q(z | x, y) where there is one, and of each of ``priors``, the densities that ignore
    the text and that are asked about: with these no weight exceeds M times the likelihood, whatever the posteriors miss
    (the balance heuristic of Veach and Guibas, 1995). One set of draws serves log p(x), log p(x, y) and every bound on
    log p(x | y), as in WG Section 5.
    """
    conditions = _mixture_conditions(loaded, points) if proposal == MIXTURE else [proposal_conditions(loaded, proposal)]
    components = [_posterior_component(loaded, points, one, precision) for one in conditions]
    return components + ([prior_component(loaded, prior) for prior in priors] if proposal == MIXTURE else [])


def _posterior_component(
    loaded: "TrainedModel", points: Batch, conditions: tuple[str, ...], precision: str
) -> Component:
    """Make a component from the model's posterior given the modalities ``conditions``."""
    return Component.from_posterior(
        _proposal_name(conditions), posterior_of(loaded.model, points, conditions, precision)
    )


def prior_component(loaded: "TrainedModel", prior: str) -> Component:
    """Make a component from p(z), or from a fitted q(z) that replaces it.

    Guided it would be a density of the words, drawn from a pool that all points share, and not what it is called.
    """
    density = loaded.posteriors.unguided(prior)
    return Component.from_density(density.formula, density.draw, density.log_density, informed=False)


_SIGMAS = 3.0
"""Two estimates disagree that differ by more than so many standard errors, and by more than what they are known to be
too low by."""
_FEW_DRAWS = 0.1
"""Relative variance of a mean weight (about one over the effective sample size) from which the bias, of which half of
it is only the leading term, can be much larger than that."""


def mean_and_error(values: Tensor) -> tuple[float, float | None]:
    """Return the mean of values [N] and its standard error, None for a single value."""
    count = len(values)
    return float(values.mean()), float(values.std() / math.sqrt(count)) if count > 1 else None


def standard_error(values: Tensor, *noises: Noise) -> float | None:
    """Return the standard error of the mean of ``values`` [N], each of which is an estimate with noise.

    Both in quadrature. Noise that points do not share is part of the spread of their values already, and what they
    share is not: so the former is taken out of the spread, and all of it added. For N points of N estimates that is
    s / sqrt(N); for N points of a few estimates it is hardly less than the noise of those.
    """
    count = len(values)
    if count < 2:
        return None
    between, of_estimates = float(values.var()) / count, 0.0
    for variances, source in noises:
        between -= _estimate_noise(variances, source)
        of_estimates += variance_of_mean(variances, source)
    return math.hypot(math.sqrt(max(between, 0.0)), math.sqrt(of_estimates))


def shared_error(count: int, *noises: Noise) -> float:
    """Return the standard error of the mean that comes from noise shared by several of its values.

    The difference of two scores, point by point, has it from both: values of one description move together.
    """
    if count < 2:
        return 0.0
    return math.sqrt(max(0.0, sum(variance_of_mean(*noise) - _estimate_noise(*noise) for noise in noises)))


def _estimate_noise(variances: Tensor, source: Tensor | None) -> float:
    """Return how much the noise of estimates adds to the variance of N values, divided by N."""
    count = len(variances)
    return (float(variances.sum()) - count * variance_of_mean(variances, source)) / (count * (count - 1))


def disagreement(estimate: Estimate, reference: Estimate) -> float | None:
    """Return the mean of ``reference`` minus ``estimate`` in nats; None if it lies within their errors."""
    difference = float((reference.value - estimate.value).mean())
    noise = math.hypot(estimate.monte_carlo_stderr, reference.monte_carlo_stderr)
    if abs(difference) <= _SIGMAS * noise + estimate.bias_bound + reference.bias_bound:
        return None
    return difference


def diagnostics(result: Estimate, checked: tuple[str, Estimate, Estimate] | None = None) -> dict[str, Any]:
    """Return diagnostics of an importance-sampling estimate, such as its effective sample size, as details of a score.

    Args:
        result: The estimate.
        checked: Where it is through one proposal: its name, and at some of the points what that proposal says and what
            all of them together say.
    """
    variance, error = mean_and_error(result.log_variance)
    details: dict[str, Any] = {
        "samples": result.samples,
        "effective_sample_size": float(result.ess.mean()),
        "smallest_effective_sample_size": float(result.ess.min()),
        "log_weight_variance": variance,
        "log_weight_variance_stderr": error,
        "monte_carlo_stderr": result.monte_carlo_stderr,
        "too_low_by_at_least": result.bias_bound,
    }
    if result.density_error is not None:
        # Examples have probes of their own, so the spread of the values, and with it their standard error, has it.
        details["density_stderr"] = float(result.density_error.square().sum().sqrt()) / len(result.density_error)
        details["density_stderr_of_a_point"] = float(result.density_error.mean())
    warnings = []
    if result.alone:
        details["alone"] = {name: float(one.value.mean()) for name, one in result.alone.items()}
        for name, one in result.alone.items():
            difference = disagreement(one, result)
            if difference is not None:
                warnings.append(
                    _disagreement_warning(name, -difference, "all proposals together, which are what is printed")
                )
    if checked is not None:
        name, single, mixture = checked
        difference = disagreement(single, mixture)
        details["checked"] = {
            "points": len(single.value),
            "alone": float(single.value.mean()),
            "mixture": float(mixture.value.mean()),
        }
        if difference is not None:
            details["too_low_by_at_least"] = max(details["too_low_by_at_least"], difference)
            warnings.append(_disagreement_warning(name, -difference, "all proposals together (--proposal mixture)"))
    if float(result.relative_variance.mean()) > _FEW_DRAWS:
        warnings.append(
            f"few of the {result.samples:,} draws count (effective sample size {float(result.ess.mean()):.1f}): it "
            "may be too low by much more than is printed; take more"
        )
    if warnings:
        details["warnings"] = warnings
    return details


def _disagreement_warning(name: str, difference: float, reference: str) -> str:
    sign = "less" if difference < 0 else "more"
    return f"{name} alone says {abs(difference):.2f} nats {sign} than {reference}, beyond their errors"

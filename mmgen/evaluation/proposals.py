"""What importance samples of z are drawn from: posteriors of the point, and the densities that its z may come from.

x is the main image, y its description, the text that the model generates or else its attributes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.evaluation.importance import Component
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.posteriors import LayeredPosterior, posterior_of

if TYPE_CHECKING:
    from mmgen.generation import TrainedModel

__all__ = [
    "MIXTURE",
    "prior_component",
    "description_modality",
    "main_modality",
    "proposal_conditions",
    "infer_proposal",
    "make_components",
]

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

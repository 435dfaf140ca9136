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
    "density_of",
    "described_by",
    "main_image",
    "proposal_given",
    "proposal_of",
    "proposals",
]

MIXTURE = "mixture"
"""The proposal that is all of them evenly."""


def main_image(loaded: "TrainedModel") -> str:
    """x: the main image, or the first other modality that is no words where the model does not generate that.

    Raises:
        UsageError: It generates words alone.
    """
    for name in loaded.observed:
        if name in loaded.model.modalities:
            return name
    raise UsageError("log-likelihoods are of a model of images or other data than words; this one generates none")


def described_by(loaded: "TrainedModel") -> str | None:
    """The modality y of log p(y): the text that the model generates, else its attributes; None where it has neither."""
    known = (part for part in (loaded.text, loaded.attributes) if part is not None)
    return next((part.name for part in known if part.name in loaded.model.modalities), None)


def _offered(loaded: "TrainedModel") -> dict[str, list[tuple[str, ...]]]:
    """What a posterior may be given, by the name of the proposal: the first that the model answers is meant."""
    model, image, words = loaded.model, main_image(loaded), described_by(loaded)
    if model.conditional_on:
        # q(z | x) would belong to another p(z, x) for each description.
        return {"auto": [loaded.encoder_inputs], "joint": [loaded.encoder_inputs]}
    described = [(words,)] if words is not None else []
    return {
        "auto": [(image,), loaded.encoder_inputs],
        "image": [(image,)],
        "joint": [tuple(model.modalities), *((image, *inputs) for inputs in described)],
        "description": [*described],
    }


def proposal_given(loaded: "TrainedModel", wanted: str = MIXTURE) -> tuple[str, ...]:
    """What the posterior is given that importance samples are drawn from; of the mixture, the first one.

    Args:
        loaded: The model.
        wanted: "image", "joint" for all modalities, or only image and description where it has no such posterior,
            "description", or "auto": the image, or what decoders were trained with where there is no q(z | x); or
            "mixture", whose first component is that of "auto".

    Raises:
        UsageError: The model has no such posterior.
    """
    offered = _offered(loaded)
    for inputs in offered.get("auto" if wanted == MIXTURE else wanted, []):
        if loaded.model.has_posterior(inputs):
            return inputs
    able = [name for name, sets in offered.items() if any(loaded.model.has_posterior(inputs) for inputs in sets)]
    raise UsageError(
        f"--proposal got {wanted}, but this model has no such posterior to draw from; it has "
        f"{', '.join([*able, MIXTURE])}"
    )


def proposal_of(
    loaded: "TrainedModel", points: Batch, precision: str = "auto", wanted: str = "auto", seed: int = 0
) -> tuple[DiagonalGaussian | LayeredPosterior, tuple[str, ...]]:
    """One posterior of the points [N, D] that importance samples may be drawn from, and what it is given.

    Args:
        loaded: The model.
        points: The N points.
        precision: Arithmetic of the encoder: auto, 32-true or bf16-mixed.
        wanted: As :func:`proposal_given` takes it.
        seed: Seed of means of layers, which are given draws of those below.

    Raises:
        UsageError: The model has no such posterior.
    """
    inputs = proposal_given(loaded, wanted)
    return posterior_of(loaded.model, points, inputs, precision, seed), inputs


def _name(inputs: tuple[str, ...]) -> str:
    return f"q(z|{', '.join(inputs)})"


def _mixed(loaded: "TrainedModel", points: Batch) -> list[tuple[str, ...]]:
    """What posteriors of the mixture are given: the image, and image and description where the points have one."""
    first = proposal_given(loaded)
    wider = [inputs for inputs in _offered(loaded)["joint"] if loaded.model.has_posterior(inputs)]
    known = [inputs for inputs in wider if all(name in points.values and points.present[name].any() for name in inputs)]
    return list(dict.fromkeys([first, *known[:1]]))


def proposals(
    loaded: "TrainedModel", points: Batch, precision: str, wanted: str, priors: Sequence[str] = ("prior",)
) -> list[Component]:
    """What z of the points is drawn from.

    The mixture is of q(z | x), of q(z | x, y) where there is one, and of each of ``priors``, the densities that ignore
    the text and that are asked about: with these no weight exceeds M times the likelihood, whatever the posteriors miss
    (the balance heuristic of Veach and Guibas, 1995). One set of draws serves log p(x), log p(x, y) and every bound on
    log p(x | y), as in WG Section 5.
    """
    inputs = _mixed(loaded, points) if wanted == MIXTURE else [proposal_given(loaded, wanted)]
    known = [_component(loaded, points, one, precision) for one in inputs]
    return known + ([density_of(loaded, prior) for prior in priors] if wanted == MIXTURE else [])


def _component(loaded: "TrainedModel", points: Batch, inputs: tuple[str, ...], precision: str) -> Component:
    """A posterior of the model to draw from; Gaussians of all points are inferred once."""
    return Component.posterior(_name(inputs), posterior_of(loaded.model, points, inputs, precision))


def density_of(loaded: "TrainedModel", prior: str) -> Component:
    """p(z), or a learned q(z), as the files hold it.

    Guided it would be a density of the words, drawn from a pool that all points share, and not what it is called.
    """
    density = loaded.posteriors[prior].unguided
    return Component.density(density.formula, density.draw, density.density, informed=False)

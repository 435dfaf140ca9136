"""Log-likelihoods of a multimodal model under a prior, and of images given text under a posterior of the text.

x is the main image, y its description, the text that the model generates or else its attributes. Where the model
generates more than these two, all of its modalities together are x1..xM. What is missing in a data point is integrated
out.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import run_generator
from mmgen.core.seeding import torch_generator
from mmgen.evaluation.importance import (
    Component,
    Density,
    Estimate,
    EstimatedDensity,
    Terms,
    compute_terms,
    latents_per_pass,
)
from mmgen.evaluation.proposals import (
    MIXTURE,
    description_modality,
    diagnostics,
    infer_proposal,
    main_modality,
    make_components,
    prior_component,
    standard_error,
)
from mmgen.generation import TrainedModel
from mmgen.generation.inputs import Pictures, validate_values
from mmgen.posteriors import SLOW, Guided, Posterior
from mmgen.results.score import ExampleValues, Score
from mmgen.settings.arguments import check_arguments
from mmgen.settings.kinds import Count, Seed
from mmgen.training.batches import make_batch
from mmgen.training.precision import autocast

Quantities = dict[str, Estimate]
_Sampler = Callable[[Batch, int, torch.Generator], Tensor]
_ROUGH = 0.1
"""Standard error of log Z(y), nats, from which its bias, of which half the variance is only the leading term, can be
much larger than that."""


def _make_decoder_density(loaded: TrainedModel, name: str, precision: str) -> Density:
    """Return a function that computes log p(x_name | z) of a modality, in the chosen precision."""

    def density(z: Tensor, batch: Batch) -> Tensor:
        with autocast(loaded.device, precision):
            return loaded.model.log_likelihood(name, z, batch)

    return density


def _make_posterior_density(loaded: TrainedModel, posterior: str) -> Density:
    """Return a function that computes log q(z | y) of a posterior."""
    source, words = loaded.posteriors[posterior], description_modality(loaded)
    return lambda z, points: source.log_prob(z, source.select_words(points, words))


def _make_estimated_density(loaded: TrainedModel, posterior: str) -> EstimatedDensity:
    """Return a function that computes log q(z | y) of a posterior, and its standard error if it is an estimate.

    Of a conditional model y is as it is given, with words left open, since its decoder sees it so.
    """
    source, words = loaded.posteriors[posterior], description_modality(loaded)
    source = source.completing(None) if loaded.model.conditional_on else source
    return lambda z, points: source.log_prob_with_error(z, source.select_words(points, words))


def _make_sampler(loaded: TrainedModel, posterior: str) -> _Sampler:
    """Return a function that draws from q(z | y) of a posterior."""
    source, words = loaded.posteriors[posterior], description_modality(loaded)
    return lambda points, n, generator: source.sample(source.select_words(points, words), n, generator)


def find_guiding_modality(loaded: TrainedModel, posterior: str, points: Batch) -> str | None:
    """Return the name of the modality y whose p(y|z) guides a posterior; None without guidance."""
    guided = loaded.guided_posterior(posterior)
    return guided.find_guiding_modality(guided.select_words(points, description_modality(loaded)))


def add_normaliser_error(loaded: TrainedModel, posterior: str, points: Batch, scores: Sequence[Score]) -> list[Score]:
    """Return ``scores`` of a guided posterior with the error of its estimated normaliser log Z(y) included.

    A log Z(y) is too low by half its variance on average, so that densities are too high by that. It is too low by more
    where no draw of q(z|y) came near what says the words, which a large error tells.

    Args:
        loaded: The model, guided.
        posterior: What is guided.
        points: The data points that ``scores`` are means over.
        scores: In nats.
    """
    guided = loaded.guided_posterior(posterior)
    if not isinstance(guided, Guided):
        return [*scores]  # its density needs no Z(y)
    words = guided.select_words(points, description_modality(loaded))
    error, errors = guided.normaliser_error(words), guided.normaliser(words)[1]
    bias = float(0.5 * errors.square().mean())
    rough = int((errors > _ROUGH).sum())
    warning = (
        f"log Z(y) of {rough:,} of {len(errors):,} points has an error above {_ROUGH:g} nats: it may be too high "
        "by much more than is printed; use a smaller weight of guidance"
    )
    return [
        replace(
            score,
            stderr=None if score.stderr is None else math.hypot(score.stderr, error),
            points=score.points and replace(score.points, shared_stderr=math.hypot(score.points.shared_stderr, error)),
            warnings=(*score.warnings, warning) if rough else score.warnings,
            details={**score.details, "too_high_by_at_least": bias, "normaliser_stderr": error},
        )
        for score in scores
    ]


def has_description(points: Batch, name: str) -> Tensor:
    """Return bool [N]: True for examples that have a sentence or at least one known attribute."""
    present = points.present[name]
    return present.any(-1) if present.dim() > 1 else present


def compute_image_terms(
    loaded: TrainedModel,
    points: Batch,
    posteriors: tuple[str, ...],
    samples: int,
    seed: int,
    precision: str = "auto",
    proposal: str = MIXTURE,
    priors: Sequence[str] = ("prior",),
) -> Generator[float, None, Terms]:
    """Draw latents for images, and compute all log densities that their likelihoods need.

    "image" and "words" are the decoders' log-likelihoods, "others" that of all further modalities together, and each of
    ``posteriors`` (which may hold "prior") its log density given the point's y. ``priors`` are those of them that
    ignore the text, which the mixture of proposals draws from.
    """
    model, image = loaded.model, main_modality(loaded)
    densities: dict[str, Density | EstimatedDensity] = {"image": _make_decoder_density(loaded, image, precision)}
    words = description_modality(loaded)
    if words in points.values and words is not None and not model.conditional_on:
        densities["words"] = _make_decoder_density(loaded, words, precision)
    others = [name for name in model.modalities if name not in (image, words) and name in points.values]
    if others:
        parts = [_make_decoder_density(loaded, name, precision) for name in others]
        densities["others"] = lambda z, batch: torch.stack([part(z, batch) for part in parts]).sum(0)
    for posterior in posteriors:
        densities[posterior] = _make_estimated_density(loaded, posterior)
    drawn_from = make_components(loaded, points, precision, proposal, priors)
    generator = torch_generator(seed, "importance", device=str(loaded.device))
    shape = points.values[image].shape[1:]
    at_once = latents_per_pass(int(np.prod(shape)))
    return (yield from compute_terms(drawn_from, points, samples, densities, at_once, generator))


def quantities_under_prior(terms: Terms, prior: str, modalities: int = 2) -> Quantities:
    """Estimate log p(x), and log p(x, y) if the model generates words, with ``prior`` as density of z.

    Of more ``modalities`` than x and y there is log p(x1..xM) too.
    """
    error = terms.errors.get(prior)
    quantities = {"log p(x)": terms.weigh(terms["image"] + terms[prior], error)}
    if "words" in terms:
        quantities["log p(x,y)"] = terms.weigh(terms["image"] + terms["words"] + terms[prior], error)
    if "others" in terms:
        everything = terms["image"] + terms["others"] + terms.densities.get("words", torch.zeros(()))
        quantities[f"log p(x1..x{modalities})"] = terms.weigh(everything + terms[prior], error)
    return quantities


def estimate_text(
    loaded: TrainedModel,
    points: Batch,
    prior: str,
    samples: int,
    seed: int,
    precision: str = "auto",
    text_proposal: TrainedModel | None = None,
) -> Generator[float, None, Estimate]:
    """Estimate log p(y) of the descriptions of ``points`` under ``prior``; equal descriptions share an estimate.

    The proposal is an even mixture of the prior and every available q(z | y): the encoder's, a fitted one, and that of
    ``text_proposal``, another file fitted to the model. It is at least as good as WG's draws from the prior alone
    (Section 5) if one of them is good, and hardly worse otherwise. Without any, q(z | x) of one image with this
    description takes its place, since the prior alone hardly ever generates a long sentence.
    """
    components = _text_components(loaded, prior, text_proposal, precision)
    generator = torch_generator(seed, "importance text", prior, device=str(loaded.device))
    return (yield from _estimate_text(loaded, points, prior, samples, precision, components, generator))


def estimate_text_by_posterior(
    loaded: TrainedModel,
    points: Batch,
    prior: str,
    samples: int,
    seed: int,
    precision: str = "auto",
    text_proposal: TrainedModel | None = None,
) -> Generator[float, None, Estimate | None]:
    """Estimate log p(y) with draws from q(z | y) only (CK Table 2 takes 10); None if there is no q(z | y).

    The nearest of them that there is: that of ``text_proposal``, the fitted one, the model's own.
    """
    first = _text_components(loaded, prior, text_proposal, precision)[0]
    if not first.informed:
        return None
    generator = torch_generator(seed, "importance text through", prior, device=str(loaded.device))
    return (yield from _estimate_text(loaded, points, prior, samples, precision, [first], generator))


def _estimate_text(
    loaded: TrainedModel,
    points: Batch,
    prior: str,
    samples: int,
    precision: str,
    components: Sequence[Component],
    generator: torch.Generator,
) -> Generator[float, None, Estimate]:
    """Estimate log p(y) with draws from a mixture of ``components`` in equal numbers."""
    name = description_modality(loaded)
    assert name is not None
    queries, back = _distinct_points(points, name)
    densities: dict[str, Density | EstimatedDensity] = {
        "words": _make_decoder_density(loaded, name, precision),
        "prior": _make_estimated_density(loaded, prior),
    }
    # 1 KiB covers the hidden layers of an attribute decoder and of a flow, per latent.
    terms = yield from compute_terms(components, queries, samples, densities, latents_per_pass(256), generator)
    return terms.weigh(terms["words"] + terms["prior"], terms.errors.get("prior"))[back]


def _text_components(
    loaded: TrainedModel, prior: str, text_proposal: TrainedModel | None, precision: str
) -> list[Component]:
    """Return the densities to draw z from for log p(y): every available q(z | y), and the prior."""
    components: list[tuple[TrainedModel, Posterior]] = [
        (source, source.fitted)
        for source in (text_proposal, loaded)
        if source is not None and source.fitted is not None and source.fitted.reads
        if source is text_proposal or source.fitted.log_density_cost < SLOW
    ]
    components += [(loaded, loaded.encoder)] if loaded.encoder is not None else []
    known = [
        Component.from_density(
            each.formula, _make_sampler(source, each.name), _make_posterior_density(source, each.name)
        )
        for source, each in components
    ]
    if not known:
        known = [
            Component.from_density(
                "q(z|image)",
                lambda batch, n, generator: infer_proposal(loaded, batch, precision)[0].sample(generator, (n,)),
                lambda z, batch: infer_proposal(loaded, batch, precision)[0].log_prob(z),
                informed=False,  # of one image that is described so: it knows less than the description
            )
        ]
    return [*known, prior_component(loaded, prior)]


def count_descriptions(loaded: TrainedModel, points: Batch) -> int:
    """Return the number of distinct descriptions y of ``points``; 0 for a model without y."""
    name = description_modality(loaded)
    return 0 if name is None or name not in points.values else _distinct_points(points, name)[0].size


def _distinct_points(points: Batch, name: str) -> tuple[Batch, Tensor]:
    """Return one example for each distinct description, and the position of each example's own."""
    present = points.present[name]
    known = present if present.dim() > 1 else present[:, None]
    key = torch.where(known, points.values[name], -1).cpu().numpy()
    _, first, back = np.unique(key, axis=0, return_index=True, return_inverse=True)
    device = points.values[name].device
    rows, inverse = (torch.from_numpy(found.reshape(-1)).to(device) for found in (first, back))
    return points[rows], inverse


@check_arguments
def log_likelihood(model: TrainedModel, images: Pictures, samples: Count = 100, seed: Seed = 0) -> Score:
    """Estimate the mean log p(image) of images in nats by importance sampling, with its standard error.

    Args:
        model: The model, from :func:`mmgen.load`.
        images: [B, C, H, W] as :meth:`TrainedModel.encode` takes them. Grey levels have no probability under a model of
            black and white and are refused.
        samples: Importance samples K per image.
        seed: Seed of the samples.

    Raises:
        UsageError: The images have another size or range, or the model is conditional: the metric ``log-likelihood``
            measures its log p(image | description).

    Example:
        >>> import mmgen
        >>> from mmgen.artifacts import Dataset
        >>> model = mmgen.load("mnist-a-telbo.safetensors")  # doctest: +SKIP
        >>> with Dataset.open(model.dataset_path()) as data:  # doctest: +SKIP
        ...     images = data.read_image("image", data.split("iid", "test")[:8])
        >>> score = mmgen.log_likelihood(model, images, samples=10)  # doctest: +SKIP
        >>> print(score)  # doctest: +SKIP
        log p(x): -... ± ... nats
        >>> len(score.points.values)  # doctest: +SKIP
        8
    """
    info = model.observed[main_modality(model)]
    pixels = validate_values(info, images)
    check_memory(8 * samples * len(pixels), f"{samples:,} samples of {len(pixels):,} images", "use fewer samples")
    return image_log_likelihood(model, pixels, samples, seed)


@torch.inference_mode()
def image_log_likelihood(loaded: TrainedModel, images: Tensor | np.ndarray, samples: int, seed: int) -> Score:
    """Estimate the mean log p(image), in nats, of ``images`` [B, C, H, W] in [0, 1] by importance sampling.

    ``points.values`` holds the estimate of each image.

    Raises:
        UsageError: The model is conditional, so that it knows p(image | description) alone.
    """
    if loaded.model.conditional_on:
        said = " and ".join(loaded.model.conditional_on)
        raise UsageError(
            f"got images for log p(image) of {loaded.path}, expected a model that has it: this one has log p(image | "
            f"{said}) alone, which mmgen eval --metric log-likelihood measures as log p(x|y)"
        )
    pixels = torch.as_tensor(images, dtype=torch.float32)
    values = {main_modality(loaded): pixels}
    if loaded.attributes is not None:
        unknown = torch.full((len(pixels), len(loaded.attributes.names)), UNKNOWN, dtype=torch.uint8)
        values[loaded.attributes.name] = unknown
    points = make_batch(loaded.settings.data.modalities, values).to(loaded.device)
    result = quantities_under_prior(
        run_generator(compute_image_terms(loaded, points, ("prior",), samples, seed)), "prior"
    )["log p(x)"]
    return Score(
        metric="log-likelihood",
        quantity="log p(x)",
        value=float(result.value.mean()),
        stderr=standard_error(result.value, result.noise),
        unit="nats",
        better="higher",
        n=len(pixels),
        posterior="prior",
        protocol="importance",
        ids={"model": loaded.model_header.content_id, loaded.header.kind: loaded.header.content_id},
        points=ExampleValues(result.value.tolist()),
        details=diagnostics(result),
    )

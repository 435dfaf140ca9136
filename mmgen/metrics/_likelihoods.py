"""Log-likelihoods of a multimodal model under a prior, and of images given text under a posterior of the text.

x is the main image, y its description, the text that the model generates or else its attributes. Where the model
generates more than these two, all of its modalities together are x1..xM. What is missing in a data point is integrated
out.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.gaussian import DiagonalGaussian
from mmgen.metrics._base import Score
from mmgen.metrics._importance import (
    Density,
    Estimate,
    diagnostics,
    estimate,
    join,
    log_terms,
    mixture_samples,
    passes,
    summarise,
)
from mmgen.seeding import torch_generator
from mmgen.training.batches import to_batch
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.loading import Loaded

__all__ = [
    "Quantities",
    "described",
    "described_by",
    "guiding_words",
    "image_log_likelihood",
    "image_terms",
    "main_image",
    "proposal_given",
    "proposal_of",
    "text_components",
    "text_estimate",
    "under_prior",
    "with_normaliser",
]

_CHUNK = 256

Quantities = dict[str, Estimate]


def _decoded(loaded: "Loaded", name: str, precision: str) -> Density:
    """log p(x_name | z), its network in the chosen arithmetic."""

    def density(z: Tensor, batch: Batch) -> Tensor:
        with autocast(loaded.device, precision):
            return loaded.model.log_likelihood(name, z, batch)

    return density


def main_image(loaded: "Loaded") -> str:
    """x: the main image, or the first other one where the model does not generate that.

    Raises:
        UsageError: It generates no image.
    """
    offered = [loaded.image.name] if loaded.image is not None else []
    offered += [name for name in getattr(loaded, "images", {}) if name not in offered]
    for name in offered:
        if name in loaded.model.modalities:
            return name
    raise UsageError("log-likelihoods are of a model of images; this one generates none")


def proposal_given(loaded: "Loaded", wanted: str = "auto") -> tuple[str, ...]:
    """What the posterior is given that importance samples are drawn from.

    Args:
        loaded: The model.
        wanted: "image", "joint" for all modalities, or only image and description where it has no such posterior,
            "description", or "auto": the image, or what decoders were trained with where there is no q(z | x).

    Raises:
        UsageError: The model has no such posterior.
    """
    model, image, words = loaded.model, main_image(loaded), described_by(loaded)
    if model.conditional_on:
        # q(z | x) would belong to another p(z, x) for each description.
        offered = {"auto": [loaded.encoder_given], "joint": [loaded.encoder_given]}
    else:
        described = [(words,)] if words is not None else []
        offered = {
            "auto": [(image,), loaded.encoder_given],
            "image": [(image,)],
            "joint": [tuple(model.modalities), *((image, *given) for given in described)],
            "description": [*described],
        }
    for given in offered.get(wanted, []):
        if model.answers(given):
            return given
    able = [name for name, sets in offered.items() if any(model.answers(given) for given in sets)]
    raise UsageError(
        f"--proposal got {wanted}, but this model has no such posterior to draw from; it has {', '.join(able)}"
    )


def proposal_of(
    loaded: "Loaded", points: Batch, precision: str = "auto", wanted: str = "auto"
) -> tuple[DiagonalGaussian, tuple[str, ...]]:
    """The posterior of the points [N, D] that importance samples are drawn from, and what it is given.

    One set of draws serves log p(x), log p(x, y) and every bound on log p(x | y) (WG Section 5 does the same).
    """
    given = proposal_given(loaded, wanted)
    means, log_sds = [], []
    for start in range(0, points.size, _CHUNK):
        with autocast(loaded.device, precision):
            q = loaded.model.posterior(points[slice(start, start + _CHUNK)], given)
        means.append(q.mean.float() if q.mean.dtype != torch.float64 else q.mean)
        log_sds.append(q.log_sd.float() if q.log_sd.dtype != torch.float64 else q.log_sd)
    return DiagonalGaussian(torch.cat(means), torch.cat(log_sds)), given


def described_by(loaded: "Loaded") -> str | None:
    """The modality y of log p(y): the text that the model generates, else its attributes; None where it has neither."""
    known = (part for part in (loaded.text, loaded.attributes) if part is not None)
    return next((part.name for part in known if part.name in loaded.model.modalities), None)


def _told(loaded: "Loaded", posterior: str, points: Batch) -> Batch:
    """What a posterior is to see of points: of the model's own q(z | y) it is y alone, whatever else is known of them.

    Other attributes or words would make it q(z | y, more). A fitted posterior reads what it was fitted to.
    """
    words = described_by(loaded)
    if posterior != "text" or words not in points.values or words is None or not loaded.model.answers((words,)):
        return points
    return points.select([words])


def _log_prob(loaded: "Loaded", posterior: str) -> Density:
    """log q(z | y) of a posterior."""
    density = loaded.latent_log_prob(posterior)
    return lambda z, points: density(z, _told(loaded, posterior, points))


def _sampler(loaded: "Loaded", posterior: str) -> Callable[[Batch, int, torch.Generator], Tensor]:
    """Draws from q(z | y) of a posterior."""
    draw = loaded.latent_sampler(posterior)
    return lambda points, n, generator: draw(_told(loaded, posterior, points), n, generator)


def guiding_words(loaded: "Loaded", posterior: str, points: Batch) -> str | None:
    """The modality y of the p(y|z) that guides a posterior for these points; None where they say nothing."""
    return loaded.guide(posterior).words(_told(loaded, posterior, points))


def with_normaliser(loaded: "Loaded", posterior: str, points: Batch, scores: Sequence[Score]) -> list[Score]:
    """Mean log densities of a guided posterior, with the error of its log Z(y) in their standard errors.

    Args:
        loaded: The model, guided.
        posterior: What is guided.
        points: The data points that ``scores`` are means over.
        scores: In nats.
    """
    error = loaded.guide(posterior).normaliser_error(_told(loaded, posterior, points))
    return [
        replace(
            score,
            stderr=None if score.stderr is None else math.hypot(score.stderr, error),
            extra={**score.extra, "normaliser_stderr": error},
        )
        for score in scores
    ]


def described(points: Batch, name: str) -> Tensor:
    """Which points have a description, bool [N]: some of its attributes are known, or there is a sentence."""
    present = points.present[name]
    return present.any(-1) if present.dim() > 1 else present


def image_terms(
    loaded: "Loaded",
    points: Batch,
    posteriors: tuple[str, ...],
    samples: int,
    seed: int,
    precision: str = "auto",
    wanted: str = "auto",
) -> Generator[float, None, dict[str, Tensor]]:
    """Every log density that likelihoods of images need, [K, N] float64 by name, from one pass through the decoders.

    "image" and "words" are the decoders' log-likelihoods, "others" that of all further modalities together, "proposal"
    is log q, and each of ``posteriors`` (which may hold "prior") its log density given the point's y.
    """
    model, image = loaded.model, main_image(loaded)
    densities: dict[str, Density] = {"image": _decoded(loaded, image, precision)}
    words = described_by(loaded)
    if words in points.values and words is not None and not model.conditional_on:
        densities["words"] = _decoded(loaded, words, precision)
    others = [name for name in model.modalities if name not in (image, words) and name in points.values]
    if others:
        parts = [_decoded(loaded, name, precision) for name in others]
        densities["others"] = lambda z, batch: torch.stack([part(z, batch) for part in parts]).sum(0)
    for posterior in posteriors:
        densities[posterior] = _log_prob(loaded, posterior)
    proposal, _ = proposal_of(loaded, points, precision, wanted)
    generator = torch_generator(seed, "importance", device=str(loaded.device))
    shape = points.values[image].shape[1:]
    at_once = passes(int(np.prod(shape)))
    return (yield from log_terms(proposal, points, samples, densities, at_once, generator))


def under_prior(terms: dict[str, Tensor], prior: str, modalities: int = 2) -> Quantities:
    """log p(x) and, where the model says words, log p(x, y), and CK's bound on log p(y); ``prior`` names the density.

    The bound on log p(y) is through q(z | x) as well, since that is how a caption is inferred in CK (Table 2). Of more
    ``modalities`` than x and y there is log p(x1..xM) too.
    """
    ratio = terms[prior] - terms["proposal"]
    quantities = {"log p(x)": estimate(terms["image"] + ratio)}
    if "words" in terms:
        quantities["log p(x,y)"] = estimate(terms["image"] + terms["words"] + ratio)
        quantities["log p(y) through q(z|x)"] = estimate(terms["words"] + ratio)
    if "others" in terms:
        everything = terms["image"] + terms["others"] + terms.get("words", torch.zeros_like(ratio))
        quantities[f"log p(x1..x{modalities})"] = estimate(everything + ratio)
    return quantities


def text_estimate(
    loaded: "Loaded", points: Batch, prior: str, samples: int, seed: int, precision: str = "auto"
) -> Generator[float, None, Estimate]:
    """log p(y) of the points' descriptions under ``prior``, each distinct description estimated once.

    Proposals are an even mixture of the prior and every q(z | y) that there is, the model's own or a fitted one: at
    least as good as WG's draws from the prior alone (Section 5) where q(z | y) is, and hardly worse where it is not.
    Without any, q(z | x) of one image so described takes its place: the prior alone hardly ever says a long sentence.
    """
    name = described_by(loaded)
    assert name is not None
    queries, back = _distinct(points, name)
    components = text_components(loaded, prior)
    draws = [_sampler(loaded, component) for component in components]
    densities = [_log_prob(loaded, component) for component in components]
    if len(components) == 1:
        draws.append(lambda batch, n, generator: proposal_of(loaded, batch, precision)[0].sample(generator, (n,)))
        densities.append(lambda z, batch: proposal_of(loaded, batch, precision)[0].log_prob(z))
    likelihood = _decoded(loaded, name, precision)
    generator = torch_generator(seed, "importance text", prior, device=str(loaded.device))
    # 1 KiB covers the hidden layers of an attribute decoder and of a flow, per latent.
    width = max(1, passes(256) // samples)
    parts = []
    for start in range(0, queries.size, width):
        part = queries[slice(start, start + width)]
        z, proposal = mixture_samples(draws, densities, part, samples, generator)
        parts.append(estimate(likelihood(z, part).double() + densities[0](z, part).double() - proposal))
        yield min(1.0, (start + width) / queries.size)
    return join(parts)[back]


def text_components(loaded: "Loaded", prior: str) -> list[str]:
    """Where samples of log p(y) come from: the prior and every q(z | y), the model's own and the fitted one."""
    fitted = [loaded.target] if loaded.target and loaded.given is not None else []
    return list(dict.fromkeys([prior, *(name for name in ["text", *fitted] if name in loaded.posteriors)]))


def _distinct(points: Batch, name: str) -> tuple[Batch, Tensor]:
    """One point for each distinct description, and for every point which of them has its own."""
    present = points.present[name]
    known = present if present.dim() > 1 else present[:, None]
    key = torch.where(known, points.values[name], -1).cpu().numpy()
    _, first, back = np.unique(key, axis=0, return_index=True, return_inverse=True)
    device = points.values[name].device
    rows, inverse = (torch.from_numpy(found.reshape(-1)).to(device) for found in (first, back))
    return points[rows], inverse


@torch.inference_mode()
def image_log_likelihood(loaded: "Loaded", images: Tensor | np.ndarray, samples: int, seed: int) -> Score:
    """Importance-weighted log p(image), nats, averaged over ``images`` [B, C, H, W] in [0, 1].

    ``extra["values"]`` holds the estimate of each image.
    """
    pixels = torch.as_tensor(images, dtype=torch.float32)
    codes = {}
    if loaded.attributes is not None:
        unknown = torch.full((len(pixels), len(loaded.attributes.names)), 255, dtype=torch.uint8)
        codes[loaded.attributes.name] = unknown
    points = to_batch({main_image(loaded): pixels}, codes).to(loaded.device)
    work = image_terms(loaded, points, ("prior",), samples, seed)
    while True:
        try:
            next(work)
        except StopIteration as stop:
            result = estimate(stop.value["image"] + stop.value["prior"] - stop.value["proposal"])
            break
    value, stderr = summarise(result.value)
    return Score(
        metric="log-likelihood",
        quantity="log p(x)",
        value=value,
        stderr=stderr,
        unit="nats",
        better="higher",
        n=len(pixels),
        posterior="prior",
        protocol="importance",
        ids={"model": loaded.model_header.content_id, loaded.header.kind: loaded.header.content_id},
        extra={**diagnostics(result), "values": result.value.tolist()},
    )

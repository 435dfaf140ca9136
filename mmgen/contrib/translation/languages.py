"""Sentences in several languages: the languages of a model, complete data points, and draws of z given one language."""

import math
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.progress import map_fractions
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.text import Text
from mmgen.posteriors import posterior_of
from mmgen.results.number import Number
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation
    from mmgen.generation import TrainedModel


_LATENTS = 8192
"""Latents whose sentences are scored at a time."""


def languages(loaded: "TrainedModel") -> list[str]:
    """Return the languages that a model generates, in the order of its objective; [] for pictures and words."""
    model = loaded.model
    return [name for name in model.generates if name in loaded.observed and isinstance(model.modalities[name], Text)]


def explain_missing_languages(evaluation: "Evaluation") -> str:
    """Return a reason if the model does not generate two languages or more; else ""."""
    if len(languages(evaluation.loaded)) > 1:
        return ""
    return (
        "needs a model of sentences in two or more languages, and this one is not; make data with mmgen make-data "
        "parallel-text and train with --preset wu/translation-cpu"
    )


def complete_points(evaluation: "Evaluation") -> Batch:
    """Return the evaluated examples that have a sentence in every language of the model."""
    names = languages(evaluation.loaded)
    points = evaluation.data_points.select(names)
    complete = torch.stack([points.present[name] for name in names]).all(0)
    return points if bool(complete.all()) else points[complete.nonzero().flatten()]


def count_tokens(loaded: "TrainedModel", points: Batch, name: str) -> Tensor:
    """Return the number of tokens of each sentence [B], float64: its words and, unless it has full length, its end."""
    text = loaded.model.modalities[name]
    assert isinstance(text, Text)
    words = (points.values[name] != text.padding).sum(1)
    return (words + (words < text.length)).double()


def per_token(nats: Tensor, tokens: Tensor) -> Number:
    """Return nats a token over all sentences: the ratio of sums, with its standard error to first order."""
    ratio = nats.sum() / tokens.sum()
    residual = (nats - ratio * tokens) / tokens.mean()
    error = float(residual.std() / len(nats) ** 0.5) if len(nats) > 1 else None
    return Number(float(ratio), error)


def unigram_cost(evaluation: "Evaluation", name: str, points: Batch) -> float:
    """Return nats a token of sentences under the frequencies of words and ends in training sentences."""
    text = evaluation.loaded.model.modalities[name]
    assert isinstance(text, Text)
    stored = torch.from_numpy(evaluation.dataset.read(name, evaluation.rows("train")).astype("int64"))
    counts = torch.bincount(_tokens(text, stored), minlength=text.padding + 1).double() + 1e-6
    log_p = (counts / counts.sum()).log()
    return -float(log_p[_tokens(text, points.values[name].cpu())].mean())


def _tokens(text: Text, codes: Tensor) -> Tensor:
    """Return all tokens of sentences [B, T]: words, and the first padding of each."""
    is_end = codes == text.padding
    return codes[is_end.long().cumsum(1) <= is_end.long()]


def source_languages(loaded: "TrainedModel", posterior: str) -> list[str]:
    """Return the languages from each of which alone a posterior infers z; [] for one that reads no words."""
    source = loaded.posteriors[posterior]
    if source.is_unconditional:
        return []
    if source.is_fitted:
        return [name for name in source.reads if name in languages(loaded)]
    return [name for name in languages(loaded) if loaded.model.has_posterior((name,))]


def draws_given(
    loaded: "TrainedModel",
    posterior: str,
    source: str | None,
    points: Batch,
    count: int,
    seed: int = 0,
    precision: str = "auto",
) -> Tensor:
    """Draw z [K, B, D] from a posterior of the sentences in one language.

    Args:
        loaded: The model.
        posterior: Name of the posterior.
        source: The language; None for a density without words.
        points: The B examples.
        count: Number K of draws.
        seed: Seed of the draws.
        precision: Arithmetic of the encoder.
    """
    density = loaded.posteriors[posterior]
    generator = torch_generator(seed, "translation", source or "", device=str(loaded.device))
    with autocast(loaded.device, precision):
        if source is None or density.is_fitted:
            return density.sample(points if source is None else points.select([source]), count, generator).float()
        drawn: Tensor = loaded.model.posterior(points.select([source]), (source,)).sample(generator, (count,))
        return drawn.float()


def log_likelihood_in_parts(
    loaded: "TrainedModel", names: Sequence[str], z: Tensor, points: Batch, precision: str
) -> Generator[float, None, dict[str, Tensor]]:
    """Return log p(sentence | z) [K, B] in nats, float64, by language; yield the fraction of work done.

    Args:
        loaded: The model.
        names: Languages.
        z: Latents [K, B, D].
        points: The B examples.
        precision: Arithmetic of the decoders.
    """
    step = max(1, _LATENTS // len(z))
    parts: dict[str, list[Tensor]] = {name: [] for name in names}
    for start in range(0, points.size, step):
        rows = slice(start, start + step)
        with autocast(loaded.device, precision):
            for name in names:
                value = loaded.model.log_likelihood(name, z[:, rows], points[rows])
                parts[name].append(value.double())
        yield min(1.0, (start + step) / points.size)
    return {name: torch.cat(each, 1) for name, each in parts.items()}


def has_marginal(loaded: "TrainedModel", names: tuple[str, ...]) -> bool:
    """Return whether log p of sentences can be estimated: whether the model has q(z | sentences), of one layer of z."""
    return len(loaded.model.latent.layers) == 1 and loaded.model.has_posterior(names)


def marginal_log_weights(
    evaluation: "Evaluation", points: Batch, names: tuple[str, ...]
) -> Generator[float, None, tuple[Tensor, DiagonalGaussian]]:
    """Return log importance weights [K, B] in nats for log p of the sentences in ``names``, and their q(z | sentences).

    The log of the mean weight is below log p, by half the relative variance of the mean weight.
    """
    loaded, settings = evaluation.loaded, evaluation.settings
    q = posterior_of(loaded.model, points, names, settings.precision)
    assert isinstance(q, DiagonalGaussian)
    z = q.sample(torch_generator(settings.seed, "sentences", *names, device=str(loaded.device)), (settings.samples,))
    prior = DiagonalGaussian.standard(*q.mean.shape, like=q.mean)
    scored = yield from log_likelihood_in_parts(loaded, names, z, points, settings.precision)
    return sum(scored.values(), (prior.log_prob(z) - q.log_prob(z)).double()), q


ENOUGH = 0.05
"""Mean relative variance of a mean weight, about one over the effective number of draws; half of it is the bias."""
_ROUNDS = 8
"""Rounds of draws at most."""


def balanced_log_likelihoods(
    evaluation: "Evaluation", posterior: str, source: str, target: str, points: Batch
) -> Generator[float, None, tuple[Tensor, Tensor, Tensor]]:
    """Return log p(t | s) and log p(t) [B] in nats from the same draws of z, and the effective number of these [B].

    Draws of q(z | t), q(z | s) and p(z), as many of each, are weighted by what is wanted over the mean of the three
    densities: the balance heuristic (Veach, Guibas, 1995). No weight of log p(t) exceeds three times its likelihood,
    so that it is right where decoders ignore z, and log p(t) and log p(t | s) err alike where they do not. Rounds of
    draws go on until the effective number is enough on average.

    Args:
        evaluation: Model and settings.
        posterior: Name of the posterior of s.
        source: The language s.
        target: The language t, of which the model has q(z | t).
        points: The B examples.
    """
    loaded, settings = evaluation.loaded, evaluation.settings
    of_target = posterior_of(loaded.model, points, (target,), settings.precision)
    assert isinstance(of_target, DiagonalGaussian)
    prior = DiagonalGaussian.standard(*of_target.mean.shape, like=of_target.mean)
    given, density = points.select([source]), loaded.posteriors[posterior]
    of_source = None if density.is_fitted else posterior_of(loaded.model, points, (source,), settings.precision)
    count, logs = settings.samples, [torch.empty(0), torch.empty(0)]
    for place in range(_ROUNDS):
        generator = torch_generator(settings.seed, "balanced", source, target, place, device=str(loaded.device))
        from_source = draws_given(loaded, posterior, source, points, count, settings.seed + place, settings.precision)
        z = torch.cat([each.sample(generator, (count,)) for each in (of_target, prior)] + [from_source])
        known = density.log_prob(z, given) if of_source is None else of_source.log_prob(z)
        densities = torch.stack([of_target.log_prob(z), prior.log_prob(z), known]).double()
        scored = yield from map_fractions(
            log_likelihood_in_parts(loaded, [target], z, points, settings.precision), place / _ROUNDS, 1 / _ROUNDS
        )
        weights = scored[target] - densities.logsumexp(0) + math.log(3)
        new = (weights + densities[2]).cpu(), (weights + densities[1]).cpu()
        logs = [*new] if place == 0 else [torch.cat(pair) for pair in zip(logs, new, strict=True)]
        effective = torch.stack([(2 * each.logsumexp(0) - (2 * each).logsumexp(0)).exp() for each in logs]).amin(0)
        if float((1 / effective).mean()) <= ENOUGH:
            break
    return log_mean(logs[0]), log_mean(logs[1]), effective


def log_mean(log_p: Tensor) -> Tensor:
    """Return the log of the mean over draws [B] of likelihoods or weights [K, B], on the CPU."""
    return (log_p.logsumexp(0) - math.log(len(log_p))).cpu()


def shuffled_rows(size: int, seed: int) -> Tensor:
    """Return rows [B] in which every example has the row of another one, a random cycle."""
    order = torch.from_numpy(numpy_generator(seed, "shuffled sentences").permutation(size))
    rows = torch.empty_like(order)
    rows[order] = order.roll(1)
    return rows

"""Translation through z: the log-likelihood of a sentence given its translation, and given another sentence."""

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.languages import (
    complete_points,
    count_tokens,
    draws_given,
    explain_missing_languages,
    languages,
    log_likelihood_in_parts,
    per_token,
    shuffled_rows,
    source_languages,
)
from mmgen.evaluation.proposals import mean_and_error
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import ExampleValues, Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Translation"]


_TOKEN = "nats a token"


class Translation(Metric):
    r"""log p(translation | sentence) by draws of z given the sentence, beside the same with z of another sentence.

    .. math:: \log \frac{1}{K} \sum_k p(t | z_k), \quad z_k \sim q(z | s)

    for each language t and each other language s that the posterior reads. ``shuffled`` has z of the next sentence in a
    random order, and ``gain`` is the difference, pair by pair: what the sentence says of its translation. Where it is
    0, decoders ignore z. A density without words, such as the prior, has log p(t) by its draws.
    """

    unit = "nats"
    better = "higher"
    further_units: ClassVar = {_TOKEN: "higher"}
    posteriors = "each"
    points = "averaged"
    reads = ("samples", "posteriors", *POINTS)
    protocols: ClassVar = {"predictive": "The log of the mean likelihood over K draws of z given the sentence."}
    columns: ClassVar = {"draws of z": "samples"}
    needs = (explain_missing_languages, needs.explain_ignored_guidance)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        points = complete_points(evaluation)
        needs.explain_missing_memory(evaluation, points.size)
        names = languages(evaluation.loaded)
        sources: list[str | None] = [*source_languages(evaluation.loaded, posterior)] or [None]
        scores: list[Score] = []
        for place, source in enumerate(sources):
            targets = [name for name in names if name != source]
            share = 1 / len(sources)
            scores += yield from map_fractions(
                self._score_source(evaluation, posterior, source, targets, points), place * share, share
            )
        return scores

    def _score_source(
        self, evaluation: "Evaluation", posterior: str, source: str | None, targets: list[str], points: Batch
    ) -> Generator[float, None, list[Score]]:
        """Score all translations of sentences in one language."""
        loaded, settings = evaluation.loaded, evaluation.settings
        z = draws_given(loaded, posterior, source, points, settings.samples, settings.seed, settings.precision)
        true = yield from map_fractions(
            log_likelihood_in_parts(loaded, targets, z, points, settings.precision), 0.0, 0.5
        )
        scores = []
        if source is not None:
            z = z[:, shuffled_rows(points.size, settings.seed).to(z.device)]
            other = yield from map_fractions(
                log_likelihood_in_parts(loaded, targets, z, points, settings.precision), 0.5, 0.5
            )
        for name in targets:
            tokens = count_tokens(loaded, points, name).cpu()
            nats = {f"log p({name}|{source})" if source else f"log p({name})": _log_mean(true[name])}
            if source is not None:
                nats[f"log p({name}|shuffled {source})"] = _log_mean(other[name])
                nats[f"gain, {source} to {name}"] = _log_mean(true[name]) - _log_mean(other[name])
            for quantity, values in nats.items():
                scores += self._score_both(evaluation, posterior, quantity, values, tokens)
        return scores

    def _score_both(
        self, evaluation: "Evaluation", posterior: str, quantity: str, nats: Tensor, tokens: Tensor
    ) -> list[Score]:
        """Score a log-likelihood for each sentence and for each token."""
        value, error = mean_and_error(nats)
        ratio = per_token(nats, tokens)
        details = {"samples": evaluation.settings.samples, "tokens": float(tokens.mean())}
        return [
            self.score(
                evaluation, value, error, len(nats), quantity=quantity, posterior=posterior, protocol="predictive",
                points=ExampleValues.from_values(nats.tolist()), details=details,
            ),
            self.score(
                evaluation, ratio.value, ratio.error, len(nats), quantity=f"{quantity} per token", posterior=posterior,
                protocol="predictive", unit=_TOKEN, details=details,
            ),
        ]  # fmt: skip


def _log_mean(log_p: Tensor) -> Tensor:
    """Return the log of the mean over draws [B] of likelihoods [K, B]."""
    return (log_p.logsumexp(0) - math.log(len(log_p))).cpu()

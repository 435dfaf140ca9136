"""Translation through z: the log-likelihood of a sentence given its translation, alone, and given another sentence."""

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from mmgen.contrib.translation.languages import (
    ENOUGH,
    balanced_log_likelihoods,
    complete_points,
    count_tokens,
    draws_given,
    explain_missing_languages,
    has_marginal,
    languages,
    log_likelihood_in_parts,
    log_mean,
    per_token,
    shuffled_rows,
    source_languages,
)
from mmgen.core.batch import Batch
from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.proposals import mean_and_error
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import ExampleValues, Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation
    from mmgen.generation import TrainedModel

__all__ = ["Translation"]


_TOKEN = "nats a token"


class Translation(Metric):
    r"""log p(translation | sentence) by draws of z given the sentence, beside log p(translation).

    .. math:: \log \frac{1}{K} \sum_k p(t | z_k), \quad z_k \sim q(z | s)

    for each language t and each other language s that the posterior reads: a bound from below, tight as K grows.
    ``gain`` is log p(t | s) - log p(t), pair by pair: what the sentence says of its translation. Both are of the same
    draws of q(z | t), q(z | s) and p(z), by the balance heuristic: from q(z | t) alone log p(t) is too low by nats
    where K is small against exp(KL), and log p(t | s) is not.

    ``shuffled`` has z of the next sentence in a random order, and ``beside another sentence`` is log p(t | s) less it.
    Where it is 0, decoders ignore z; it has no bound, for z of another sentence misleads, and is no information. A
    density without words, such as the prior, has log p(t) by its own draws, which may lie far below.
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

    @classmethod
    def claims(cls, loaded: "TrainedModel") -> bool:
        return len(languages(loaded)) > 1

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        points = complete_points(evaluation)
        needs.explain_missing_memory(evaluation, points.size)
        names = languages(evaluation.loaded)
        sources: list[str | None] = [*source_languages(evaluation.loaded, posterior)] or [None]
        scores: list[Score] = []
        share = 1 / len(sources)
        for place, source in enumerate(sources):
            targets = [name for name in names if name != source]
            scored = self._score_source(evaluation, posterior, source, targets, points)
            scores += yield from map_fractions(scored, place * share, share)
        return scores

    def _score_source(
        self,
        evaluation: "Evaluation",
        posterior: str,
        source: str | None,
        targets: list[str],
        points: Batch,
    ) -> Generator[float, None, list[Score]]:
        """Score all translations of sentences in one language."""
        loaded, settings = evaluation.loaded, evaluation.settings
        z = draws_given(loaded, posterior, source, points, settings.samples, settings.seed, settings.precision)
        true = yield from map_fractions(
            log_likelihood_in_parts(loaded, targets, z, points, settings.precision), 0.0, 0.25
        )
        scores = []
        if source is not None:
            z = z[:, shuffled_rows(points.size, settings.seed).to(z.device)]
            other = yield from map_fractions(
                log_likelihood_in_parts(loaded, targets, z, points, settings.precision), 0.25, 0.25
            )
        for place, name in enumerate(targets):
            tokens = count_tokens(loaded, points, name).cpu()
            nats = {f"log p({name}|{source})" if source else f"log p({name})": log_mean(true[name])}
            if source is not None:
                nats[f"log p({name}|shuffled {source})"] = log_mean(other[name])
                nats[f"beside another sentence, {source} to {name}"] = log_mean(true[name]) - log_mean(other[name])
            for quantity, values in nats.items():
                scores += self._score_both(evaluation, posterior, quantity, values, tokens)
            if source is None or not has_marginal(loaded, (name,)):
                continue
            balanced = balanced_log_likelihoods(evaluation, posterior, source, name, points)
            part = 0.5 / len(targets)
            known, alone, effective = yield from map_fractions(balanced, 0.5 + place * part, part)
            quantity = f"gain, {source} to {name}"
            scores += self._score_both(evaluation, posterior, quantity, known - alone, tokens, effective)
        return scores

    def _score_both(
        self,
        evaluation: "Evaluation",
        posterior: str,
        quantity: str,
        nats: Tensor,
        tokens: Tensor,
        effective: Tensor | None = None,
    ) -> list[Score]:
        """Score a log-likelihood for each sentence and for each token; ``effective`` is the number of draws [B]."""
        value, error = mean_and_error(nats)
        ratio = per_token(nats, tokens)
        details: dict[str, Any] = {"samples": evaluation.settings.samples, "tokens": float(tokens.mean())}
        warnings: tuple[str, ...] = ()
        if effective is not None:
            details["effective_sample_size"] = float(effective.mean())
            if float((1 / effective).mean()) > ENOUGH:
                few = f"few of the draws of z count (effective number {effective.mean():.1f}); take more --samples"
                warnings = (few,)
        return [
            self.score(
                evaluation, value, error, len(nats), quantity=quantity, posterior=posterior, protocol="predictive",
                points=ExampleValues.from_values(nats.tolist()), details=details, warnings=warnings,
            ),
            self.score(
                evaluation, ratio.value, ratio.error, len(nats), quantity=f"{quantity} per token", posterior=posterior,
                protocol="predictive", unit=_TOKEN, details=details, warnings=warnings,
            ),
        ]  # fmt: skip

"""Translation through z: the log-likelihood of a sentence given its translation, alone, and given another sentence."""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from mmgen.contrib.translation.languages import (
    complete_points,
    count_tokens,
    draws_given,
    explain_missing_languages,
    has_marginal,
    languages,
    log_likelihood_in_parts,
    log_mean,
    marginal_log_weights,
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

    for each language t and each other language s that the posterior reads. ``gain`` is log p(t | s) - log p(t), pair by
    pair: what the sentence says of its translation, with log p(t) by as many importance samples of the model's own
    q(z | t), as in the metric ``sentences``. Both are bounds from below, which are tight as K grows.

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
        alone: dict[str, Tensor] = {}  # log p(t)
        known = [name for name in names if sources != [None] and has_marginal(evaluation.loaded, (name,))]
        share = 1 / (len(known) + 2 * len(sources))
        for place, name in enumerate(known):
            weights = map_fractions(marginal_log_weights(evaluation, points, (name,)), place * share, share)
            alone[name] = log_mean((yield from weights)[0])
        for place, source in enumerate(sources):
            targets = [name for name in names if name != source]
            scored = self._score_source(evaluation, posterior, source, targets, points, alone)
            scores += yield from map_fractions(scored, (len(known) + 2 * place) * share, 2 * share)
        return scores

    def _score_source(
        self,
        evaluation: "Evaluation",
        posterior: str,
        source: str | None,
        targets: list[str],
        points: Batch,
        alone: dict[str, Tensor],
    ) -> Generator[float, None, list[Score]]:
        """Score all translations of sentences in one language; ``alone`` has log p(t) [B] by language."""
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
            nats = {f"log p({name}|{source})" if source else f"log p({name})": log_mean(true[name])}
            if source is not None:
                nats[f"log p({name}|shuffled {source})"] = log_mean(other[name])
                nats[f"beside another sentence, {source} to {name}"] = log_mean(true[name]) - log_mean(other[name])
                if name in alone:
                    nats[f"gain, {source} to {name}"] = log_mean(true[name]) - alone[name]
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

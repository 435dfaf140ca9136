"""Log-likelihoods of sentences in several languages, alone and together, and how much their posteriors say.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 7 and Table 4
    Generating Sentences from a Continuous Space (Bowman, Vilnis, Vinyals, Dai, Jozefowicz, Bengio, 2016),
    arXiv:1511.06349: a model whose divergence vanishes is a language model
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from mmgen.contrib.translation.languages import (
    complete_points,
    count_tokens,
    explain_missing_languages,
    has_marginal,
    languages,
    log_mean,
    marginal_log_weights,
    per_token,
    unigram_cost,
)
from mmgen.core.progress import map_fractions
from mmgen.evaluation import needs
from mmgen.evaluation.proposals import mean_and_error
from mmgen.evaluation.settings import POINTS
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics._base import ExampleValues, Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation
    from mmgen.generation import TrainedModel

__all__ = ["Sentences"]


_VANISHED = 1.0
"""Nats of divergence below which a model hardly uses z."""
_TOKEN = "nats a token"
_SUM = "the sum of the terms that training maximises; probably what WG's Table 4 counts, which they do not say"


def _missing_posteriors(evaluation: "Evaluation") -> str:
    """Return a reason if the model lacks a Gaussian posterior of each language or of all together; else ""."""
    names = languages(evaluation.loaded)
    if all(has_marginal(evaluation.loaded, query) for query in [*((name,) for name in names), tuple(names)]):
        return ""
    return "needs q(z | sentence) of each language and of all, of one layer of z; train with --objective mvae"


class Sentences(Metric):
    r"""log p of each language, of all together and of the sum of both, with KL(q(z | sentences) || p(z)) of each.

    .. math:: \log p(X) \ge \log \frac{1}{K} \sum_k \frac{p(z_k) \prod_m p(x_m | z_k)}{q(z_k | X)},
              \quad z_k \sim q(z | X)

    in nats a sentence (or pair) and nats a token, the end of a sentence being a token and padding none. Scores have all
    words before the next one: word dropout is of training alone. Beside them stands the cost of training frequencies
    of words (``unigrams``). Protocol ``bound`` is the mean of log weights. A divergence below 1 nat means that the
    model is a language model, which does not use z, and the score says so.
    """

    unit = "nats"
    better = "higher"
    further_units: ClassVar = {_TOKEN: "higher", "nats of KL": "neither"}
    posteriors = "none"
    points = "averaged"
    reads = ("samples", *POINTS)
    protocols: ClassVar = {
        "importance": "The log of the mean of K importance weights: a bound that is tight as K grows.",
        "bound": "The mean of log weights: the one-sample bound.",
        "closed form": "The divergence of Gaussians.",
    }
    columns: ClassVar = {"unigrams": "unigrams", "tokens": "tokens", "draws of z": "samples"}
    needs = (explain_missing_languages, _missing_posteriors)

    @classmethod
    def claims(cls, loaded: "TrainedModel") -> bool:
        return len(languages(loaded)) > 1

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        names, points = languages(evaluation.loaded), complete_points(evaluation)
        needs.explain_missing_memory(evaluation, points.size)
        queries = [*((name,) for name in names), tuple(names)]
        scores: list[Score] = []
        values: dict[str, dict[tuple[str, ...], Tensor]] = {"importance": {}, "bound": {}}
        for place, query in enumerate(queries):
            share = 1 / len(queries)
            log_w, q = yield from map_fractions(marginal_log_weights(evaluation, points, query), place * share, share)
            values["importance"][query] = log_mean(log_w)
            values["bound"][query] = log_w.mean(0).cpu()
            scores.append(self._score_kl(evaluation, q, query))
        tokens = {name: count_tokens(evaluation.loaded, points, name).cpu() for name in names}
        unigrams = {name: unigram_cost(evaluation, name, points) for name in names}
        for protocol, by_query in values.items():
            for query in queries:
                scores += self._score_both(evaluation, query, by_query[query], protocol, tokens, unigrams)
            every = torch.stack(list(by_query.values())).sum(0)
            scores += self._score_both(evaluation, tuple(names), every, protocol, tokens, unigrams, queries)
        return scores

    def _score_kl(self, evaluation: "Evaluation", q: DiagonalGaussian, query: tuple[str, ...]) -> Score:
        kl = q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean)).double().cpu()
        value, error = mean_and_error(kl)
        warning = (
            f"KL(q(z|{', '.join(query)}) || p(z)) is {value:.2f} nats, less than {_VANISHED:g}: this is a language "
            "model, whose sentences hardly depend on z; train with larger objective.free_nats or "
            "model.text_network.word_dropout"
        )
        return self.score(
            evaluation, value, error, len(kl), quantity=f"KL(q(z|{','.join(query)}))", posterior="own",
            protocol="closed form", unit="nats of KL", points=ExampleValues.from_values(kl.tolist()),
            warnings=(warning,) if value < _VANISHED else (),
        )  # fmt: skip

    def _score_both(
        self,
        evaluation: "Evaluation",
        query: tuple[str, ...],
        nats: Tensor,
        protocol: str,
        tokens: dict[str, Tensor],
        unigrams: dict[str, float],
        terms: list[tuple[str, ...]] | None = None,
    ) -> list[Score]:
        """Score log p of the languages in ``query``, or the sum of ``terms``, for each sentence and for each token."""
        quantity = " + ".join(f"log p({','.join(each)})" for each in terms or [query])
        times = sum(query[0] in each for each in terms or [query])  # terms that each language is in
        count = times * torch.stack([tokens[name] for name in query]).sum(0)
        cost = -times * sum(float(tokens[name].mean()) * unigrams[name] for name in query)
        mean_count = float(count.mean())
        details = {"samples": evaluation.settings.samples, "tokens": mean_count, **({"terms": _SUM} if terms else {})}
        value, error = mean_and_error(nats)
        ratio = per_token(nats, count)
        return [
            self.score(
                evaluation, value, error, len(nats), quantity=quantity, posterior="own", protocol=protocol,
                points=ExampleValues.from_values(nats.tolist()), details={**details, "unigrams": cost},
            ),
            self.score(
                evaluation, ratio.value, ratio.error, len(nats), quantity=f"{quantity} per token", posterior="own",
                protocol=protocol, unit=_TOKEN, details={**details, "unigrams": cost / mean_count},
            ),
        ]  # fmt: skip

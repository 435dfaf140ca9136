"""Retrieval: how well a model finds the picture of a description among N, and the description of a picture.

References:
    Deep Visual-Semantic Alignments for Generating Image Descriptions (Karpathy, Fei-Fei, 2015), arXiv:1412.2306,
    Section 4.1: recall at k and median rank
    Generating Images from Captions with Attention (Mansimov, Parisotto, Ba, Salakhutdinov, 2015), arXiv:1511.02793,
    Section 4.3: pictures ranked by p(x | caption), normalised over captions
"""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.core.progress import map_fractions
from mmgen.core.seeding import numpy_generator, stream_key, torch_generator
from mmgen.evaluation import needs
from mmgen.evaluation.importance import latents_per_pass
from mmgen.evaluation.likelihoods import has_description, main_modality
from mmgen.evaluation.needs import check_slow_pairs, importance_samples
from mmgen.evaluation.retrieved import Ranks
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.posteriors import posterior_of
from mmgen.results.standard_errors import binomial_error
from mmgen.training.precision import autocast

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Retrieval"]


_CUTOFFS = (1, 5, 10, 50)
_RESAMPLES = 200
_LATENTS = 8192
"""Latents for which a description is scored together."""
_CONDITIONAL_DRAWS = 10
"""Default number of draws of each pair of a conditional model, whose every pair is decoded."""


def _missing_image_or_description(evaluation: "Evaluation") -> str:
    """Return why the model cannot compare pictures with descriptions; "" if it can."""
    loaded = evaluation.loaded
    name, image = _describing_modality(evaluation), main_modality(loaded)
    if name is None:
        return "needs a model of pictures and descriptions, and this one has no descriptions; use another model"
    if name in loaded.model.conditional_on:
        needs.check_modalities(evaluation, [image])
        return ""
    if not loaded.model.has_posterior((image,)):
        return (
            f"draws from q(z | {image}), and this model has no such posterior: train one with an objective that has "
            "it, such as telbo or mvae"
        )
    if name not in loaded.model.modalities and not _posteriors_reading(evaluation, name):
        kind = "text" if loaded.text is not None else "attributes"
        return (
            f"needs p({name} | z) or a q(z | {name}), and {loaded.path} has neither among the chosen posteriors; "
            f"fit one with: mmgen fit-aggregate {loaded.model_path} --given {kind}"
        )
    needs.check_modalities(evaluation, [image])
    return ""


def _check_resources(evaluation: "Evaluation") -> str:
    """Return "" if draws and scores of all pairs fit in memory and in an hour; otherwise raise an error."""
    settings = evaluation.settings
    check_memory(8 * settings.samples * settings.pool, "the draws of all pictures", "use fewer --samples or --pool")
    check_memory(40 * settings.pool**2, "the scores of all pairs", "use a smaller --pool")
    if (name := _describing_modality(evaluation)) is not None:
        check_slow_pairs(evaluation, _posteriors_reading(evaluation, name))
    return ""


def _draws(evaluation: "Evaluation") -> int:
    """Return the number of draws of z for each picture, or for each pair of a conditional model."""
    settings = evaluation.settings
    if evaluation.loaded.model.conditional_on and "samples" not in settings.model_fields_set:
        return _CONDITIONAL_DRAWS
    return importance_samples(evaluation)


def _describing_modality(evaluation: "Evaluation") -> str | None:
    """Return the name of the modality to retrieve: captions if the model generates or reads them, else attributes."""
    loaded = evaluation.loaded
    if loaded.model.conditional_on:
        return loaded.model.conditional_on[0]
    known = [part.name for part in (loaded.text, loaded.attributes) if part is not None]
    usable = [name for name in known if name in loaded.model.modalities or _posteriors_reading(evaluation, name)]
    return next(iter([*usable, *known]), None)


def _posteriors_reading(evaluation: "Evaluation", name: str) -> list[str]:
    """Return the names of the evaluated posteriors that condition on the modality ``name``."""
    reading = [one for one in evaluation.posteriors if not evaluation.ignores_text(one)]
    return [posterior for posterior in reading if name in evaluation.loaded.reads(posterior)]


class Retrieval(Metric):
    r"""Recall at 1, 5, 10 and 50 and median rank of the right one of N examples, from description to picture and back.

    Protocol ``text-given-image`` ranks by :math:`\log p(y|x) \approx \log \frac1K \sum_k p(y|z_k)`; ``evidence``, once
    for each posterior of the description, by how much likelier it makes the picture,

    .. math:: \log p(x|y) - \log p(x) \approx \log \sum_k w_k \frac{q(z_k|y)}{p(z_k)}, \quad
              w_k \propto \frac{p(x|z_k) \, p(z_k)}{q(z_k|x)}, \quad z_k \sim q(z|x),

    the weights adding up to one: the same K draws (``--samples``) of each picture serve all descriptions. With the
    exact posterior both rank pictures alike.

    A conditional model, such as one trained by ``cvae``, has protocol ``pooled-evidence`` instead: log p(x|y) of every
    pair, importance-weighted with draws of q(z|x,y) (10 by default; the same noise for all descriptions of a picture),
    less the log of its mean over the pool's descriptions. Posteriors fitted to the description take the place of p(z).

    N (``--pool``) random examples with a picture and a description are queries and candidates; of several captions of a
    picture all are, and any of them is right. Candidates with the same description are right too: R@k counts any of
    them, the rank is that of the first. Ties are in random order, so that
    a model that ignores the text is at chance, which stands beside each score. Standard errors are over pictures, as if
    each had candidates of its own; for the median rank by bootstrap. They do not include the noise of the draws, which
    for small K makes scores worse, not better.
    """

    unit = "%"
    better = "higher"
    protocols: ClassVar = {
        "text-given-image": "Ranked by log p(text | image). Ties are in random order.",
        "evidence": "Ranked by log p(image | text) - log p(image). Ties are in random order.",
        "pooled-evidence": "Ranked by log p(image | text) less the log of its mean over the pool's texts.",
    }
    further_units: ClassVar = {"ranks": "lower"}
    posteriors = "together"
    points = "seen"
    reads = ("pool", "samples", "posteriors", *POINTS)
    conditions: ClassVar = ("pool", "described")
    columns: ClassVar = {"chance": "chance", "among": "pool", "same description": "shared", "draws": "samples"}

    needs = (needs.explain_ignored_guidance, _missing_image_or_description, _check_resources)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        name = _describing_modality(evaluation)
        assert name is not None  # needs refuse models without descriptions
        points, words, of, owner = _select_candidates(evaluation, name)
        conditional = name in evaluation.loaded.model.conditional_on
        work = (self._score_conditional_pairs if conditional else self._score_pairs)(evaluation, name, points, words)
        tables = yield from map_fractions(work, 0.0, 1.0)
        described = np.zeros((points.size, words.size), np.bool_)
        described[owner, of] = True
        same = described[:, of]  # [pictures, captions]
        shared = float(100 * (same.sum(0) > 1).mean())
        queries_of = {
            "image to text": [np.array([picture]) for picture in range(points.size)],
            "text to image": [np.flatnonzero(owner == picture) for picture in range(points.size)],
        }
        scores = []
        for (protocol, source), table in tables.items():
            table = table[:, of].double()  # [pictures, captions]
            pairs = (table - table.logsumexp(1, keepdim=True) if conditional else table).cpu().numpy()
            for direction, ranks in (
                ("image to text", Ranks.from_scores(pairs, same)),
                ("text to image", Ranks.from_scores(pairs.T, same.T)),
            ):
                fixed: dict[str, Any] = {"posterior": source, "protocol": protocol}
                scores += self._score_direction(
                    evaluation, direction, name, ranks, shared, queries_of[direction], fixed
                )
        return scores

    def _score_pairs(
        self, evaluation: "Evaluation", name: str, points: Batch, words: Batch
    ) -> Generator[float, None, dict[tuple[str, str], Tensor]]:
        """Return scores [N, M] of all pairs of N pictures and M descriptions, by (protocol, posterior)."""
        loaded, settings, image = evaluation.loaded, evaluation.settings, main_modality(evaluation.loaded)
        model, read = loaded.model, _posteriors_reading(evaluation, name)
        q = posterior_of(model, points, (image,), settings.precision)
        generator = torch_generator(settings.seed, "retrieval", device=loaded.device)
        z = q.sample(generator, (importance_samples(evaluation),))  # [K, N, D]
        columns_by_key: dict[tuple[str, str], list[Tensor]] = {("evidence", posterior): [] for posterior in read}
        if name in model.modalities:
            columns_by_key = {("text-given-image", image): [], **columns_by_key}
        weights = z.new_zeros(())
        log_prior = torch.stack([model.log_prior(draws) for draws in z]).double()
        if read:
            parts = []
            for number, draws in enumerate(z):
                with autocast(loaded.device, settings.precision):
                    likelihood = model.log_likelihood(image, draws[None], points)[0]
                parts.append(likelihood.double() + log_prior[number] - q.log_prob(draws).double())
                yield 0.5 * (number + 1) / len(z)
            weights = torch.stack(parts).log_softmax(0)  # [K, N]
        flat = z.flatten(0, 1)
        for number in range(words.size):
            query = words[number : number + 1]
            for protocol, posterior in columns_by_key:
                if protocol == "evidence":
                    density = loaded.posteriors[posterior]
                    log_q = torch.cat([density.log_prob(part[:, None], query)[:, 0] for part in flat.split(_LATENTS)])
                    scored = (weights + log_q.double().reshape(z.shape[:2]) - log_prior).logsumexp(0)
                else:
                    log_likelihoods = []
                    for part in flat.split(_LATENTS):
                        with autocast(loaded.device, settings.precision):
                            log_likelihoods.append(model.log_likelihood(name, part[:, None], query)[:, 0].double())
                    scored = torch.cat(log_likelihoods).reshape(z.shape[:2]).logsumexp(0) - np.log(len(z))
                columns_by_key[protocol, posterior].append(scored)
            start = 0.5 if read else 0.0
            yield start + (1 - start) * (number + 1) / words.size
        return {key: torch.stack(columns, 1) for key, columns in columns_by_key.items()}

    def _score_conditional_pairs(
        self, evaluation: "Evaluation", name: str, points: Batch, words: Batch
    ) -> Generator[float, None, dict[tuple[str, str], Tensor]]:
        """Return log p(image | text) [N, M] of all pairs under a conditional model, by (protocol, posterior)."""
        loaded, settings, image = evaluation.loaded, evaluation.settings, main_modality(evaluation.loaded)
        model, draws = loaded.model, _draws(evaluation)
        device = torch.device(loaded.device)
        read = [
            posterior for posterior in _posteriors_reading(evaluation, name) if loaded.posteriors[posterior].is_fitted
        ]
        pictures = points.select([image])
        at_once = max(1, latents_per_pass(int(np.prod(pictures.values[image].shape[1:]))) // draws)
        columns: dict[str, list[Tensor]] = {posterior: [] for posterior in ("prior", *read)}
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            for number in range(words.size):
                torch.manual_seed(stream_key(settings.seed, "retrieval"))  # the same draws for all descriptions
                parts: dict[str, list[Tensor]] = {posterior: [] for posterior in columns}
                for start in range(0, pictures.size, at_once):
                    some = pictures[start : start + at_once]
                    batch = some | words[number : number + 1].repeat(some.size)
                    trace = model.trace(batch, (image, name), draws, (image,))
                    weight = trace.log_weight().double()
                    for posterior, values in parts.items():
                        if posterior != "prior":
                            log_q = loaded.posteriors[posterior].log_prob(trace.z, batch.select([name]))
                            log_prior = model.posterior(batch, ()).log_prob(trace.z).double()
                            values.append((weight + log_q.double() - log_prior).logsumexp(0))
                        else:
                            values.append(weight.logsumexp(0))
                for posterior, values in parts.items():
                    columns[posterior].append(torch.cat(values) - np.log(draws))
                yield (number + 1) / words.size
        return {("pooled-evidence", posterior): torch.stack(found, 1) for posterior, found in columns.items()}

    def _score_direction(
        self,
        evaluation: "Evaluation",
        direction: str,
        name: str,
        ranks: Ranks,
        shared: float,
        queries_of: Sequence[NDArray[np.int64]],
        fixed: dict[str, Any],
    ) -> list[Score]:
        """Return the scores of one direction, such as from picture to description: recalls and median rank.

        Standard errors are over the N pictures, which ``queries_of`` [N] names the queries of.
        """
        settings = evaluation.settings
        count, chance = len(ranks.better), ranks.chance
        about = {
            "pool": ranks.candidates,
            "samples": _draws(evaluation),
            "described": name,
            "shared": shared,
        }
        scores = []
        for k in _CUTOFFS:
            if k < ranks.candidates:
                values = 100 * ranks.recall_at(k)
                value = float(values.mean())
                scores.append(
                    self.score(
                        evaluation,
                        value,
                        binomial_error(value, len(queries_of)),
                        count,
                        quantity=f"R@{k}, {direction}",
                        points=ExampleValues.from_values(values),
                        details={**about, "chance": float(100 * chance.recall_at(k).mean())},
                        **fixed,
                    )
                )
        generator = numpy_generator(settings.seed, "retrieval", direction)
        pictures = generator.integers(0, len(queries_of), (_RESAMPLES, len(queries_of)))
        resampled = np.array(
            [np.median(ranks.ranks[np.concatenate([queries_of[one] for one in chosen])]) for chosen in pictures]
        )
        scores.append(
            self.score(
                evaluation,
                float(np.median(ranks.ranks)),
                float(resampled.std(ddof=1)),
                count,
                quantity=f"median rank, {direction}",
                unit="ranks",
                details={**about, "chance": float(np.median(chance.ranks)), "ranks": ranks.ranks.tolist()},
                **fixed,
            )
        )
        return scores


def _select_candidates(
    evaluation: "Evaluation", name: str
) -> tuple[Batch, Batch, NDArray[np.int64], NDArray[np.int64]]:
    """Return examples with picture and complete description, and all their captions.

    Returns:
        The N examples, the M distinct descriptions, and for each of P captions which description it is [P] and which
        example it is of [P]. Where examples have one description each, P is N.
    """
    points, image = evaluation.data_points, main_modality(evaluation.loaded)
    if name not in points.values:
        raise UsageError(
            f"retrieval needs {name}, but dataset {evaluation.dataset.path} has none; give a dataset with {name}"
        )
    present = points.present[name]
    whole = present.all(-1) if present.dim() > 1 else has_description(points, name)
    rows = (points.present[image] & whole).nonzero().flatten()[: evaluation.settings.pool]
    if len(rows) < 2:
        raise UsageError(
            f"retrieval needs at least two examples with a picture and a complete description, got {len(rows)} in the "
            f"{evaluation.settings.part} part; choose another with --part"
        )
    chosen = points[rows]
    text = evaluation.dataset.texts.get(name)
    if text is None or text.captions == 1:
        key, owner = chosen.values[name].cpu().numpy(), np.arange(len(rows))
        _, first, of = np.unique(key, axis=0, return_index=True, return_inverse=True)
        words = chosen[torch.from_numpy(first).to(rows.device)].select([name])
        return chosen, words, of.reshape(-1), owner
    captions = evaluation.dataset.read_captions(name, evaluation.rows_of_points[rows.cpu().numpy()])
    owner, place = np.nonzero(captions[:, :, 0] != text.padding)
    distinct, of = np.unique(captions[owner, place].astype(np.int64), axis=0, return_inverse=True)
    codes = torch.from_numpy(distinct).to(rows.device)
    words = Batch({name: codes}, {name: torch.ones(len(codes), dtype=torch.bool, device=rows.device)})
    return chosen, words, of.reshape(-1), owner

"""Coherence: how often pictures of all modalities that are drawn from one z show the same, each read by its own judge.

References:
    Variational Mixture-of-Experts Autoencoders for Multi-Modal Deep Generative Models (Shi et al., 2019),
    arXiv:1911.03393, Section 4.1: joint and cross coherence
    Generalized Multimodal ELBO (Sutter, Daunhawer, Vogt, 2021), arXiv:2105.02470: by the number of modalities given
"""

from collections.abc import Generator
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.progress import map_fractions
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries, weighted_mean
from mmgen.evaluation.settings import DESCRIPTIONS
from mmgen.generation.classifiers import check_classifier
from mmgen.generation.decode import decode_pictures, drawable_pictures
from mmgen.generation.descriptions import Descriptions, complete_descriptions, empty_description
from mmgen.generation.latents import draw_completions, draw_latents
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.metrics.coverage import combine_with_bias, exact_coverage, query_coverage_error
from mmgen.posteriors import posterior_of
from mmgen.results.naming import RETRIEVAL
from mmgen.results.standard_errors import binomial_error, share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Coherence"]

_SUBSETS = 10
"""Subsets of one size that are given, at most; a choice by the seed if there are more."""

Codes = NDArray[np.uint8]
Numbers = NDArray[Any]


def _explain_missing_views(evaluation: "Evaluation") -> str:
    """Return a reason if the model does not draw several kinds of pictures, or a judge of one is missing; else ""."""
    loaded, views = evaluation.loaded, _views(evaluation)
    if len(views) < 2:
        return "needs a model that draws several modalities of pictures, and this one does not; choose another metric"
    if loaded.model.conditional_on:
        return "needs decoders that read z alone, and those of this model read words too; choose another metric"
    if RETRIEVAL in evaluation.posteriors:
        return f"draws all pictures from one z, and {RETRIEVAL} has none; leave --posterior {RETRIEVAL} out"
    if missing := [view for view in views if view not in evaluation.judges_of_views]:
        return (
            f"needs a judge of each modality of pictures, got none that reads {', '.join(missing)}; make one with: "
            f"mmgen train-classifier {evaluation.dataset.path} --modality {missing[0]}, and name it with --judge"
        )
    for view in views:
        judge = evaluation.judges_of_views[view]
        check_classifier(evaluation.attributes, judge, loaded.observed[view])
        if judge.hints:
            return f"needs judges that read all attributes, and that of {view} has hints; make one with --told nothing"
    needs.check_modalities(evaluation, views)
    return ""


class Coherence(Metric):
    r"""Percentage of pictures, drawn given other pictures, that show what these show; and of joint draws that agree.

    For a number s of given pictures, z is drawn once for each test example and each subset of s modalities from the
    model's own q(z | subset), and every other modality is decoded from it:

    .. math:: \frac{1}{N} \sum_i \frac{1}{P} \sum_{S, t \notin S} I(\hat y^t(x^t_{i,S}) = y_i)

    with the P pairs of subset and target; a picture counts if its judge reads all known attributes of the example.
    Standard errors are over examples. At most ten subsets of a size are given, chosen by the seed; the number is a
    condition.

    An evaluated q_agg(z | any subset) that reads pictures is measured likewise, and its draws given nothing are joint.

    ``joint coherence`` is the percentage of draws from p(z), or a fitted q(z), whose pictures are all read alike. Its
    ``coverage`` compares what is read with the frequencies of training, as the metric coverage does, mean over
    modalities: views that always say "3" are coherent, and cover little. For a posterior that reads attributes,
    pictures of all modalities are drawn for descriptions: ``coherence`` counts draws in which each shows what is given
    and all agree in what is open, ``agreement of open words`` the latter alone.

    ``ceiling`` is the same measure of the pictures of real examples.
    """

    unit = "%"
    better = "higher"
    posteriors = "together"
    points = "averaged"
    judges_views = True
    compares_judges = True
    reads = ("judge", "posteriors", "number", *DESCRIPTIONS)
    columns: ClassVar = {"real pictures": "ceiling", "subsets": "subsets", "queries": "queries"}
    conditions = ("judges", "subsets")
    needs = (_explain_missing_views,)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        views, words, points = _views(evaluation), evaluation.attributes.name, evaluation.data_points
        whole = torch.stack([points.present[view] for view in views]).all(0) & points.present[words].any(-1)
        if not whole.any():
            part = evaluation.settings.part
            raise UsageError(
                f"coherence needs examples with all pictures, got none in the {part} part; choose a --part"
            )
        points = points[whole.nonzero().flatten()]
        known = points.values[words].masked_fill(~points.present[words], UNKNOWN).cpu().numpy().astype(np.uint8)
        real = np.stack([_read(evaluation, view, points.values[view]) for view in views])
        reading = [name for name in evaluation.posteriors if {*views} & {*evaluation.loaded.posteriors[name].reads}]
        scores, sources = [], ["", *reading]
        for done, source in enumerate(sources):
            work = self._score_given_pictures(evaluation, source, points, known, real)
            scores += yield from map_fractions(work, 0.6 * done / len(sources), 0.6 / len(sources))
        asked = [(name, queries) for name in evaluation.posteriors for queries in _make_queries(evaluation, name)]
        for done, (name, queries) in enumerate(asked):
            drawn = _draw_all(evaluation, name, queries)
            codes = yield from map_fractions(drawn, 0.6 + 0.4 * done / len(asked), 0.4 / len(asked))
            scores += self._score_draws(evaluation, name, queries, codes, real, known)
        return scores

    def _score_given_pictures(
        self, evaluation: "Evaluation", source: str, points: Batch, known: Codes, real: Codes
    ) -> Generator[float, None, list[Score]]:
        """Score pictures drawn given others, z from a posterior that reads pictures, or if "" from the model's own."""
        loaded, seed, views = evaluation.loaded, evaluation.settings.seed, _views(evaluation)
        known_to = {*loaded.posteriors[source].reads}.issuperset if source else loaded.model.has_posterior
        scores, nothing = [], empty_description(loaded)
        for size in range(1, len(views)):
            subsets = [given for given in combinations(views, size) if known_to(given)]
            chosen = np.sort(numpy_generator(seed, "subsets", size).permutation(len(subsets))[:_SUBSETS])
            right, ceiling = [], []
            for done, place in enumerate(chosen):
                z = _draw_given(evaluation, source, subsets[place], points)[None]
                for number, target in enumerate(views):
                    if target not in subsets[place]:
                        right.append(_matches(_read_drawn(evaluation, target, z, nothing)[0], known))
                        ceiling.append(_matches(real[number], known))
                yield (size - 1 + (done + 1) / len(chosen)) / (len(views) - 1)
            if right:
                shown = np.stack(right)  # [pairs of subset and target, N, A]
                values, highest = (100 * np.stack(each).all(-1).mean(0) for each in (right, ceiling))
                details = {"subsets": f"{len(chosen)} of {len(subsets)}", "real": len(known)}
                scores.append(
                    self._score_shares(
                        evaluation, f"right given {size} of {len(views)} pictures", values, highest,
                        np.ones(len(known)), shown[..., 0].size, len(known), details,
                        by_attribute=_by_attribute(evaluation, shown, known != UNKNOWN), posterior=source,
                    )
                )  # fmt: skip
        return scores

    def _score_draws(
        self, evaluation: "Evaluation", posterior: str, queries: Queries, codes: Codes, real: Codes, known: Codes
    ) -> list[Score]:
        """Score what is read [M, Q, n, A] from draws of all modalities for descriptions, which may give nothing."""
        asked = (queries.codes != UNKNOWN)[:, None]
        shown = np.where(asked, (codes == queries.codes[:, None]).all(0), (codes == codes[0]).all(0))
        of_real = np.where(asked, _matches(real, known).all(0), (real == real[0]).all(0))
        counted = {"coherence" if asked.any() else "joint coherence": np.ones_like(asked)}
        if asked.any() and not asked.all():
            counted["agreement of open words"] = ~asked
        details = {"queries": len(queries), "images_per_query": codes.shape[2], "real": len(known)}
        fixed: dict[str, Any] = {"posterior": posterior, "given": queries.given_count}
        scores = []
        for quantity, words in counted.items():
            values, ceiling = (100 * (each | ~words).all(-1).mean(1) for each in (shown, of_real))
            scores.append(
                self._score_shares(
                    evaluation, quantity, values, ceiling, queries.weights, codes[..., 0].size, shown[..., 0].size,
                    details, by_attribute=_by_attribute(evaluation, shown, words), **fixed,
                )
            )  # fmt: skip
        return scores if asked.all() else [*scores, self._score_coverage(evaluation, queries, codes, details, **fixed)]

    def _score_shares(
        self, evaluation: "Evaluation", quantity: str, values: Numbers, ceiling: Numbers, weights: Numbers,
        pictures: int, draws: int, details: dict[str, Any], **fixed: Any,
    ) -> Score:  # fmt: skip
        """Score a mean of percentages [U] of examples or descriptions, beside the same of real ones [U]."""
        mean, highest = (weighted_mean(each, weights, evaluation.settings.seed) for each in (values, ceiling))
        alone, points = mean.stderr is None, ExampleValues.from_values(values, weights)
        error = binomial_error(mean.value, draws) if alone else share_error(mean.value, mean.stderr, draws, len(values))
        its_error = binomial_error(highest.value, details["real"])
        about = {"ceiling": highest.value, "ceiling_stderr": its_error, "judges": _judges(evaluation), **details}
        return self.score(
            evaluation, mean.value, error, pictures, quantity=quantity, points=None if alone else points,
            details=about, **fixed,
        )  # fmt: skip

    def _score_coverage(
        self, evaluation: "Evaluation", queries: Queries, codes: Codes, details: dict[str, Any], **fixed: Any
    ) -> Score:
        """Score whether what is read [M, Q, n, A] of open words is as varied as in training, mean over modalities."""
        frequencies, seed = evaluation.questions.frequencies, evaluation.settings.seed
        each = [exact_coverage(queries, read, frequencies, seed) for read in codes]
        mean = weighted_mean(np.mean([one.values for one in each], 0), queries.weights, seed)
        bias = float(np.average(np.mean([one.bias for one in each], 0), weights=queries.weights))
        if mean.stderr is None:  # modalities of a draw are not independent, so that their mean is as uncertain as one
            errors = [query_coverage_error(queries, read, frequencies) for read in codes]
            mean = replace(mean, stderr=float(np.mean(errors)))
        value, stderr = combine_with_bias(mean, bias, codes[0, ..., 0].size)
        return self.score(
            evaluation, value, stderr, codes[..., 0].size, quantity="coverage" if fixed["given"] else "joint coverage",
            details={**details, "judges": _judges(evaluation), "bias": bias, "unclipped": mean.value}, **fixed,
        )  # fmt: skip


def _views(evaluation: "Evaluation") -> list[str]:
    return drawable_pictures(evaluation.loaded)


def _draw_given(evaluation: "Evaluation", source: str, given: tuple[str, ...], points: Batch) -> Tensor:
    """Draw z [N, D], one for each example, from a posterior given some of its pictures."""
    loaded, settings = evaluation.loaded, evaluation.settings
    generator = torch_generator(settings.seed, "coherence", *given, device=points.device)
    if source:
        return loaded.posteriors[source].draw(points.select(given), 1, generator)[0]
    return posterior_of(loaded.model, points, given, settings.precision, settings.seed).sample(generator)


def _read(evaluation: "Evaluation", view: str, pictures: Tensor) -> Codes:
    """Return what the judge of a modality reads from pictures [n, C, H, W], uint8 [n, A]."""
    judge = evaluation.judges_of_views[view]
    return np.asarray(judge.predict(pictures, None, evaluation.settings.precision).cpu().numpy())


def _read_drawn(evaluation: "Evaluation", view: str, z: Tensor, descriptions: Descriptions) -> Codes:
    """Decode z [Q, n, D] to pictures of a modality, and return what its judge reads from them, uint8 [Q, n, A]."""
    loaded, settings = evaluation.loaded, evaluation.settings
    codes = np.empty((*z.shape[:2], len(evaluation.attributes.names)), np.uint8)
    sampled, precision = loaded.observed[view].classifier_reads_samples, settings.precision
    for piece in decode_pictures(loaded, view, z, descriptions, settings.seed, sampled=sampled, precision=precision):
        read = _read(evaluation, view, piece.classifier_input.flatten(0, 1))
        codes[piece.rows, piece.draws] = read.reshape(*piece.means.shape[:2], -1)
    return codes


def _draw_all(evaluation: "Evaluation", posterior: str, queries: Queries) -> Generator[float, None, Codes]:
    """Draw pictures of all modalities from the same z, and return what is read from them, uint8 [M, Q, n, A]."""
    loaded, seed, parts, views = evaluation.loaded, evaluation.settings.seed, [], _views(evaluation)
    count = evaluation.settings.draws if queries.given_count else evaluation.settings.number
    asked = draw_completions(loaded, posterior, complete_descriptions(loaded, queries.codes), count, seed)
    z = draw_latents(loaded, posterior, asked, count, seed)
    for view in views:
        parts.append(_read_drawn(evaluation, view, z, asked))
        yield len(parts) / len(views)
    return np.stack(parts)


def _make_queries(evaluation: "Evaluation", posterior: str) -> list[Queries]:
    """Return what to ask a posterior for: nothing, unless it needs words, and descriptions if it reads attributes."""
    count, reads = len(evaluation.attributes.names), evaluation.loaded.posteriors[posterior].reads
    nothing = Queries(np.full((1, count), UNKNOWN, np.uint8), np.ones(1), count)
    words = evaluation.questions.dropped if evaluation.attributes.name in reads else ()
    described = [evaluation.questions.make_queries(number) for number in words if number < count]
    return [nothing, *described] if not reads or {*reads} & {*_views(evaluation)} else described


def _matches(read: Codes, known: Codes) -> Numbers:
    """Return where readings [..., N, A] are the known attributes [N, A]; True where an attribute is unknown."""
    return np.asarray((read == known) | (known == UNKNOWN))


def _by_attribute(evaluation: "Evaluation", shown: Numbers, counted: Numbers) -> dict[str, float]:
    """Return the percentage of ``shown`` [..., A] for each attribute, where it is ``counted`` [..., A]."""
    names, words = evaluation.attributes.names, np.broadcast_to(counted, shown.shape)
    each = {name: shown[..., index][words[..., index]] for index, name in enumerate(names)}
    return {name: 100 * float(values.mean()) for name, values in each.items() if values.size}


def _judges(evaluation: "Evaluation") -> str:
    judges = sorted(evaluation.judges_of_views.items())
    return ", ".join(f"{view} {judge.network_name} {judge.content_id[:8]}" for view, judge in judges)

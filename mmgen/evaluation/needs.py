"""What metrics need of a model, its data and the settings, and the time that slow log densities may take.

A need is a function of an evaluation that returns "" where it is met, else the rest of a sentence that begins with the
name of the metric: "needs q(z | image), and this model has none". Needs that are about something else than the metric
(memory, another file) raise their own :class:`~mmgen.core.errors.UsageError`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory
from mmgen.evaluation.likelihoods import count_descriptions
from mmgen.evaluation.proposals import MIXTURE
from mmgen.evaluation.training_pictures import explain_missing_training_pictures
from mmgen.posteriors import SLOW
from mmgen.results.naming import RETRIEVAL

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation


Need = Callable[["Evaluation"], str]


def explain_missing_classifier(evaluation: "Evaluation") -> str:
    """Return "" after checking that there is an attribute classifier, and memory for a query of pictures."""
    evaluation.check_judge()
    draws = evaluation.settings.draws
    numbers = draws * max(4 * evaluation.loaded.model.latent_size, len(evaluation.attributes.names))
    check_memory(numbers, f"{draws:,} pictures of a query", "use fewer --draws")
    return ""


def explain_ignored_guidance(evaluation: "Evaluation") -> str:
    """Return a reason if the model is guided, which metrics without descriptions would ignore; else ""."""
    if not evaluation.loaded.guidance:
        return ""
    return "got guidance, but uses no posterior of a description; leave one or the other out"


def explain_missing_retrieval(evaluation: "Evaluation") -> str:
    """Return a reason if retrieval is evaluated without the training pictures; else ""."""
    return explain_missing_training_pictures(evaluation) if RETRIEVAL in evaluation.posteriors else ""


def explain_useless_retrieval(evaluation: "Evaluation") -> str:
    """Return a reason if retrieval is evaluated by a metric of densities; else ""."""
    if RETRIEVAL not in evaluation.posteriors:
        return ""
    return f"needs the density of each posterior, and {RETRIEVAL} has none; leave --posterior {RETRIEVAL} out"


def explain_missing_drawings(evaluation: "Evaluation") -> str:
    """Return a reason if the model generates nothing but words; else ""."""
    if evaluation.loaded.observation is not None:
        return ""
    return "needs a model that draws something besides words, and this one does not; choose another metric"


def explain_missing_image_encoder(evaluation: "Evaluation") -> str:
    """Return a reason if the model has no q(z | main modality), or the dataset lacks that modality; else ""."""
    main = evaluation.loaded.observation
    if main is None or not evaluation.loaded.model.has_posterior((main.name,)):
        return "needs q(z | image), and this model has no such posterior; choose another metric or model"
    check_modalities(evaluation, (main.name,))
    return ""


def explain_missing_encodings(evaluation: "Evaluation") -> str:
    """Return a reason if the model or dataset does not allow to encode examples one by one; else ""."""
    known = evaluation.loaded.settings.data.modalities
    joined = [name for name, described in known.items() if not described.has_rows]
    if evaluation.loaded.observation is None or joined:
        return "needs a model that encodes examples one by one, and this one does not; choose another metric"
    check_modalities(evaluation, evaluation.source_modalities)
    return ""


def explain_unspelled_descriptions(evaluation: "Evaluation") -> str:
    """Return why a metric cannot ask a posterior that needs whole captions, if captions do not spell them; else ""."""
    questions, text = evaluation.questions, evaluation.loaded.text
    if not questions.whole_captions:
        return ""
    if any(questions.dropped):
        return (
            "got descriptions with attributes left out, but this q(z | text) reads whole captions; use "
            f"--given-count {len(evaluation.attributes.names)}, or fit one with: mmgen fit-aggregate "
            f"{evaluation.loaded.model_path} --given attributes"
        )
    if text is None or not text.slots:
        return (
            "needs captions that spell the attributes of a judge position by position, and those of "
            f"{evaluation.dataset.path} do not; --metric correctness and retrieval work with captions in free words too"
        )
    return ""


def explain_unreadable_queries(evaluation: "Evaluation") -> str:
    """Return a reason if no posterior reads the descriptions, neither as attributes nor as whole captions; else ""."""
    if evaluation.questions.free_captions and not any(evaluation.questions.dropped):
        return ""
    return explain_unspelled_descriptions(evaluation)


def explain_missing_memory(evaluation: "Evaluation", points: int = 1) -> str:
    """Return "" after checking that all importance samples of ``points`` examples fit into memory."""
    settings, advice = evaluation.settings, "use fewer --samples or a smaller --number"
    check_memory(8 * settings.samples * points, f"{settings.samples:,} samples of {points:,} points", advice)
    check_memory(8 * settings.text_samples, f"{settings.text_samples:,} samples of log p(y)", "use fewer")
    return ""


def check_modalities(evaluation: "Evaluation", names: Iterable[str]) -> None:
    """Raise an error unless the dataset has the modalities ``names`` with the model's specifications.

    Raises:
        UsageError: It lacks one, or has one of another shape.
    """
    from mmgen.training.model_run import check_data

    known = evaluation.loaded.observed
    if described := [known[name] for name in names if known.get(name) is not None]:
        check_data(evaluation.dataset, evaluation.loaded.path, *described)


def explain_wrong_text_proposal(evaluation: "Evaluation") -> str:
    """Return "" after checking that the file of --text-proposal was fitted to this model."""
    other, loaded = evaluation.text_proposal, evaluation.loaded
    if other is None:
        return ""
    if other.fitted is None or not other.fitted.reads:
        raise UsageError(
            f"--text-proposal got {other.path}, expected a fitted q(z | y); make one with: "
            f"mmgen fit-aggregate {loaded.model_path} --given text"
        )
    if other.model_header.content_id != loaded.model_header.content_id:
        raise UsageError(
            f"--text-proposal got {other.path}, which was fitted to {other.model_path}, expected one that was "
            f"fitted to {loaded.model_path}"
        )
    return ""


_SAMPLES, _TEXT_SAMPLES = 10, 100
"""Default numbers of importance samples where log densities are slow."""
_SPEED = {"cpu": 5e10, "cuda": 5e12}
"""Floating-point operations a second, roughly: of one core, or of a GPU."""
_MOST_HOURS = 1.0


def importance_samples(evaluation: "Evaluation") -> int:
    """Return the number of importance samples of a point: --samples, or by default fewer where densities are slow."""
    return _samples(evaluation, "samples", _SAMPLES, evaluation.posteriors)


def text_samples(evaluation: "Evaluation") -> int:
    """Return the number of samples of log p(y), likewise: --text-samples, or by default fewer under a slow q(z)."""
    return _samples(evaluation, "text_samples", _TEXT_SAMPLES, _priors(evaluation))


def explain_slow_densities(evaluation: "Evaluation") -> str:
    """Return "" after checking that the log densities of all draws take no more than about an hour."""
    costs = {name: _cost(evaluation, name) for name in evaluation.posteriors}
    priors = _priors(evaluation)
    mixed = sum(costs[name] for name in priors) if evaluation.settings.proposal == MIXTURE else 0.0
    points = min(evaluation.settings.number, len(evaluation.rows()))
    # Densities of the prior count twice for log p(y): as the target, and as one of the proposals.
    words = 2 * sum(costs[name] for name in priors) * text_samples(evaluation)
    words *= count_descriptions(evaluation.loaded, evaluation.data_points) if words >= SLOW else 0
    draws = points * importance_samples(evaluation) * (sum(costs.values()) + mixed)
    _check_hours(evaluation, draws + words, "log-likelihood", "--samples, --text-samples or a smaller --number")
    return ""


def check_slow_pairs(evaluation: "Evaluation", posteriors: Sequence[str]) -> None:
    """Refuse log densities of all pictures under all descriptions that take more than about an hour."""
    cost = sum(_cost(evaluation, name) for name in posteriors)
    pairs = importance_samples(evaluation) * evaluation.settings.pool**2
    _check_hours(evaluation, pairs * cost, "retrieval", "--samples or a smaller --pool")


def _check_hours(evaluation: "Evaluation", operations: float, metric: str, fewer: str) -> None:
    """Raise a UsageError for log densities of so many operations that take more than about an hour."""
    hours = operations / _SPEED["cuda" if evaluation.loaded.device.type == "cuda" else "cpu"] / 3600
    if hours > _MOST_HOURS:
        raise UsageError(
            f"{metric} got so many draws that their log densities by this flow take about {hours:,.1f} hours, expected "
            f"{_MOST_HOURS:g} at most; use fewer {fewer}"
        )


def _samples(evaluation: "Evaluation", option: str, few: int, posteriors: tuple[str, ...]) -> int:
    """Return the setting ``option``; ``few`` where it is left out and the densities of ``posteriors`` are slow."""
    settings = evaluation.settings
    slow = any(_cost(evaluation, name) >= SLOW for name in posteriors)
    number: int = getattr(settings, option)
    return few if slow and option not in settings.model_fields_set else number


def _priors(evaluation: "Evaluation") -> tuple[str, ...]:
    return tuple(name for name in evaluation.posteriors if evaluation.ignores_text(name))


def _cost(evaluation: "Evaluation", posterior: str) -> float:
    return evaluation.loaded.posteriors[posterior].log_density_cost

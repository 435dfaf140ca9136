"""What metrics need of a model, its data and the settings.

A need is a function of an evaluation that returns "" where it is met, else the rest of a sentence that begins with the
name of the metric: "needs q(z | image), and this model has none". Needs that are about something else than the metric
(memory, another file) raise their own :class:`~mmgen.core.errors.UsageError`.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mmgen.core.errors import UsageError
from mmgen.core.memory import check_memory

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = [
    "Need",
    "need_drawn_pictures",
    "need_image_encoder",
    "need_classifier",
    "need_memory_for_samples",
    "check_modalities",
    "need_encodable_examples",
    "need_spelled_descriptions",
    "need_text_proposal_of_model",
    "need_no_guidance",
]

Need = Callable[["Evaluation"], str]


def need_classifier(evaluation: "Evaluation") -> str:
    """Need an attribute classifier, and memory for the latents and predictions of a query's pictures."""
    evaluation.check_judge()
    draws = evaluation.settings.draws
    numbers = draws * max(4 * evaluation.loaded.model.latent_size, len(evaluation.info.names))
    check_memory(numbers, f"{draws:,} pictures of a query", "use fewer --draws")
    return ""


def need_no_guidance(evaluation: "Evaluation") -> str:
    """Need a model without guidance, for metrics that use no posterior of a description."""
    if not evaluation.loaded.guidance:
        return ""
    return "got guidance, but uses no posterior of a description; leave one or the other out"


def need_drawn_pictures(evaluation: "Evaluation") -> str:
    """Need a model that generates pictures, or another kind of data besides words."""
    if evaluation.loaded.observation is not None:
        return ""
    return "needs a model that draws something besides words; this one does not"


def need_image_encoder(evaluation: "Evaluation") -> str:
    """Need q(z | image), or q(z | main modality) for other kinds of data, and a dataset with that modality."""
    main = evaluation.loaded.observation
    if main is None or not evaluation.loaded.model.has_posterior((main.name,)):
        return "needs q(z | image), and this model has no such posterior"
    check_modalities(evaluation, (main.name,))
    return ""


def need_encodable_examples(evaluation: "Evaluation") -> str:
    """Need a model that encodes examples one by one, and a dataset with the modalities of its encoder."""
    known = evaluation.loaded.settings.data.modalities
    joined = [name for name, described in known.items() if not described.by_rows]
    if evaluation.loaded.observation is None or joined:
        return "needs a model that encodes examples by themselves; this one does not"
    check_modalities(evaluation, evaluation.source_modalities)
    return ""


def need_spelled_descriptions(evaluation: "Evaluation") -> str:
    """Need descriptions for the posteriors: whole captions, whose positions spell the attributes."""
    questions, text = evaluation.questions, evaluation.loaded.text
    if not questions.whole_captions:
        return ""
    if any(questions.dropped):
        return (
            "got descriptions with attributes left out, but this q(z | text) reads whole captions; use "
            f"--given-count {len(evaluation.info.names)}, or fit one with: mmgen fit-aggregate "
            f"{evaluation.loaded.model_path} --given attributes"
        )
    if text is None or not text.slots:
        return (
            "needs captions that spell the attributes of a judge position by position, and those of "
            f"{evaluation.dataset.path} do not; --metric correctness and retrieval work with captions in free words too"
        )
    return ""


def need_memory_for_samples(evaluation: "Evaluation", points: int = 1) -> str:
    """Need memory for the log weights of all samples of ``points`` points at once."""
    settings, advice = evaluation.settings, "use fewer --samples or a smaller --number"
    check_memory(8 * settings.samples * points, f"{settings.samples:,} samples of {points:,} points", advice)
    check_memory(8 * settings.text_samples, f"{settings.text_samples:,} samples of log p(y)", "use fewer")
    return ""


def check_modalities(evaluation: "Evaluation", names: Iterable[str]) -> None:
    """Check that the dataset has the modalities ``names`` as the model was trained with them.

    Raises:
        UsageError: It lacks one, or has one of another shape.
    """
    from mmgen.training.model_run import check_data

    known = evaluation.loaded.observed
    if described := [known[name] for name in names if known.get(name) is not None]:
        check_data(evaluation.dataset, evaluation.loaded.path, *described)


def need_text_proposal_of_model(evaluation: "Evaluation") -> str:
    """Need a text proposal that was fitted to the same model, or none."""
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

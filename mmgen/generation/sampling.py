"""Pictures of descriptions with a judge beside them: what ``mmgen sample`` draws, in Python too."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.classifier import load_classifier
from mmgen.core.errors import ArtifactError
from mmgen.core.progress import Watch
from mmgen.generation.descriptions import chosen_posterior, parse
from mmgen.generation.draws import Draws, draw, share_right, unjudged
from mmgen.generation.judge import find_judge

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["sample_and_judge"]


def sample_and_judge(
    loaded: "TrainedModel",
    given: Sequence[str],
    number: int,
    watch: Watch,
    *,
    posterior: str | None = None,
    judge: Path | None = None,
    near: Path | None = None,
    seed: int = 0,
    targets: Sequence[str] = (),
) -> "tuple[Draws, Path | None, Classifier | None]":
    """Draw pictures for descriptions, and show them to a judge where there is one.

    Args:
        loaded: The model or aggregate.
        given: Descriptions.
        number: Pictures of each.
        watch: Is told what the judge finds.
        posterior: Where z comes from; what was fitted, else the model's own, by default.
        judge: The judge; one near the files by default, and none is no error.
        near: A path beside which a judge may lie, besides the model's.
        seed: Seed of the draws.
        targets: Kinds of picture; the main one by default.

    Returns:
        What was drawn, the judge's file and the judge.

    Raises:
        UsageError: The model does not know the words, or has no such posterior.
    """
    asked = parse(loaded, given)
    source = chosen_posterior(loaded, asked, posterior)
    found, judging = _judge(loaded, judge, near, watch)
    drawn = draw(loaded, asked, number, posterior=source, seed=seed, judge=judging, targets=targets)
    if drawn.guidance and drawn.guidance.notice:
        watch.say(drawn.guidance.notice)
    verdict = share_right(drawn)
    for remark in unjudged(drawn):
        watch.say(remark)
    if found and verdict:
        watch.say(f"the judge {found} finds {verdict}")
    return drawn, found, judging


def _judge(
    loaded: "TrainedModel", given: Path | None, near: Path | None, watch: Watch
) -> "tuple[Path | None, Classifier | None]":
    """Return the named classifier, else one near the files; a missing or unreadable one gives a notice, no error."""
    if given is not None:
        return given, load_classifier(given, loaded.device)
    places = [loaded.path, *([near] if near else [])]
    found = find_judge(loaded.model_path, places) if loaded.attributes is not None else None
    if found is None:
        if loaded.observation is None:
            return None, None  # nothing is drawn that anybody could judge
        watch.say("no judge found, so these images are not judged: make one with mmgen train-classifier")
        return None, None
    try:
        return found, load_classifier(found, loaded.device)
    except ArtifactError as error:
        watch.say(f"these images are not judged: {error}")
        return None, None

"""Drawing of pictures for descriptions with an attribute classifier's predictions, for commands and Python."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.classifier import load_classifier
from mmgen.core.errors import ArtifactError
from mmgen.core.progress import Watch
from mmgen.generation.descriptions import parse, select_posterior
from mmgen.generation.draws import Draws, draw, share_right, unjudged
from mmgen.generation.judge import find_judge

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["sample_and_judge"]


def sample_and_judge(
    loaded: "TrainedModel",
    texts: Sequence[str],
    number: int,
    watch: Watch,
    *,
    posterior: str | None = None,
    judge: Path | None = None,
    near: Path | None = None,
    seed: int = 0,
    targets: Sequence[str] = (),
) -> "tuple[Draws, Path | None, Classifier | None]":
    """Draw pictures for descriptions, and predict their attributes if there is a classifier.

    Args:
        loaded: The model or aggregate.
        texts: Descriptions as a person types them.
        number: Pictures of each.
        watch: Observer, who shows the verdict.
        posterior: Name of the posterior; by default the fitted one, else the encoder's.
        judge: The classifier's file; one near the files by default, and none is no error.
        near: A further path beside which a classifier may lie.
        seed: Seed of the draws.
        targets: Image modalities; the main one by default.

    Returns:
        The draws, the classifier's file and the classifier.

    Raises:
        UsageError: The model does not know the words, or has no such posterior.
    """
    descriptions = parse(loaded, texts)
    source = select_posterior(loaded, descriptions, posterior)
    file, classifier = _judge(loaded, judge, near, watch)
    drawn = draw(loaded, descriptions, number, posterior=source, seed=seed, judge=classifier, targets=targets)
    if drawn.guidance and drawn.guidance.notice:
        watch.say(drawn.guidance.notice)
    verdict = share_right(drawn)
    for remark in unjudged(drawn):
        watch.say(remark)
    if file and verdict:
        watch.say(f"the judge {file} finds {verdict}")
    return drawn, file, classifier


def _judge(
    loaded: "TrainedModel", judge: Path | None, near: Path | None, watch: Watch
) -> "tuple[Path | None, Classifier | None]":
    """Return the named classifier, else one near the files; a missing or unreadable one gives a notice, no error."""
    if judge is not None:
        return judge, load_classifier(judge, loaded.device)
    places = [loaded.path, *([near] if near else [])]
    path = find_judge(loaded.model_path, places) if loaded.attributes is not None else None
    if path is None:
        if loaded.observation is None:
            return None, None  # nothing is drawn that anybody could judge
        watch.say("no judge found, so these images are not judged: make one with mmgen train-classifier")
        return None, None
    try:
        return path, load_classifier(path, loaded.device)
    except ArtifactError as error:
        watch.say(f"these images are not judged: {error}")
        return None, None

"""Draws of pictures for descriptions, with the predictions of an attribute classifier."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen.classifier import load_classifier
from mmgen.core.errors import ArtifactError
from mmgen.core.progress import Watch
from mmgen.generation.classifiers import find_classifier
from mmgen.generation.descriptions import parse_descriptions, select_posterior
from mmgen.generation.draws import Draws, draw, format_share_correct, list_unrestricted_warnings

if TYPE_CHECKING:
    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["sample_and_classify"]


def sample_and_classify(
    loaded: "TrainedModel",
    texts: Sequence[str],
    number: int,
    watch: Watch,
    *,
    posterior: str | None = None,
    classifier_path: Path | None = None,
    neighbour: Path | None = None,
    seed: int = 0,
    targets: Sequence[str] = (),
) -> "tuple[Draws, Path | None, Classifier | None]":
    """Draw pictures for descriptions, and predict their attributes if there is a classifier.

    Args:
        loaded: The model or aggregate.
        texts: Descriptions as a person types them.
        number: Number of pictures for each description.
        watch: Receives notices, and the share of attributes that the classifier confirms.
        posterior: Name of the posterior; by default the fitted one, else the encoder's.
        classifier_path: The classifier's file; by default one is searched in the folders of the files.
        neighbour: A further file whose folder is searched.
        seed: Seed of the draws.
        targets: Image modalities; by default the main one.

    Returns:
        The draws, the classifier's file and the classifier, None for both without one.

    Raises:
        UsageError: The model lacks a word of a description, or the posterior.
    """
    descriptions = parse_descriptions(loaded, texts)
    source = select_posterior(loaded, descriptions, posterior)
    file, classifier, notice = _load_classifier(loaded, classifier_path, neighbour)
    drawn = draw(loaded, descriptions, number, posterior=source, seed=seed, classifier=classifier, targets=targets)
    verdict = format_share_correct(drawn)
    for remark in (notice, drawn.notice, *list_unrestricted_warnings(drawn)):
        if remark:
            watch.say(remark)
    if file and verdict:
        watch.say(f"the judge {file} finds {verdict}")
    return drawn, file, classifier


def _load_classifier(
    loaded: "TrainedModel", classifier_path: Path | None, neighbour: Path | None
) -> "tuple[Path | None, Classifier | None, str]":
    """Load the classifier at ``classifier_path``, else search for one; without one, return None twice and a notice."""
    if classifier_path is not None:
        return classifier_path, load_classifier(classifier_path, loaded.device), ""
    places = [loaded.path, *([neighbour] if neighbour else [])]
    path = find_classifier(loaded.model_path, places) if loaded.attributes is not None else None
    if path is None:
        missing = "no judge found, so these images are not judged: train one with mmgen train-classifier"
        return None, None, missing if loaded.observation is not None else ""
    try:
        return path, load_classifier(path, loaded.device), ""
    except ArtifactError as error:
        return None, None, f"these images are not judged: {error}"

"""Completing descriptions: the training descriptions of a loaded model, and what has open words."""

from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.errors import ArtifactError, MmgenError, UsageError
from mmgen.posteriors import Completions, Fitted, read_described_codes

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["can_complete", "check_open_words", "check_reads_parts", "read_completions"]


def can_complete(loaded: "TrainedModel", posterior: str) -> bool:
    """Return True if a posterior, or the decoder, reads attributes of which some may be left open."""
    if loaded.attributes is None or not loaded.posteriors[posterior].completes:
        return False
    spelled = (loaded.text.name,) if loaded.text is not None and loaded.text.slots else ()
    return bool({loaded.attributes.name, *spelled} & {*loaded.reads(posterior)})


def check_reads_parts(loaded: "TrainedModel", posterior: str) -> None:
    """Refuse descriptions with open words, as they are, for a posterior that was fitted to whole ones alone.

    Raises:
        UsageError: It was.
    """
    source = loaded.posteriors[posterior].unguided
    if isinstance(source, Fitted) and source.whole and not loaded.completes:
        raise UsageError(
            f"--no-complete got {loaded.path}, which was fitted to whole descriptions, expected a fit that has seen "
            "parts of them; leave it out, or fit again with --set aggregate.keep_all=0.5"
        )


def check_open_words(loaded: "TrainedModel") -> None:
    """Refuse descriptions with open words for models that read none.

    Raises:
        UsageError: Descriptions leave no attributes open.
    """
    name = loaded.attributes.name if loaded.attributes is not None else ""
    if name not in loaded.likelihood.names and not any(can_complete(loaded, each) for each in loaded.posteriors):
        raise UsageError(
            f"--no-complete got {loaded.path}, whose descriptions leave no attributes open, expected a model that "
            "reads attributes; leave it out"
        )


def read_completions(loaded: "TrainedModel") -> Completions:
    """Return the distribution of whole descriptions: as a fit keeps it in its file, else from the model's dataset.

    Only descriptions with which the model was trained count.

    Raises:
        UsageError: The model has no attributes, or its dataset is gone.
        ArtifactError: The file holds descriptions that are none.
    """
    info = loaded.attributes
    if info is None:
        raise UsageError(f"{loaded.path} has no attributes, so there is nothing to complete; give a caption")
    kept = None if loaded.fitted is None else loaded.fitted.aggregate.descriptions
    if kept is not None:
        rows, counts = kept
        fits = rows.ndim == 2 and rows.shape[1] == len(info.names) and counts.shape == rows.shape[:1]
        if not fits or info.find_fault(rows) or (counts < 1).any():
            raise ArtifactError(f"{loaded.path} is damaged or was changed; make it again with mmgen fit-aggregate")
        return Completions(rows, counts, info, loaded.text)
    try:
        with Dataset.open(loaded.dataset_path()) as dataset:
            codes: np.ndarray = read_described_codes(loaded.settings, dataset)
    except MmgenError as error:
        raise UsageError(
            f"open words of a description are completed from training descriptions, which cannot be read: {error}; or "
            "give every word, or use --no-complete"
        ) from None
    return Completions.from_examples(codes, info, loaded.text)

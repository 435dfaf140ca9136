"""The training descriptions by which a loaded model completes descriptions."""

from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.errors import ArtifactError, MmgenError, UsageError
from mmgen.posteriors import Completions, read_described_codes

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["read_completions"]


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

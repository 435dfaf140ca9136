"""Files of draws, as ``mmgen sample`` writes them."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgen.artifacts import Header, parent_record
from mmgen.artifacts.files import atomic_path
from mmgen.artifacts.samples import write_samples
from mmgen.generation.draws import Draws
from mmgen.posteriors import Guided

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel


def save_samples(
    path: Path,
    draws: Draws,
    loaded: "TrainedModel",
    *,
    classifier_path: Path | None = None,
    command: str = "",
    start: Mapping[str, Any] | None = None,
) -> Header:
    """Write draws to a samples file: all images of the first description, then all of the next.

    Args:
        path: The file to write.
        draws: The images.
        loaded: The model that drew them; becomes a parent of the file.
        classifier_path: The classifier whose predictions they have; becomes a parent of the file.
        command: The command to record.
        start: Settings on the pictures that a translation started from.

    Raises:
        ArtifactError: The file cannot be written.
    """
    descriptions, each = draws.means.shape[:2]

    def flatten(array: np.ndarray) -> np.ndarray:
        return array.reshape(descriptions * each, *array.shape[2:])

    def to_bytes(name: str, sampled: np.ndarray) -> np.ndarray:
        if name not in loaded.images:
            return flatten(sampled)
        return np.rint(np.clip(flatten(sampled), 0, 1) * 255).astype(np.uint8)

    guided = loaded.guided_posterior(draws.posterior) if draws.guidance else None
    settings: dict[str, Any] = {
        "posterior": draws.posterior,
        **(loaded.posteriors[draws.posterior].weights if draws.posterior in loaded.posteriors else {}),
        "number": each,
        "given": draws.descriptions.format_texts(loaded),
        **({"completed": True} if draws.completed is not None else {}),
        **({"guidance": draws.guidance.guidance, "base": draws.guidance.base} if draws.guidance else {}),
        **({"effective": guided.effective, "candidates": guided.candidates} if isinstance(guided, Guided) else {}),
        **(start or {}),
    }
    captions = None if draws.descriptions.tokens is None else np.repeat(draws.descriptions.tokens, each, axis=0)
    parents = [parent_record(loaded.path, loaded.header.kind, path, loaded.header)]
    parents += [parent_record(loaded.sharpener.path, "sharpener", path)] if loaded.sharpener else []
    if classifier_path is not None and draws.predicted is not None:
        parents.append(parent_record(classifier_path, "judge", path))
    return write_samples(
        path,
        images=flatten(draws.means),
        images_sampled=to_bytes(draws.image, draws.sampled),
        attributes=np.repeat(draws.descriptions.codes, each, axis=0),
        attributes_judged=None if draws.predicted is None else flatten(draws.predicted),
        attributes_completed=None if draws.completed is None else flatten(draws.completed),
        z=flatten(draws.z),
        settings=settings,
        seed=draws.seed,
        info=loaded.attributes,
        image=draws.image,
        further={name: (flatten(means), to_bytes(name, sampled)) for name, (means, sampled) in draws.further.items()},
        text=None if draws.words is None else flatten(draws.words).astype(np.uint16),
        text_asked=captions,
        text_info=loaded.text,
        parents=parents,
        command=command,
    )


def write_values(path: Path, loaded: "TrainedModel", draws: Draws, *, sampled: bool = False) -> None:
    """Write the values of the main modality to a file of its kind, such as a sound file.

    Args:
        path: The file, with an ending for this kind of data.
        loaded: The model.
        draws: The draws: all of the first description, then of the next.
        sampled: Whether to write draws from p(x | z) instead of means.

    Raises:
        ArtifactError: The file cannot be written.
    """
    values = draws.sampled if sampled else draws.means
    with atomic_path(path) as temporary:
        loaded.observed[draws.image].write(temporary, values.reshape(-1, *values.shape[2:]))

"""Writing of draws to a samples file, as ``mmgen sample`` does."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgen.artifacts import Header, reference
from mmgen.artifacts.files import atomic_path
from mmgen.artifacts.samples import write_samples
from mmgen.generation.draws import Draws

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = ["save_samples", "write_values"]


def save_samples(
    path: Path,
    drawn: Draws,
    loaded: "TrainedModel",
    *,
    judge: Path | None = None,
    command: str = "",
    start: Mapping[str, Any] | None = None,
) -> Header:
    """Write draws as a samples artifact: all images of the first description, then of the next.

    Args:
        path: The file.
        drawn: The images.
        loaded: What drew them; becomes a parent.
        judge: What judged them; becomes a parent.
        command: The command to record.
        start: Settings that say what pictures they were drawn from.

    Raises:
        ArtifactError: The file system refuses.
    """
    descriptions, each = drawn.means.shape[:2]

    def rows(array: np.ndarray) -> np.ndarray:
        return array.reshape(descriptions * each, *array.shape[2:])

    def levels(name: str, sampled: np.ndarray) -> np.ndarray:
        if name not in loaded.images:
            return rows(sampled)
        return np.rint(np.clip(rows(sampled), 0, 1) * 255).astype(np.uint8)

    settings: dict[str, Any] = {
        "posterior": drawn.posterior,
        **(loaded.posteriors[drawn.posterior].weights if drawn.posterior in loaded.posteriors else {}),
        "number": each,
        "given": drawn.descriptions.words(loaded),
        **({"guidance": drawn.guidance.weight, "base": drawn.guidance.base} if drawn.guidance else {}),
        **(
            {"effective": loaded.guidance.effective, "candidates": loaded.guidance.candidates} if drawn.guidance else {}
        ),
        **(start or {}),
    }
    asked_words = None if drawn.descriptions.tokens is None else np.repeat(drawn.descriptions.tokens, each, axis=0)
    parents = [reference(loaded.path, loaded.header.kind, path)]
    if judge is not None and drawn.predicted is not None:
        parents.append(reference(judge, "judge", path))
    return write_samples(
        path,
        images=rows(drawn.means),
        images_sampled=levels(drawn.image, drawn.sampled),
        attributes=np.repeat(drawn.descriptions.codes, each, axis=0),
        attributes_judged=None if drawn.predicted is None else rows(drawn.predicted),
        z=rows(drawn.z),
        settings=settings,
        seed=drawn.seed,
        info=loaded.attributes,
        image=drawn.image,
        further={name: (rows(means), levels(name, sampled)) for name, (means, sampled) in drawn.further.items()},
        text=None if drawn.words is None else rows(drawn.words).astype(np.uint16),
        text_asked=asked_words,
        text_info=loaded.text,
        parents=parents,
        command=command,
    )


def write_values(path: Path, loaded: "TrainedModel", drawn: Draws, *, sampled: bool = False) -> None:
    """Write the main values of draws to a file of their kind, such as a sound file, whole or not at all.

    Args:
        path: The file; its ending is one of the kind's.
        loaded: The model.
        drawn: The draws: all of the first description, then of the next.
        sampled: Draws from p(x | z) instead of its means.

    Raises:
        ArtifactError: The file system refuses.
    """
    values = drawn.sampled if sampled else drawn.means
    with atomic_path(path) as temporary:
        loaded.observed[drawn.image].write(temporary, values.reshape(-1, *values.shape[2:]))

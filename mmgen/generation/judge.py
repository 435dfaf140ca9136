"""The attribute classifier ("judge") of drawn pictures: finding, checking and applying it."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset, parent_of
from mmgen.classifier import best_judge
from mmgen.core.errors import MissingParentError, UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.descriptions import Vocabulary

if TYPE_CHECKING:
    import torch

    from mmgen.classifier import Classifier
    from mmgen.generation.trained_model import TrainedModel

__all__ = [
    "check_judge",
    "differences",
    "find_judge",
    "find_judge_of_dataset",
    "judge_images",
    "has_mismatch",
    "load_judges",
    "format_accuracy",
    "sees_samples",
]


def sees_samples(loaded: "TrainedModel") -> bool:
    """Return True if the attribute classifier reads sampled pixels, as for binary data, and not means."""
    return loaded.observation is not None and loaded.observation.classifier_sees_samples


def has_mismatch(described: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Return True where a described attribute is predicted differently: uint8 [..., A] twice -> bool [...]."""
    return np.asarray(((described != predicted) & (described != UNKNOWN)).any(-1))


def differences(described: np.ndarray, predicted: np.ndarray, info: Vocabulary) -> str:
    """Return the predicted values that differ from a description, "judge: 5, small"; "" if none do.

    Args:
        described: uint8 [A].
        predicted: uint8 [A].
        info: The attributes' words.
    """
    seen = [
        words[code]
        for words, wanted, code in zip(info.values, described, predicted, strict=True)
        if wanted not in (UNKNOWN, code) and code < len(words)
    ]
    return f"judge: {', '.join(seen)}" if seen else ""


def check_judge(info: Vocabulary | None, judge: "Classifier") -> None:
    """Refuse a classifier whose attributes or values differ from the model's.

    Raises:
        UsageError: Its attributes or their values differ.
    """
    if info is not None and (list(judge.names), list(judge.values)) != (list(info.names), list(info.values)):
        raise UsageError(
            f"the judge knows the attributes {', '.join(judge.names)}, expected {', '.join(info.names)} with the same "
            "values: train a judge on this model's dataset with mmgen train-classifier"
        )


def judge_images(judge: "Classifier", images: np.ndarray, hints: np.ndarray) -> np.ndarray:
    """Predict attribute codes [n, A] of images [n, C, H, W]; ``hints`` [n, A] holds the attributes that it reads."""
    import torch

    pixels = torch.from_numpy(images).to(judge.device)
    return np.asarray(judge.predict(pixels, torch.from_numpy(hints)).cpu().numpy())


def load_judges(paths: Sequence[Path], device: "str | torch.device") -> "list[Classifier]":
    """Load several attribute classifiers, which must have the same hints.

    Raises:
        UsageError: One is there twice, or is told other attributes than the first.
    """
    from mmgen.classifier import load_classifier

    judges: list[Classifier] = []
    for path in paths:
        judge = load_classifier(path, device)
        if judge.content_id in [other.content_id for other in judges]:
            raise UsageError(f"--judge got {path} twice, expected each judge once; leave one out")
        if judges and judge.hints != judges[0].hints:
            hints, first = (", ".join(one.hints) or "nothing" for one in (judge, judges[0]))
            raise UsageError(
                f"--judge got {path}, which is told {hints}, beside {paths[0]}, which is told {first}, expected judges "
                "that are told the same; measure with each by itself"
            )
        judges.append(judge)
    return judges


def format_accuracy(judge: "Classifier") -> str:
    """Format a classifier's held-out accuracy as text."""
    return ", ".join(f"{name} {value:.1f} %" for name, value in judge.accuracy.items()) or "accuracy never measured"


def find_judge(model: Path, near: Sequence[Path] = (), preferred: Collection[str] = ()) -> Path | None:
    """Return the attribute classifier of a model's dataset, as ``mmgen eval`` finds it; None if there is none.

    Args:
        model: The model's checkpoint.
        near: Files in whose folders to look besides those of the model and the current one.
        preferred: Content ids of judges that come before all others: those that gave the scores shown.

    Raises:
        ArtifactError: ``model`` is no model made from a dataset.
    """
    dataset = parent_of(model, "dataset")
    folders = [model.parent, *(path.parent for path in near), (model.parent / dataset.path).parent, Path.cwd()]
    return best_judge(dataset.content_id, folders, preferred)


def find_judge_of_dataset(dataset: Dataset, folders: Sequence[Path]) -> Path:
    """Return the attribute classifier of a dataset in ``folders``; see :func:`mmgen.classifier.best_judge`.

    Raises:
        MissingParentError: There is none; names the command that makes one.
    """
    path = best_judge(dataset.header.content_id, folders)
    if path is None:
        raise MissingParentError(
            f"no judge that was trained on {dataset.path} is in {', '.join(dict.fromkeys(map(str, folders)))}; "
            f"make one with: mmgen train-classifier {dataset.path}, or name one with --judge"
        )
    return path

"""The files of classifiers, and the choice of a dataset's: one rule for scores, figures and reports."""

import math
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import mmgen.modalities
from mmgen.artifacts import Header, find_relatives, read_checkpoint, read_header
from mmgen.artifacts.header import advised_command
from mmgen.classifier import get
from mmgen.classifier._classifier import Classifier
from mmgen.core.errors import ArtifactError, UsageError, format_unknown_name
from mmgen.modalities import Description
from mmgen.settings.config import to_json_values, validate
from mmgen.training.stage import load_trained


def build_classifier(
    network: str,
    described: Description,
    names: tuple[str, ...],
    values: tuple[tuple[str, ...], ...],
    hints: tuple[str, ...] = (),
) -> Classifier:
    """Build an untrained attribute classifier."""
    for name in hints:
        if name not in names:
            raise UsageError(format_unknown_name("attribute", name, names))
    if len(hints) >= len(names):
        raise UsageError(
            f"a classifier got all of {', '.join(names)} as hints, so nothing is left to predict; name fewer in --told"
        )
    lengths = {name: len(words) for name, words in zip(names, values, strict=True)}
    sizes = tuple(length for name, length in lengths.items() if name not in hints)
    hint_size = sum(lengths[name] for name in hints)
    return Classifier(
        get(network).for_description(described, sizes, hint_size), described, names, values, network, hints
    )


def describe_classifier(classifier: Classifier) -> dict[str, Any]:
    """Return the settings from which :func:`build_classifier` can build a classifier again."""
    return {
        "network": classifier.network_name,
        "reads": to_json_values(classifier.described),
        "names": list(classifier.names),
        "values": [list(words) for words in classifier.values],
        "told": list(classifier.hints),
    }


def load_classifier(path: Path | str, device: str | torch.device = "cpu", require_accuracy: bool = True) -> Classifier:
    """Load a trained attribute classifier from its file, in evaluation mode.

    Args:
        path: The file.
        device: Where it is to compute.
        require_accuracy: Whether it must have been measured, which is the last step of its training.

    Raises:
        ArtifactError: The file is no classifier, does not fit the network that it names, or is not finished.
    """
    path = Path(path)

    def build(header: Header, tensors: Mapping[str, Tensor]) -> tuple[Classifier, nn.Module]:
        described = header.settings["classifier"]
        reads = validate(mmgen.modalities.get(str(described["reads"]["kind"])), described["reads"])
        names = tuple(str(name) for name in described["names"])
        values = tuple(tuple(str(word) for word in words) for words in described["values"])
        hints = tuple(str(name) for name in described.get("told", ()))
        classifier = build_classifier(str(described["network"]), reads, names, values, hints)
        return classifier, classifier.network

    header, classifier, _ = load_trained(path, "classifier", build, device)
    if require_accuracy and "held_out_accuracy" not in header.facts:
        raise ArtifactError(
            f"the classifier {path} is not finished, so its accuracy is unknown: its training was interrupted; go on "
            f"with: {advised_command(header.command, header.kind)}"
        )
    accuracy = held_out_accuracy(path, header)
    classifier.accuracy = {name: accuracy[name] for name in (*classifier.names, "mean", "words") if name in accuracy}
    classifier.content_id = header.content_id
    return classifier.eval()


def held_out_accuracy(path: Path, header: Header) -> dict[str, float]:
    """Return the accuracy in percent by attribute that a classifier's file records; {} if it records none.

    Raises:
        ArtifactError: It is no table of percentages, or does not equal the quotients of the counts beside it.
    """
    accuracy = _parse_numbers(header.facts.get("held_out_accuracy", {}), 100)
    correct, images = (_parse_numbers(header.facts.get(f"held_out_{what}", {})) for what in ("correct", "images"))
    is_valid = accuracy is not None and correct is not None and images is not None
    if accuracy and correct and images:
        # The accuracy must at least agree with the counts.
        is_valid = all(
            math.isclose(accuracy.get(name, -1), 100 * right / max(1, images.get(name, 0)), abs_tol=1e-6)
            for name, right in correct.items()
        )
    if accuracy is None or not is_valid:
        raise ArtifactError(
            f"classifier {path} has no valid held-out accuracy, expected percentages by attribute that fit its counts; "
            "make it again with mmgen train-classifier"
        )
    return accuracy


def _parse_numbers(value: Any, limit: float = math.inf) -> dict[str, float] | None:
    """Return a table of numbers from 0 to ``limit``; None if ``value`` is anything else."""
    if not isinstance(value, dict) or not all(type(n) in (int, float) and 0 <= n <= limit for n in value.values()):
        return None
    return {str(name): float(number) for name, number in value.items()}


def find_best_classifier(
    dataset_id: str, folders: Iterable[Path], preferred: Collection[str] = (), modality: str = ""
) -> Path | None:
    """Find the most accurate attribute classifier of a dataset in ``folders``; None without one.

    The best one has the highest held-out accuracy; unmeasured ones come last, and of equals the newest wins. Files
    that do not match their content id are skipped.

    Args:
        dataset_id: Content id of the dataset.
        folders: Where to look.
        preferred: Content ids of classifiers that come before all others, such as the one that gave the scores at hand.
        modality: Name of the modality that it reads; any if empty.
    """
    candidates = find_relatives(dict.fromkeys(folder.resolve() for folder in folders), "classifier", dataset_id)

    def rank(path: Path) -> tuple[bool, bool, float]:
        header = read_header(path)
        accuracy = header.facts.get("held_out_accuracy")
        mean = accuracy.get("mean") if isinstance(accuracy, dict) else None
        measured = float(mean) if isinstance(mean, int | float) else -1.0
        return header.content_id in preferred, measured >= 0, measured

    for path in sorted(candidates, key=rank, reverse=True):  # stable: of equals the newest, which comes first
        try:
            header, _ = read_checkpoint(path, "classifier")
        except ArtifactError:
            continue
        if modality in ("", _modality_of(header)):
            return path
    return None


def _modality_of(header: Header) -> Any:
    """Return the name of the modality that the classifier with this header reads."""
    described: Any = header.settings.get("classifier")
    for key in ("reads", "name"):
        described = described.get(key) if isinstance(described, dict) else None
    return described

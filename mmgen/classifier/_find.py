"""Choice of the attribute classifier of a dataset: one rule for scores, figures and reports."""

from collections.abc import Collection, Iterable
from pathlib import Path

from mmgen.artifacts import find_relatives, read_checkpoint, read_header
from mmgen.core.errors import ArtifactError

__all__ = ["find_best_classifier"]


def find_best_classifier(dataset_id: str, folders: Iterable[Path], preferred: Collection[str] = ()) -> Path | None:
    """Find the most accurate attribute classifier of a dataset in ``folders``; None without one.

    The best one has the highest held-out accuracy; unmeasured ones come last, and of equals the newest wins. Files
    that do not match their content id are skipped.

    Args:
        dataset_id: Content id of the dataset.
        folders: Where to look.
        preferred: Content ids of classifiers that come before all others, such as the one that gave the scores at hand.
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
            read_checkpoint(path, "classifier")
        except ArtifactError:
            continue
        return path
    return None

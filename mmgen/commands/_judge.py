"""A trained attribute classifier, as the Python functions return it."""

from pathlib import Path

from mmgen.classifier import Accuracy
from mmgen.core.markup import facts_table

__all__ = ["Judge"]


class Judge:
    """The result of ``train_classifier``: an attribute classifier's file and its accuracy on held-out images.

    Attributes:
        path: Its file.
        accuracy: Percent by attribute and "mean", with errors and counts.
    """

    def __init__(self, path: Path, accuracy: Accuracy) -> None:
        self.path, self.accuracy = path, accuracy

    def __repr__(self) -> str:
        return f"<judge {self.path}: {', '.join(f'{name} {value}' for name, value in self.accuracy.numbers.items())}>"

    def _repr_html_(self) -> str:
        return facts_table(f"judge {self.path}", self.accuracy.numbers.items())

"""What does the picture show? One file per network; a classifier trained with one of them judges every model.

``names()`` and ``get(name)`` are the networks; ``load_classifier`` opens a trained judge.
"""

from typing import TYPE_CHECKING, Any

from mmgen.classifier._members import describe, get, importable, names

if TYPE_CHECKING:
    from mmgen.classifier._classifier import Classifier as Classifier
    from mmgen.classifier._files import load_classifier as load_classifier

__all__ = ["Classifier", "describe", "get", "importable", "load_classifier", "names"]


def __getattr__(name: str) -> Any:
    # Listing the networks must not pay for torch.
    if name == "Classifier":
        from mmgen.classifier._classifier import Classifier

        return Classifier
    if name == "load_classifier":
        from mmgen.classifier._files import load_classifier

        return load_classifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

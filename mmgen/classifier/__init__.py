"""What does the picture show? One file per network; a classifier trained with one of them judges every model.

``names()`` and ``get(name)`` are the networks; ``load_classifier`` opens a trained judge.
"""

from typing import TYPE_CHECKING, Any

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.classifier._base import JudgeNetwork
    from mmgen.classifier._classifier import Classifier as Classifier
    from mmgen.classifier._files import load_classifier as load_classifier

_registry: Registry["type[JudgeNetwork]"] = Registry(
    __name__, "judge network", group="mmgen.judge_networks", base="JudgeNetwork"
)
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable


def __getattr__(name: str) -> Any:
    # Listing the networks must not pay for torch.
    if name == "Classifier":
        from mmgen.classifier._classifier import Classifier

        return Classifier
    if name == "load_classifier":
        from mmgen.classifier._files import load_classifier

        return load_classifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The networks of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.classifier._base import ClassifierNetwork

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[ClassifierNetwork]"] = Registry(
    __package__, "judge network", group="mmgen.judge_networks", base="ClassifierNetwork", place=9
)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

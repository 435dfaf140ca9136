"""The members of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.inference._base import Inference

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[Inference]"] = Registry(__package__, "inference", place=4)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

"""The members of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.densities._base import Family

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[Family]"] = Registry(__package__, "aggregate family", base="Family", place=7)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

"""The targets of fits by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.posteriors._base import Target

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[Target]"] = Registry(__package__, "fit target", base="Target", place=8)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

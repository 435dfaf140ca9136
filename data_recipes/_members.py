"""The members of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.data_recipes._base import Recipe

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[Recipe]"] = Registry(__package__, "recipe", group="mmgen.recipes", place=0)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

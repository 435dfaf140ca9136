"""One file per dataset recipe: factors, sources, rendering. Knows no model."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.data_recipes._base import Recipe

_registry: Registry["type[Recipe]"] = Registry(__name__, "recipe", group="mmgen.recipes")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

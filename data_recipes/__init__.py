"""One file per dataset recipe: factors, sources, rendering. Knows no model."""

from mmgen.registry import Registry

_registry = Registry(__name__, "recipe")
names = _registry.names
get = _registry.get
describe = _registry.describe

"""How good is it? One file per metric."""

from mmgen.registry import Registry

_registry = Registry(__name__, "metric")
names = _registry.names
get = _registry.get
describe = _registry.describe

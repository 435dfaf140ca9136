"""What is maximised? One file per objective."""

from mmgen.registry import Registry

_registry = Registry(__name__, "objective")
names = _registry.names
get = _registry.get
describe = _registry.describe

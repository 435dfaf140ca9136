"""What is it made of? One file per network family."""

from mmgen.registry import Registry

_registry = Registry(__name__, "network")
names = _registry.names
get = _registry.get
describe = _registry.describe

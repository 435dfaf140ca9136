"""Which z given the text, fitted afterwards? One file per family of conditional density."""

from mmgen.registry import Registry

_registry = Registry(__name__, "aggregate family")
names = _registry.names
get = _registry.get
describe = _registry.describe

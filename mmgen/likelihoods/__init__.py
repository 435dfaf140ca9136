"""How likely is x given the decoder's output? One file per likelihood."""

from mmgen.registry import Registry

_registry = Registry(__name__, "likelihood")
names = _registry.names
get = _registry.get
describe = _registry.describe

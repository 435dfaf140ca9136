"""How likely is x given the decoder's output? One file per likelihood."""

from typing import Any

from mmgen.registry import Registry

# Any: that of sentences is given a network, and has other arguments than those of images.
_registry: Registry[type[Any]] = Registry(__name__, "likelihood")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

"""What kind of data is it? One file per kind of modality."""

from mmgen.registry import Registry

_registry = Registry(__name__, "modality")
names = _registry.names
get = _registry.get
describe = _registry.describe

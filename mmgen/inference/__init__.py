"""Which z, given these modalities? One file per way of composing posteriors."""

from mmgen.registry import Registry

_registry = Registry(__name__, "inference")
names = _registry.names
get = _registry.get
describe = _registry.describe

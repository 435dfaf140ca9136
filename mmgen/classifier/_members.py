"""The networks of this room by name."""

from mmgen.registry import Registry

__all__ = ["describe", "get", "names"]

_registry = Registry("mmgen.classifier", "classifier network")
names = _registry.names
get = _registry.get
describe = _registry.describe

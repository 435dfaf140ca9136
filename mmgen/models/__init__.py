"""The whole generative model: build, infer, decode, sample; no loss, no files. One file per kind of model."""

from mmgen.registry import Registry

_registry = Registry(__name__, "model")
names = _registry.names
get = _registry.get
describe = _registry.describe

"""The whole generative model: build, infer, decode, sample; no loss, no files. One file per kind of model."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.models._base import Model

_registry: Registry["type[Model]"] = Registry(__name__, "model", base="Model")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

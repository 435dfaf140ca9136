"""Which z, given these modalities? One file per way of composing posteriors."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.inference._base import Inference

_registry: Registry["type[Inference]"] = Registry(__name__, "inference")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

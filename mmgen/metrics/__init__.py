"""How good is it? One file per metric."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.metrics._base import Metric

_registry: Registry["type[Metric]"] = Registry(__name__, "metric")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

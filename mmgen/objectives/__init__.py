"""What is maximised? One file per objective."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.objectives._base import Objective

_registry: Registry["type[Objective]"] = Registry(__name__, "objective")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

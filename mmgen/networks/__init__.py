"""What is it made of? One file per network family."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.networks._base import ImageNetwork

_registry: Registry["type[ImageNetwork]"] = Registry(__name__, "network", base="ImageNetwork")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

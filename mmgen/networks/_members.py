"""The members of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.networks._base import ImageNetwork

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[ImageNetwork]"] = Registry(__package__, "network", base="ImageNetwork", place=2)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

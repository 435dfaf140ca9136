"""The members of this room by name."""

from typing import Any

from mmgen.settings.registry import Registry

__all__ = ["describe", "get", "import_all", "names"]

# Any: that of sentences is given a network, and has other arguments than those of images.
_registry: Registry[type[Any]] = Registry(__package__, "likelihood", place=3)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

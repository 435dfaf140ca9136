"""The members of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.models._base import Model

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[Model]"] = Registry(__package__, "model", base="Model", place=5)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

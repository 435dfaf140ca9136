"""The members of this room by name."""

from typing import TYPE_CHECKING

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.modalities._base import Description

__all__ = ["describe", "get", "import_all", "names"]

_registry: Registry["type[Description]"] = Registry(__package__, "modality", base="Description", place=1)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

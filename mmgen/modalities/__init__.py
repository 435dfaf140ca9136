"""What kind of data is it? One file per kind of modality."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.modalities._base import Description

_registry: Registry["type[Description]"] = Registry(__name__, "modality", base="Description")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

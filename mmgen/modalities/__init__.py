"""What kind of data is it? One file per kind of modality."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.modalities._base import Modality

_registry: Registry["type[Modality]"] = Registry(__name__, "modality")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

"""Which z given the text, fitted afterwards? One file per family of conditional density."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.aggregates._base import Family

_registry: Registry["type[Family]"] = Registry(__name__, "aggregate family", base="Family")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

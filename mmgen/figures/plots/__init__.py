"""One picture by name: what ``mmgen plot`` draws. One file per figure; each takes opened files and gives a picture."""

from typing import TYPE_CHECKING

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.figures.plots._base import Plot

_registry: Registry["Plot"] = Registry(__name__, "figure", group="mmgen.plots", base="Plot")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

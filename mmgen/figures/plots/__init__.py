"""One picture by name: what ``mmgen plot`` draws. One file per figure; each takes opened files and gives a picture."""

from typing import TYPE_CHECKING, Any

from mmgen.registry import Registry

if TYPE_CHECKING:
    from mmgen.figures.plots._base import Plot


class _Figures(Registry[Any]):
    """Figures are loaded after matplotlib, which reads no settings of the current folder then."""

    def _import(self, stem: str) -> Any:
        import mmgen.figures.drawing  # noqa: F401  # which imports it elsewhere

        return super()._import(stem)


_registry: Registry["Plot"] = _Figures(__name__, "figure", group="mmgen.plots", base="Plot")
names = _registry.names
get = _registry.get
describe = _registry.describe
importable = _registry.importable

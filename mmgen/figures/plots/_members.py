"""The members of this room by name."""

from typing import TYPE_CHECKING, Any

from mmgen.settings.registry import Registry

if TYPE_CHECKING:
    from mmgen.figures.plots._base import Plot


__all__ = ["describe", "get", "import_all", "names"]


class _Figures(Registry[Any]):
    """Figures are imported without the current folder's matplotlib settings."""

    def _import(self, stem: str) -> Any:
        import mmgen.figures.drawing  # noqa: F401  # which imports it elsewhere

        return super()._import(stem)


_registry: Registry["Plot"] = _Figures(__package__, "figure", group="mmgen.plots", base="Plot", place=12)
names = _registry.names
get = _registry.get
describe = _registry.describe
import_all = _registry.import_all

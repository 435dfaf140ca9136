"""Figures that ``mmgen plot`` draws by name: one file each, which makes a picture from opened files."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(
    __name__, __file__, "figure", group="mmgen.plots", base="Plot", place=12, imported_before="mmgen.figures.drawing"
)

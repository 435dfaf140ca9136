"""Dataset recipes, one file each: factors, sources, rendering."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "recipe", group="mmgen.recipes", place=0)

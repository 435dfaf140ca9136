"""Families of conditional densities over z: one file per family."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "aggregate family", base="Family", place=7)

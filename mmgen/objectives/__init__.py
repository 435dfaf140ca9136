"""Objectives: what training maximises, one file each."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "objective", place=6)

"""Families of image networks, one file each, and networks over other data."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "network", base="ImageNetwork", place=2)

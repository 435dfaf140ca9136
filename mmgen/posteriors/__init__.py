"""Posteriors over z given a description, their guidance by p(words | z), and the targets of fits, one file each."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "fit target", base="Target", place=8)

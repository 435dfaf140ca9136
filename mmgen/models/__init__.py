"""Generative models: build, infer, decode, sample; without losses and files. One file per kind of model."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "model", place=5)

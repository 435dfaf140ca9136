"""Inference networks, which compute posteriors q(z | inputs): one file for each way of combining modalities."""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "inference", place=4)

"""Inference networks, which compute posteriors q(z | inputs): one file for each way of combining modalities."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

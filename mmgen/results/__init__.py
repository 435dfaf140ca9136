"""Scores of models: their conditions, means over seeds, comparison, published numbers, and printed tables."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

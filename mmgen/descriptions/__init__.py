"""Descriptions: one grammar of words, parsed once into a tree, and captions; as codes, batches and text."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Posteriors: densities over z given a description, and their guidance by p(words | z)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Posteriors over z given a description, their guidance by p(words | z), and the targets of fits, one file each."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

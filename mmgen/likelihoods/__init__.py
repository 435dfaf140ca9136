"""How likely is x given the decoder's output? One file per likelihood."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

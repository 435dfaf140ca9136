"""Use of a trained model: drawing z for descriptions, and decoding z to pictures and words."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

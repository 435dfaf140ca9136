"""The latent variable z: its layers and shapes, densities over it, and the trace of an encoding and decoding."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

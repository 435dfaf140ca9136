"""The latent variable z: its layers and shapes, densities over z, and the log-likelihoods of draws of z."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

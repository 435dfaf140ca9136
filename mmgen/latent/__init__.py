"""What z is: its layers and their shapes, densities over it, and the result of one trip x -> z -> x."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

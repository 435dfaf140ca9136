"""Files that figures and pages are drawn from, sorted by model, and models with their posteriors opened for drawing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

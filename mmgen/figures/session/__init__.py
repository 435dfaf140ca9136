"""Files of figures and pages: sorted by lineage (``gather``), and a model with its posteriors opened for drawing."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Sharpeners: networks that add the detail to a model's pictures that its decoder leaves out.

``load_sharpener`` opens a trained one; :func:`mmgen.contrib.sharpening.fitting.fit_sharpener` trains one.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

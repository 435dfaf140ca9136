"""Attribute classifiers, which predict the attribute values of an example. One file per network.

``names()`` and ``get(name)`` are the networks; ``load_classifier`` opens a trained classifier.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

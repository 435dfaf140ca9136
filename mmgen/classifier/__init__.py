"""What does the picture show? One file per network; a classifier trained with one of them judges every model.

``names()`` and ``get(name)`` are the networks; ``load_classifier`` opens a trained judge.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""One picture by name: what ``mmgen plot`` draws. One file per figure; each takes opened files and gives a picture."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Figures that ``mmgen plot`` draws by name: one file each, which makes a picture from opened files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

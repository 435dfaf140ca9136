"""Experiments as data: stages as settings, rows and scales as a matrix, seeds, and tables beside the paper's numbers.

A published table is one TOML file, to be read and extended; a table of several datasets is a folder with one for each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

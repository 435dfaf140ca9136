"""How published tables are made again: one TOML list of commands and numbers per table, to be read and edited.

A table of several datasets is a folder with one list for each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

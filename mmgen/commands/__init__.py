"""Stages: one module a command, each with the settings class that its command line and its Python function follow."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""Generative models: build, infer, decode, sample; without losses and files. One file per kind of model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

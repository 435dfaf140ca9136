"""The whole generative model: build, infer, decode, sample; no loss, no files. One file per kind of model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

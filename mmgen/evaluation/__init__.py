"""Evaluation: what metrics are given (queries, points, drawn and real pictures, factors) and importance weighting."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

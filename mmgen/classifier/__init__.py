"""Attribute classifiers, which predict the attribute values of an example. One file per network.

``names()`` and ``get(name)`` are the networks; ``load_classifier`` opens a trained classifier.
"""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(
    __name__, __file__, "judge network", group="mmgen.judge_networks", base="ClassifierNetwork", place=9
)

"""Simple methods that joint models are compared with, one file each.

There are two kinds. Baselines for labels learn from all training images and from the labels of some, and predict the
label of every test image. Their accuracy is compared with that of p(y|x) of a joint model that was trained with
``mmgen train --paired`` on the same pairs. Their networks are those of the joint model (the settings of its preset),
with or without its stochastic layer, trained by the same loop; logistic regression and the RBM are scikit-learn's.
Baselines for densities are fitted to training examples of real numbers and give log p(x) of test examples exactly, in
nats.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5.1 and Fig. 3
"""

from mmgen.settings.registry import attach_members

__getattr__, __dir__, __all__ = attach_members(__name__, __file__, "baseline", group="mmgen.baselines", place=11)

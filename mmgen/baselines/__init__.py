"""What else could answer? The methods that models are measured against, one file each.

A baseline says what it answers. Labels: what could read labels off images, given few pairs? Each is told which training
images come with their label, may look at all training images without labels, and says the label of every test image; so
its accuracy stands beside that of p(y|x) of a joint model that was trained with ``mmgen train --paired``, from the same
pairs. Networks are those of the joint model (the settings of its preset) with the stochastic layer kept or taken out,
trained by the same loop; logistic regression and the RBM are scikit-learn's. Densities: how likely are real numbers
without a latent model? Each is fitted to training examples and says log p(x) of test examples exactly, in nats.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335,
    Section 5.1 and Fig. 3
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

"""The mutual information gap: how much more information one dimension has on a factor than the next one.

References:
    Isolating Sources of Disentanglement in Variational Autoencoders (Chen et al., 2018), arXiv:1802.04942, Section 4
    Challenging Common Assumptions in the Unsupervised Learning of Disentangled Representations (Locatello et al., 2019)
"""

import numpy as np

from mmgen.evaluation.factors import BINS, Code, relative_information
from mmgen.metrics._disentanglement import Disentanglement, RepeatResult

__all__ = ["Mig"]


class Mig(Disentanglement):
    r"""Mutual information gap between the two dimensions of z that know most of a factor, :math:`(I(v; z_1) - I(v;
    z_2)) / H(v)`.

    z_1 and z_2 are the two dimensions with most information on factor v; posterior means are put into 20 bins. A
    perfect code of dSprites has 0.902: 20 bins cannot tell 32 or 40 values apart. ``details["information"]`` [D, K]
    is I(v; z) / H(v) of each dimension and factor.
    """

    protocol = f"{BINS} bins"

    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        known = relative_information(code)
        top = np.sort(known, axis=0)
        gaps = top[-1] - (top[-2] if len(top) > 1 else 0)
        return RepeatResult({"gap": float(gaps.mean())}, {"information": known, "gaps": gaps})

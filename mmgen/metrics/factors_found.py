"""Factors found: the number of factors that have a dimension of z to themselves.

References:
    beta-VAE (Higgins et al., 2017), Fig. 7, and Variational Autoencoders: A Review (Garg et al., 2018), Table 2: which
    factors a traversal shows, by eye
    Isolating Sources of Disentanglement in Variational Autoencoders (Chen et al., 2018), arXiv:1802.04942, Section 4
"""

from collections.abc import Generator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mmgen.evaluation.factors import BINS, GAP, Code, leading_dimensions, relative_information
from mmgen.metrics._base import Score
from mmgen.metrics._disentanglement import Disentanglement, RepeatResult

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["FactorsFound"]


_COUNT = "factors found"


class FactorsFound(Disentanglement):
    r"""Number of factors that have a dimension of z of their own, by normalised mutual information I(v; z) / H(v).

    A dimension is a factor's own where it has less information on every other factor, and at least 0.2 more on this
    one than the next dimension has. Means in 20 bins, as for the mutual information gap; dimensions whose mean has a
    standard deviation below 0.05 are left out. Each factor has a score too: the information of its dimension, with
    ``dimension`` (from 1), ``gap`` and ``found`` (1 where it counts) by the mean over repeats.
    """

    protocol = f"{BINS} bins, gap {GAP}"
    further_units: ClassVar = {"factors": "higher"}
    columns: ClassVar = {"of": "factors_in_all", "dimension": "dimension", "gap": "gap", "found": "found"}

    def measure(self, code: Code, rng: np.random.Generator) -> RepeatResult:
        known = relative_information(code)
        known[np.setdiff1d(np.arange(len(known)), code.active)] = 0.0
        each = leading_dimensions(known, code.names)
        values = {_COUNT: float(sum(one.has_own_dimension for one in each))}
        values |= {f"information on {one.factor}": one.information for one in each}
        return RepeatResult(values, {"information": known})

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        count, *others = yield from super().__call__(evaluation, posterior)
        names = count.details["factors"]
        each = leading_dimensions(np.array(count.details["information"]), names)
        found_factors = [one.factor for one in each if one.has_own_dimension]
        counts = {"factors_in_all": len(names), "found_factors": found_factors}
        scores = [replace(count, unit="factors", details={**count.details, **counts})]
        for score, one in zip(others, each, strict=True):
            details = {"dimension": one.dimension + 1, "gap": one.gap, "found": int(one.has_own_dimension)}
            further = {key: value for key, value in score.details.items() if key != "information"}
            scores.append(replace(score, details={**further, **details}))
        return scores

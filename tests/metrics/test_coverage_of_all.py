"""Correctness and coverage as one number: the Jensen-Shannon divergence of all attributes (VE Section 3)."""

import math

import numpy as np
import pytest

from mmgen.core.notation import UNKNOWN
from mmgen.evaluation.real import jackknife_divergence
from mmgen.metrics.coverage import _published_divergence, given_coverage


@pytest.mark.parametrize("right", [0, 3, 10])
def test_a_given_attribute_counts_by_how_often_it_is_right(right: int) -> None:
    """JS of a point and a distribution that has the share q there: closed form, in nats and in base 2."""
    codes = np.array([[2, UNKNOWN]], np.uint8)
    predicted = np.array([[[2, 0]] * right + [[0, 1]] * (10 - right)], np.uint8)
    q = right / 10
    entropy = sum(-part * math.log(part) for part in ((1 + q) / 2, (1 - q) / 2) if part)
    own = sum(-part * math.log(part) for part in (q, 1 - q) if part)
    expected = entropy - own / 2  # JS = H of the mixture less the mean of both H
    if q < 1:  # mass elsewhere is spread over other values, but their H stands on both sides
        assert 0 < expected <= math.log(2)
    assert given_coverage(codes, predicted, _published_divergence) == pytest.approx(np.array([[100 * (1 - expected)]]))
    corrected = given_coverage(codes, predicted, jackknife_divergence)
    assert corrected == pytest.approx(np.array([[100 * (1 - expected / math.log(2))]]), abs=3)

"""Training of a baseline without noise, of every model."""

import pytest
import torch

from mmgen.contrib.baselines._base import NoiselessTask
from mmgen.testing.models import small_model
from tests.posteriors.test_layered_posterior import EVERY_MODEL


@EVERY_MODEL
def test_a_baseline_without_noise_has_none(name: str) -> None:
    """The same value however torch's own generator stands, where a word or the picture itself is said."""
    model, case = small_model(name)
    model, batch = model.eval(), case.batch()
    if not model.has_posterior(case.inputs[:1]):
        pytest.skip("infers z from several modalities together only")
    task = NoiselessTask(model, case.inputs[0], case.generates[-1])
    values = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        values.append(task(batch, None).value)
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=0)

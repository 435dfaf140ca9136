"""What only a GPU can show; skipped where there is none."""

from pathlib import Path

import pytest
import torch

import mmgen.objectives
from mmgen import metrics
from mmgen.models._build import build_model
from mmgen.testing.metrics import accepts_evaluation, check_scores, small_evaluation
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch
from mmgen.training.precision import autocast, resolve_precision

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is usable here")


@pytest.mark.parametrize("name", mmgen.objectives.names())
def test_objectives_on_the_gpu_equal_those_on_the_cpu(name: str) -> None:
    """Terms without noise (divergences) agree between devices in fp32."""
    objective = mmgen.objectives.get(name)()
    torch.manual_seed(0)
    model = build_model(SMALL_MODEL, objective.demands, SMALL_DATA)
    here = objective(model, small_batch())
    there = objective(model.cuda(), small_batch().to("cuda"))
    for term in here.terms:
        if term.startswith("kl"):
            torch.testing.assert_close(there.terms[term].cpu(), here.terms[term], rtol=1e-4, atol=1e-4)


def test_training_on_the_gpu_learns(tmp_path: Path) -> None:
    objective = mmgen.objectives.get("telbo")()
    torch.manual_seed(0)
    model = build_model(SMALL_MODEL, objective.demands, SMALL_DATA).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    batch = small_batch(64).to("cuda")
    values = []
    for _ in range(30):
        optimizer.zero_grad()
        with autocast(torch.device("cuda")):
            value = objective(model, batch).value.mean()
        (-value).backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] > values[0]


def test_auto_precision_is_bf16_where_the_gpu_multiplies_it() -> None:
    expected = "bf16-mixed" if torch.cuda.get_device_capability()[0] >= 8 else "32-true"
    assert resolve_precision("auto", torch.device("cuda")) == expected


@pytest.mark.parametrize("name", metrics.names())
def test_metrics_draw_where_the_model_is(name: str, tmp_path: Path) -> None:
    evaluation = small_evaluation(tmp_path, "cuda")
    if accepts_evaluation(name, evaluation):
        check_scores(name, evaluation)

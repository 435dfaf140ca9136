"""What a step of training takes of memory is told by shapes, before any of it is taken."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

import mmgen.objectives
from mmgen.core.errors import UsageError
from mmgen.models import build_model
from mmgen.settings.config import merge
from mmgen.testing.objectives import _find_case
from mmgen.training.devices import make_fabric
from mmgen.training.settings import TrainingSettings
from mmgen.training.step_memory import check_step, needed_bytes
from mmgen.training.task import ModelTask, make_optimizers, make_players
from tests.models.test_network_sizes import SHORT
from tests.training.test_start import dataset_path, train

__all__ = ["dataset_path"]  # a fixture

CASES = [
    (name, settings) for name in mmgen.objectives.names() for settings in ({}, *mmgen.objectives.get(name).variants)
]


@pytest.mark.parametrize(("name", "values"), CASES, ids=[f"{name}-{number}" for number, (name, _) in enumerate(CASES)])
def test_the_bytes_of_a_step_are_those_that_its_gradient_keeps(name: str, values: dict[str, Any]) -> None:
    objective = mmgen.objectives.get(name)(**values)
    case = _find_case(objective)
    torch.manual_seed(0)
    task = ModelTask(build_model(case.model, objective.demands, case.data), objective.for_training_size(1000))
    settings = TrainingSettings(device="cpu", precision="32-true")
    for player in make_players(task, make_optimizers(task, settings), make_fabric(settings), settings):
        batch = case.batch()[:4]
        batch = batch[torch.arange(4).repeat(player.batch_count)]
        kept: dict[int, Tensor] = {}
        before = {key: each.clone() for key, each in task.state_dict().items()}, torch.get_rng_state()
        found = needed_bytes(player.module.module, batch, 0)
        assert all(each.equal(before[0][key]) for key, each in task.state_dict().items())
        assert torch.equal(torch.get_rng_state(), before[1])

        def keep(tensor: Tensor, kept: dict[int, Tensor] = kept) -> Tensor:
            if tensor.layout == torch.strided:
                kept[tensor.untyped_storage().data_ptr()] = tensor
            return tensor

        with saved_tensors_hooks(keep, lambda tensor: tensor):
            figures = player.module(batch.values, batch.present, batch.shared, 0)
        own = {each.untyped_storage().data_ptr() for each in (*task.parameters(), *task.buffers())}
        real = sum(each.untyped_storage().nbytes() for key, each in kept.items() if key not in own)
        assert figures and 0.5 * real < found <= 1.1 * real
        assert needed_bytes(player.module.module, batch, None) > 0


@pytest.mark.parametrize(
    ("objective", "batch", "what"),
    [
        ({"name": "iwae", "samples": 10**9}, 8, "objective.samples 1,000,000,000"),
        ({"name": "elbo", "samples": 10**9}, 8, "objective.samples 1,000,000,000"),
        ({"name": "mmvae", "draws": 10**9, "kl_warmup_steps": 10**10}, 8, "objective.draws 1,000,000,000"),
        ({"name": "iwae", "samples": 100, "modalities": ["image"]}, 3 * 10**6, "--batch 3,000,000"),
    ],
)
def test_a_step_that_no_memory_holds_names_its_setting(
    objective: dict[str, Any], batch: int, what: str, dataset_path: Path, tmp_path: Path
) -> None:
    words = rf"^a step with {what} would take at least .*B of memory, but .* are free; use a smaller {what.split()[0]}$"
    with pytest.raises(UsageError, match=words):
        train(
            dataset_path,
            tmp_path / "m.safetensors",
            merge(SHORT, {"objective": objective, "training": {"batch": batch}}),
        )
    assert not [*tmp_path.iterdir()]


def test_a_validation_that_no_memory_holds_is_refused_before_the_steps() -> None:
    objective = mmgen.objectives.get("elbo")(samples=50)
    case = _find_case(objective)
    task = ModelTask(build_model(case.model, objective.demands, case.data), objective)
    settings = TrainingSettings(device="cpu", precision="32-true")
    (player,) = make_players(task, make_optimizers(task, settings), make_fabric(settings), settings)
    batch = case.batch()[torch.zeros(100, dtype=torch.int64)]
    check_step(player, batch, None, "32-true", 10**9)
    with pytest.raises(UsageError, match=r"^a step with training.validation_examples 100 would"):
        check_step(player, batch, None, "32-true", 10**6)

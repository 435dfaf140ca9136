"""FactorVAE: elbo without its weight, a game whose players move apart, and a total correlation with a closed form."""

import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mmgen.artifacts import read_checkpoint, write_checkpoint
from mmgen.core.batch import Batch
from mmgen.core.errors import Interrupted
from mmgen.figures.report.curves import read_log
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.models._build import build_model
from mmgen.objectives._base import Objective
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.factor_vae import FactorVae, permute_dimensions
from mmgen.testing.linear_gaussian import draw_observations, make_linear_gaussian
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL
from mmgen.training.batches import Order, Rows
from mmgen.training.log import log_path
from mmgen.training.loop import train
from mmgen.training.settings import TrainingSettings
from mmgen.training.state import state_path
from mmgen.training.task import MODEL, ModelTask, make_optimizers

SMALL: dict[str, Any] = {
    "discriminator_layers": 1,
    "discriminator_width": 8,
    "discriminator_learning_rate": 0.01,
    "gamma": 5.0,
}
NETWORK = {  # with batch norm and dropout: what a network remembers, and what it draws
    "name": "convolutional", "channels": [4, 4], "strides": [2, 2], "paddings": [1, 1], "fully_connected": [8]
}  # fmt: skip


class Pictures(Rows):
    """Noise in black and white, 16 by 16."""

    def __init__(self, size: int = 40) -> None:
        generator = torch.Generator().manual_seed(3)
        self.pixels = (torch.rand(size, 1, 16, 16, generator=generator) < 0.4).float()
        self.asked: list[list[int]] = []

    def __len__(self) -> int:
        return len(self.pixels)

    def batch(self, indices: Tensor) -> Batch:
        self.asked.append(indices.tolist())
        return Batch({"image": self.pixels[indices]}, {"image": torch.ones(len(indices), dtype=torch.bool)})


def task_of(objective: Objective) -> ModelTask:
    torch.manual_seed(0)
    settings = SMALL_MODEL.model_copy(update={"image_network": NETWORK})
    return ModelTask(build_model(settings, objective.demands, SMALL_DATA), objective)


def run(out: Path, objective: Objective, resume: str = "auto", stop_at: int | None = None, **settings: Any) -> Pictures:
    values = {"steps": 8, "batch": 6, "validate_every": 4, "log_every": 2, "precision": "32-true", "keep_state": True}
    chosen = TrainingSettings(**{**values, "device": "cpu", "keep": "last", **settings})
    task, rows = task_of(objective), Pictures()

    def save(path: Path, facts: dict[str, Any]) -> None:
        write_checkpoint(path, kind="model", tensors=task.saved_tensors(), settings={}, seed=0, facts=facts)

    described = {"training": chosen.model_dump(mode="json")}
    for progress in train(task, rows, Pictures(), chosen, out, save, described, resume=resume):
        if progress.done == stop_at:
            os.kill(os.getpid(), signal.SIGINT)
    return rows


def tensors_of(path: Path, kind: str) -> dict[str, Tensor]:
    return read_checkpoint(path, kind)[1]


def test_without_its_weight_it_is_elbo_bit_for_bit(tmp_path: Path) -> None:
    """Not one value alone: a whole training, though the discriminator learns and draws beside it."""
    one, two = tmp_path / "elbo.safetensors", tmp_path / "factor.safetensors"
    run(one, Elbo(modalities=("image",)))
    run(two, FactorVae(**{**SMALL, "gamma": 0.0}))
    expected, found = tensors_of(one, "model"), tensors_of(two, "model")
    assert expected.keys() == found.keys(), "a finished model holds no discriminator"
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_it_is_the_bound_minus_the_logits_difference() -> None:
    """On the linear-Gaussian model: elbo with the same draw of z, minus gamma (D_0 - D_1) there."""
    model, batch, objective = make_linear_gaussian(0.3), draw_observations(7), FactorVae(**SMALL)
    opponent = objective.opponent(model)
    values = []
    for one in (Elbo(modalities=("image",)), FactorVae(gamma=0.0)):
        torch.manual_seed(1)
        values.append(one(model, batch).value)
    torch.manual_seed(1)
    found = objective(model, batch, None, opponent)
    torch.manual_seed(1)
    z = model.posterior(batch, ("image",)).sample()
    first, second = opponent.logits(z).unbind(-1)
    assert torch.equal(*values)
    torch.testing.assert_close(found.value, values[0] - 5 * (first - second))
    torch.testing.assert_close(found.terms["total correlation"], first - second)
    assert (objective.training_weight("image"), FactorVae(gamma=0.0).training_weight("image")) == (None, 1)


@pytest.mark.parametrize("player", [MODEL, "discriminator"])
def test_a_step_of_one_player_moves_that_player_alone(player: str) -> None:
    """Parameters, and running statistics too: the discriminator's draws of z pass through batch norm and leave it."""
    task = task_of(FactorVae(**SMALL)).train()
    optimizers = make_optimizers(task, TrainingSettings(learning_rate=0.1, optimizer="sgd"))
    before = {name: tensor.clone() for name, tensor in task.state_dict().items()}
    task(Pictures(12).batch(torch.arange(12)), 0, player).value.mean().neg().backward()
    if player != MODEL:
        assert all(p.grad is None for p in task.model.parameters())
    optimizers[player].step()
    moved = {name.split(".")[0] for name, tensor in task.state_dict().items() if not tensor.equal(before[name])}
    assert moved == {"model" if player == MODEL else "opponent"}
    assert any("running_mean" in name for name in before)


def test_the_discriminator_learns_as_it_says() -> None:
    """Adam with its own betas and rate, whatever the run's optimiser is."""
    optimizers = make_optimizers(task_of(FactorVae(**SMALL)), TrainingSettings(optimizer="sgd", learning_rate=0.1))
    assert isinstance(optimizers[MODEL], torch.optim.SGD)
    own = optimizers["discriminator"]
    assert isinstance(own, torch.optim.Adam)
    assert (own.defaults["betas"], own.defaults["lr"], own.defaults["eps"]) == ((0.5, 0.9), 0.01, 1e-8)
    published = FactorVae().opponent(make_linear_gaussian())
    assert [p.shape for p in published.parameters() if p.dim() == 2] == [(1000, 2), *[(1000, 1000)] * 5, (2, 1000)]


def test_an_interrupted_run_resumes_to_identical_weights(tmp_path: Path) -> None:
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    settings = {"schedule": "cosine", "warmup_steps": 3}
    run(whole, FactorVae(**SMALL), **settings)
    with pytest.raises(Interrupted, match="stopped at step 6"):
        run(broken, FactorVae(**SMALL), stop_at=6, **settings)
    run(broken, FactorVae(**SMALL), resume="require", **settings)
    for kind, one, two in (("model", whole, broken), ("training-state", state_path(whole), state_path(broken))):
        expected, found = tensors_of(one, kind), tensors_of(two, kind)
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)
    names = tensors_of(state_path(whole), "training-state")
    assert {name.split(".")[1] for name in names} == {"model", "opponent", "discriminator"}


def test_the_second_batch_is_drawn_apart_from_the_first(tmp_path: Path) -> None:
    """The first is the batch of any run, the second has an order of its own; together they are one view."""
    asked = [rows for rows in run(tmp_path / "m.safetensors", FactorVae(**SMALL)).asked if len(rows) > 1]
    asked = asked[2:]  # after the shapes of a step
    first, second = Order(40, 6, 0), Order(40, 6, 0, "order 1")
    for step in range(8):
        one, two = asked[2 * step : 2 * step + 2]
        assert (one, two) == (first[step].tolist(), [*first[step].tolist(), *second[step].tolist()])
    assert first[0].tolist() != second[0].tolist()


def test_dimensions_are_permuted_apart() -> None:
    z = torch.arange(300.0)[:, None] + torch.tensor([0.0, 1000.0, 2000.0])
    torch.manual_seed(0)
    found = permute_dimensions(z)
    assert all(torch.equal(found[:, d].sort().values, z[:, d]) for d in range(3)), "each dimension keeps its values"
    correlation = torch.corrcoef(found.T) - torch.eye(3)
    assert correlation.abs().max() < 4 / math.sqrt(300), "and none its place beside the others"


class Correlated(nn.Module):
    """An encoder that copies examples to z."""

    latent_size = 2

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        return DiagonalGaussian(batch.values["z"], torch.full_like(batch.values["z"], -20.0))


def correlation_found(r: float, steps: int) -> float:
    """Total correlation of two numbers with correlation r as a discriminator tells it after ``steps``, nats."""
    torch.manual_seed(0)
    model = Correlated()
    opponent = FactorVae(discriminator_layers=2, discriminator_width=32).opponent(model)
    optimizer = torch.optim.Adam(opponent.parameters(), 4e-3, betas=(0.5, 0.9))
    root = torch.linalg.cholesky(torch.tensor([[1.0, r], [r, 1.0]]))

    def draws(size: int) -> Batch:
        return Batch({"z": torch.randn(size, 2) @ root.T}, {"z": torch.ones(size, dtype=torch.bool)})

    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (1 - step / steps)
        optimizer.zero_grad()
        opponent(model, draws(256), draws(256)).value.mean().neg().backward()
        optimizer.step()
    with torch.no_grad():
        return float(opponent.log_ratio(draws(20_000).values["z"]).mean())


def test_the_discriminator_finds_the_total_correlation_of_a_gaussian() -> None:
    """TC = -log(1 - r^2) / 2: .511 nats at r = .8."""
    assert correlation_found(0.8, 150) == pytest.approx(0.511, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("r", [0.0, 0.5, 0.8])
def test_it_comes_near_with_longer_training(r: float) -> None:
    assert correlation_found(r, 2000) == pytest.approx(-0.5 * math.log(1 - r**2), abs=0.03)


def test_logs_and_reports_tell_of_both(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(out, FactorVae(**SMALL))
    lines = [json.loads(line) for line in log_path(out).read_text().splitlines()]
    assert list(lines[0]["players"]) == [MODEL, "discriminator"]
    rates = {name: one["learning_rate"] for name, one in lines[0]["players"].items()}
    assert rates == {MODEL: 1e-3, "discriminator": 0.01}
    log = read_log(log_path(out))
    assert log.bound.tolist() == [line["players"][MODEL]["bound"] for line in lines if "players" in line]
    assert log.terms.keys() == {
        "log p(image|z)", "kl", "total correlation", "discriminator/bound", "discriminator/log D(z)",
        "discriminator/log (1 - D(permuted z))",
    }  # fmt: skip
    assert log.validation_steps.tolist() == [4, 8]
    facts = read_checkpoint(out, "model")[0].facts
    assert log.validation[-1] == facts["validation_terms"]["bound"]
    assert "validation_bound" not in facts, "nothing selects: the opponent of another step is another yardstick"

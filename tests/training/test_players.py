"""Tasks of two players: games with a known solution, resumed runs, NaN by the player's name, several processes."""

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.artifacts import read_checkpoint, write_checkpoint
from mmgen.core.batch import Batch
from mmgen.core.errors import ArtifactError, Interrupted, TrainingError
from mmgen.objectives._base import Bound
from mmgen.training.log import log_path
from mmgen.training.loop import train
from mmgen.training.settings import TrainingSettings
from mmgen.training.state import state_path
from mmgen.training.task import ALONE, Task
from tests.training.test_training_runs import Line, Numbers, run as run_line

SIZE = 16
MEAN = (SIZE - 1) / (2 * SIZE)
"""Mean of the examples 0, 1 / 16 ... 15 / 16."""


class Number(nn.Module):
    """One number."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor([value]))


class Saddle(Task):
    """f(x, y) = a/2 x^2 + b x y - c/2 y^2 + p x + q y, which "low" minimises by x and "high" maximises by y."""

    players = ("low", "high")
    selects = None
    a, b, c, p, q = 1.0, 3.0, 0.5, -1.0, 2.0

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = Number(1.0), Number(-2.0)

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        x, y = self.low.value, self.high.value
        f = self.a / 2 * x**2 + self.b * x * y - self.c / 2 * y**2 + self.p * x + self.q * y
        value = f.expand(batch.size)
        return Bound(value if player == "high" else -value)


class Forger(Task):
    """A generator of numbers around a mean that it learns, against a logistic critic with an l2 of its weight.

    What it makes is the examples' deviations from their mean, or fresh noise, added to its own mean; the game rests
    where that mean is the examples' and the critic's weight is 0: elsewhere the critic's best weight is another, and
    with it the forger's gradient.
    """

    players = ("critic", "forger")
    selects = None

    def __init__(self, noise: float = 0.0, poisoned: tuple[str, int] | None = None) -> None:
        super().__init__()
        self.critic = nn.Linear(1, 1)
        self.forger = Number(3.0)
        self.noise = noise
        self.poisoned = poisoned

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        real = batch.values["x"]
        forged = self.forger.value + real - MEAN + self.noise * torch.randn_like(real)
        caught = F.logsigmoid(-self.critic(forged)).squeeze(1)
        if player == "forger":
            value = F.logsigmoid(self.critic(forged)).squeeze(1)
            terms = {"passed": value}
        else:
            known = F.logsigmoid(self.critic(real)).squeeze(1)
            value = known + caught - self.critic.weight.square().sum()
            terms = {"known": known, "caught": caught}
        if self.poisoned == (player, step):
            last = next(reversed(terms))
            value, terms = value * math.nan, {**terms, last: terms[last] * math.nan}
        return Bound(value, terms)


def run(out: Path, task: Task, resume: str = "auto", stop_at: int | None = None, **settings: Any) -> Task:
    values: dict[str, Any] = {
        "steps": 12,
        "batch": SIZE,
        "validate_every": 4,
        "log_every": 2,
        "device": "cpu",
        "precision": "32-true",
    }
    values["keep_state"] = True  # what a run ends with is compared
    chosen = TrainingSettings(**{**values, **settings})

    def save(path: Path, facts: dict[str, Any]) -> None:
        write_checkpoint(path, kind="model", tensors=task.saved_tensors(), settings={}, seed=0, facts=facts)

    described = {"training": chosen.model_dump(mode="json")}
    for progress in train(task, Numbers(SIZE), Numbers(SIZE), chosen, out, save, described, resume=resume):
        if progress.done == stop_at:
            os.kill(os.getpid(), signal.SIGINT)
    return task


LONG = {"steps": 400, "validate_every": 400, "log_every": 400}


def forger(**options: Any) -> Forger:
    torch.manual_seed(0)
    return Forger(**options)


def tensors_of(path: Path, kind: str) -> dict[str, Tensor]:
    return read_checkpoint(path, kind)[1]


@pytest.mark.slow
def test_a_game_comes_to_its_saddle_point(tmp_path: Path) -> None:
    """Where both derivatives are 0: a x + b y = -p and b x - c y = -q."""
    run(tmp_path / "m.safetensors", Saddle(), optimizer="sgd", learning_rate=0.1, **LONG)
    found = tensors_of(tmp_path / "m.safetensors", "model")
    a, b, c, p, q = Saddle.a, Saddle.b, Saddle.c, Saddle.p, Saddle.q
    expected = torch.linalg.solve(torch.tensor([[a, b], [b, -c]]), torch.tensor([-p, -q]))
    torch.testing.assert_close(torch.cat([found["low.value"], found["high.value"]]), expected, atol=1e-5, rtol=0)


def test_a_player_sees_what_those_before_it_have_become(tmp_path: Path) -> None:
    """One step by hand: x' = x - r df/dx(x, y), then y' = y + r df/dy(x', y)."""
    x, y, rate, s = 1.0, -2.0, 0.125, Saddle
    low = x - rate * (s.a * x + s.b * y + s.p)
    high = y + rate * (s.b * low - s.c * y + s.q)
    moved = run(tmp_path / "m.safetensors", Saddle(), steps=1, optimizer="sgd", learning_rate=rate)
    torch.testing.assert_close(torch.stack(list(moved.parameters())).flatten(), torch.tensor([low, high]))


@pytest.mark.slow
def test_a_forger_learns_the_mean_against_a_critic(tmp_path: Path) -> None:
    task = run(tmp_path / "m.safetensors", forger(), optimizer="sgd", learning_rate=0.5, **LONG)
    assert isinstance(task, Forger)
    assert task.forger.value.item() == pytest.approx(MEAN, abs=1e-3)
    assert [p.item() for p in task.critic.parameters()] == pytest.approx([0, 0], abs=1e-3)


def test_a_script_that_goes_on_after_exceptions_ends_at_an_interrupt(tmp_path: Path) -> None:
    begun = []

    def script() -> None:
        for name in ("first", "second"):
            begun.append(name)
            with contextlib.suppress(Exception):
                run(tmp_path / f"{name}.safetensors", forger(noise=0.1), stop_at=2, batch=4)

    with pytest.raises(Interrupted, match="give the same command again"):
        script()
    assert begun == ["first"]


# Muon moves kernels, of which there are none here: see test_training.
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "adam": {},
    "adamw": {"weight_decay": 0.1},
    "rmsprop": {"momentum": 0.5},
    "sgd": {"momentum": 0.9, "schedule": "linear"},
    "adagrad": {"weight_decay": 0.1},
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_interrupted_game_resumes_to_identical_weights(tmp_path: Path, optimizer: str) -> None:
    settings = {"optimizer": optimizer, "learning_rate": 0.05, "batch": 4, **OPTIMIZERS[optimizer]}
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    run(whole, forger(noise=0.1), **settings)
    with pytest.raises(Interrupted, match="stopped at step 6"):
        run(broken, forger(noise=0.1), stop_at=6, **settings)
    torch.manual_seed(1)
    run(broken, Forger(noise=0.1), resume="require", **settings)
    for kind, one, two in (
        ("model", whole, broken),
        ("training-state", state_path(whole), state_path(broken)),
    ):
        expected, found = tensors_of(one, kind), tensors_of(two, kind)
        assert expected.keys() == found.keys()
        assert all(torch.equal(expected[name], found[name]) for name in expected)
    moments = {name.split(".")[1] for name in tensors_of(state_path(whole), "training-state") if "optimizer." in name}
    assert moments == {"critic", "forger"}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_player_alone_resumes_with_every_optimiser(tmp_path: Path, optimizer: str) -> None:
    settings = {"optimizer": optimizer, "learning_rate": 0.05, **OPTIMIZERS[optimizer]}
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    run_line(whole, **settings, keep_state=True)
    run_line(broken, begin=6, **settings, keep_state=True)
    run_line(broken, resume="require", **settings, keep_state=True)
    expected, found = (tensors_of(state_path(path), "training-state") for path in (whole, broken))
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert {name for name in expected if name.startswith("optimizer.")} >= {
        "optimizer.0." + next(iter(kept(optimizer)))
    }


def kept(optimizer: str) -> set[str]:
    return {"exp_avg"} if "adam" in optimizer else {"sum"} if optimizer == "adagrad" else {"momentum_buffer"}


def test_the_guard_names_player_term_and_step(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"at step 7, in caught of the player critic; .*has the run at step 6"):
        run(tmp_path / "c.safetensors", forger(poisoned=("critic", 6)))
    # The critic has moved already: its state would be one step ahead of the forger's.
    with pytest.raises(TrainingError, match=r"at step 7, in passed of the player forger; .*has the run at step 4"):
        run(tmp_path / "f.safetensors", forger(poisoned=("forger", 6)))
    for name, step in (("c", 6), ("f", 4)):
        header, tensors = read_checkpoint(state_path(tmp_path / f"{name}.safetensors"), "training-state")
        assert header.facts["step"] == step
        assert {float(value) for name, value in tensors.items() if name.endswith(".step")} == {step}


def test_a_state_without_a_player_is_refused_in_a_sentence(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(out, forger())
    header, tensors = read_checkpoint(state_path(out), "training-state")
    assert header.facts["parameters_with_moments"] == {"critic": 2, "forger": 1}

    def refused(changed: dict[str, Tensor], facts: dict[str, Any]) -> None:
        write_checkpoint(
            state_path(out), kind="training-state", tensors=changed, settings=header.settings, seed=0, facts=facts
        )
        with pytest.raises(ArtifactError, match="is damaged or was changed"):
            run(out, forger())

    without = {name: value for name, value in tensors.items() if not name.startswith("optimizer.forger.")}
    refused(without, header.facts)
    refused({**tensors, "optimizer.judge.0.step": torch.tensor(12.0)}, header.facts)
    refused({**tensors, "optimizer.forger.1.step": torch.tensor(12.0)}, header.facts)
    refused(tensors, {**header.facts, "parameters_with_moments": 3})


def test_the_log_tells_of_each_player(tmp_path: Path) -> None:
    run(tmp_path / "m.safetensors", forger())
    lines = [json.loads(line) for line in log_path(tmp_path / "m.safetensors").read_text().splitlines()]
    first, checked = lines[0], next(line for line in lines if "validation" in line)
    assert [line["step"] for line in lines if "validation" in line] == [4, 8, 12], "once at the end"
    assert first["players"].keys() == {"critic", "forger"}
    assert first["players"]["critic"]["terms"].keys() == {"known", "caught"}
    assert first["players"]["forger"]["bound"] == pytest.approx(first["players"]["forger"]["terms"]["passed"])
    assert checked["validation"].keys() == {"terms"}
    assert checked["validation"]["terms"].keys() == {
        "critic/bound", "critic/known", "critic/caught", "forger/bound", "forger/passed"
    }  # fmt: skip


class Selecting(Saddle):
    """The game, validated by how far x is from 1, where it begins: the first weights are the best."""

    selects = "minus distance"

    def validate(self, batch: Batch) -> dict[str, Tensor]:
        return {"minus distance": -(self.low.value - 1).abs().expand(batch.size)}


def test_the_task_says_which_weights_are_best(tmp_path: Path) -> None:
    settings = {"optimizer": "sgd", "learning_rate": 0.01, "steps": 8}
    run(tmp_path / "last.safetensors", Saddle(), **settings)
    run(tmp_path / "best.safetensors", Selecting(), **settings)
    last, best = (read_checkpoint(tmp_path / f"{name}.safetensors", "model")[0].facts for name in ("last", "best"))
    assert (last["step"], best["step"]) == (8, 4), "where nothing selects, the last"
    assert best["validation_minus_distance"] < 0 and best["validation_stderr"] == 0
    assert not any(name.startswith("validation_bound") for name in last | best)
    assert read_checkpoint(state_path(tmp_path / "last.safetensors"), "training-state")[0].facts["best"] is None


class Hasty(Saddle):
    """One player learns at half the rate."""

    def parameter_groups(self, player: str = ALONE, weight_decay: float = 0.0) -> list[dict[str, Any]]:
        return [{**group, "rate": 0.5 if player == "low" else 1.0} for group in super().parameter_groups(player)]


def test_a_player_may_learn_at_a_rate_of_its_own(tmp_path: Path) -> None:
    moved = run(tmp_path / "m.safetensors", Hasty(), steps=1, optimizer="sgd", learning_rate=0.125)
    assert isinstance(moved, Hasty)
    assert moved.low.value.item() == pytest.approx(1 - 0.0625 * (Saddle.a - 2 * Saddle.b + Saddle.p))
    lines = [json.loads(line) for line in log_path(tmp_path / "m.safetensors").read_text().splitlines()]
    assert {name: one["learning_rate"] for name, one in lines[0]["players"].items()} == {"low": 0.0625, "high": 0.125}


def test_no_parameter_is_without_a_player(tmp_path: Path) -> None:
    class Forgetful(Saddle):
        def __init__(self) -> None:
            super().__init__()
            self.forgotten = Number(0.0)

    with pytest.raises(AssertionError, match="belongs to no player"):
        run(tmp_path / "m.safetensors", Forgetful())


def test_gradients_are_taken_of_the_player_alone(tmp_path: Path) -> None:
    """The critic has no gradient of the forger's value, and all parameters can be trained again afterwards."""
    seen = []

    class Watching(Forger):
        def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
            if step is not None:
                seen.append((player, [name for name, p in self.named_parameters() if p.requires_grad]))
            return super().forward(batch, step, player)

    task = run(tmp_path / "m.safetensors", Watching(), steps=1)
    # Twice: for the shapes of a step, and for the step.
    assert seen == [("critic", ["critic.weight", "critic.bias"]), ("forger", ["forger.value"])] * 2
    assert all(p.requires_grad for p in task.parameters())


PROCESSES = """
import os, sys
from pathlib import Path

import torch
from tests.training.test_players import forger, run

task = run(Path(sys.argv[1]), forger(), devices=2, optimizer="sgd", learning_rate=0.1)
found = [p.item() for p in task.parameters()]
Path(sys.argv[1]).with_name(os.environ.get("LOCAL_RANK", "0") + ".txt").write_text(repr(found))
"""


@pytest.mark.slow
def test_two_processes_play_as_one(tmp_path: Path) -> None:
    """Without noise the mean of two half batches' gradients is the whole batch's."""
    script = tmp_path / "play_on_two.py"
    script.write_text(PROCESSES)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "two.safetensors")],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = ((tmp_path / f"{rank}.txt").read_text() for rank in (0, 1))
    assert first == second
    alone = run(tmp_path / "one.safetensors", forger(), optimizer="sgd", learning_rate=0.1)
    assert json.loads(first) == pytest.approx([p.item() for p in alone.parameters()], abs=1e-6)


def test_a_line_is_still_written_as_ever(tmp_path: Path) -> None:
    run_line(tmp_path / "m.safetensors", Line(), keep_state=True)
    header, tensors = read_checkpoint(state_path(tmp_path / "m.safetensors"), "training-state")
    assert header.facts["parameters_with_moments"] == 2
    assert {name for name in tensors if name.startswith("optimizer.")} == {
        f"optimizer.{number}.{name}" for number in (0, 1) for name in ("exp_avg", "exp_avg_sq", "step")
    }

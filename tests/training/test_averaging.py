"""Averaged weights: their formula, what is saved, and runs that are continued."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from mmgen.artifacts import read_checkpoint
from mmgen.core.errors import ArtifactError
from mmgen.training.state import state_path
from mmgen.training.weights import AveragedWeights
from tests.training.test_states import forge, tensor
from tests.training.test_training_runs import Line, run


def tensors(path: Path) -> dict[str, Tensor]:
    return read_checkpoint(path)[1]


def test_the_average_forgets_early_steps_fast_and_later_ones_slowly() -> None:
    task = Line()
    average = AveragedWeights(task, 0.9)
    expected = task.line.weight.item()
    for step in range(1, 120):
        with torch.no_grad():
            task.line.weight.fill_(step)
        average.update(step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    assert average.means["line.weight"].item() == pytest.approx(expected, rel=1e-5)
    assert expected == pytest.approx(119 - 9, abs=0.1)  # 0.9 / (1 - 0.9) steps behind


def test_averaged_weights_act_within_their_block_alone() -> None:
    task = Line()
    average = AveragedWeights(task, 0.5)
    own, mean = task.line.weight.item(), 7.0
    average.means["line.weight"].fill_(mean)
    with average.apply():
        assert task.line.weight.item() == mean
    assert (task.line.weight.item(), average.means["line.weight"].item()) == (own, mean)


def test_the_file_holds_averaged_weights_and_the_state_both(tmp_path: Path) -> None:
    task, out = Line(), tmp_path / "m.safetensors"
    run(out, task, average=0.9, keep_state=True, keep="last")
    state = tensors(state_path(out))
    assert tensors(out)["line.weight"].equal(state["average.line.weight"])
    assert task.line.weight.equal(state["task.line.weight"])
    assert not state["task.line.weight"].equal(state["average.line.weight"])


def test_a_run_with_averaged_weights_is_continued_bit_for_bit(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole.safetensors", tmp_path / "parts.safetensors"
    first = run(whole, average=0.8, keep_state=True)
    run(parts, begin=8, average=0.8, keep_state=True)
    second = run(parts, average=0.8, keep_state=True)
    assert first.best == second.best
    for place in (lambda path: path, state_path):
        one, two = tensors(place(whole)), tensors(place(parts))
        assert one.keys() == two.keys() and all(one[name].equal(two[name]) for name in one)


def test_a_state_without_its_average_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(out, begin=8, average=0.8)
    forge(state_path(out), tensor("average.line.weight", torch.full((1, 1), torch.nan)))
    with pytest.raises(ArtifactError, match="is damaged or was changed"):
        run(out, average=0.8)

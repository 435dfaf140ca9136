"""A training state that is no state of its run is refused in a sentence, whatever its content id says."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mmgen.artifacts import read_checkpoint, read_header, write_checkpoint
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.training.state import describe_interruption, is_finished, state_path
from mmgen.training.weights import AveragedWeights
from tests.training.test_training_runs import Line, run

Facts, Tensors = dict[str, Any], dict[str, Tensor]


def forge(path: Path, change: Callable[[Facts, Tensors], None]) -> None:
    """Write a state again with other facts or tensors and a content id that fits them."""
    header, tensors = read_checkpoint(path, "training-state")
    facts = dict(header.facts)
    change(facts, tensors)
    write_checkpoint(
        path, kind="training-state", tensors=tensors, settings=header.settings, seed=header.seed, facts=facts
    )


def fact(name: str, value: Any) -> Callable[[Facts, Tensors], None]:
    return lambda facts, _: facts.update({name: value})


def tensor(name: str, value: Tensor | None) -> Callable[[Facts, Tensors], None]:
    def change(_: Facts, tensors: Tensors) -> None:
        assert name in tensors or value is not None
        if value is None:
            del tensors[name]
        else:
            tensors[name] = value

    return change


def without_moments(_: Facts, tensors: Tensors) -> None:
    for name in ("exp_avg", "exp_avg_sq", "step"):
        del tensors[f"optimizer.0.{name}"]


CHANGES: dict[str, Callable[[Facts, Tensors], None]] = {
    "another step": fact("step", 3),
    "a step in words": fact("step", "six"),
    "no step": lambda facts, _: facts.pop("step"),
    "negative time": fact("seconds", -1.0),
    "best in words": fact("best", "x"),
    "finished as a number": fact("finished", 0),
    "a missing mean": tensor("optimizer.0.exp_avg", None),
    "no moments": without_moments,
    "a mean of another shape": tensor("optimizer.0.exp_avg", torch.zeros(7, 7)),
    "a mean that is not finite": tensor("optimizer.0.exp_avg", torch.full((1, 1), torch.nan)),
    "a negative square": tensor("optimizer.0.exp_avg_sq", torch.full((1, 1), -1.0)),
    "a parameter too many": tensor("optimizer.99.step", torch.tensor(4.0)),
    "a number below 0": tensor("optimizer.-1.step", torch.tensor(4.0)),
    "weights that are not finite": tensor("task.line.weight", torch.full((1, 1), torch.inf)),
    "foreign weights": tensor("task.line.foreign", torch.ones(2)),
    "no weights": tensor("task.line.weight", None),
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The state of a run that was saved at step 4 of 12."""
    out = tmp_path / "m.safetensors"
    run(out, begin=8)
    assert read_checkpoint(state_path(out), "training-state")[0].facts["step"] == 4
    return out


@pytest.mark.parametrize("name", CHANGES)
def test_a_forged_state_is_refused_in_a_sentence(state: Path, name: str) -> None:
    forge(state_path(state), CHANGES[name])
    before = state_path(state).read_bytes()
    with pytest.raises(ArtifactError, match="is damaged or was changed; use --overwrite to begin anew"):
        run(state)
    assert state_path(state).read_bytes() == before


def test_an_honest_state_passes_through_the_forge(state: Path) -> None:
    forge(state_path(state), lambda facts, tensors: None)
    assert run(state).steps == 12


@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_a_file_says_by_itself_that_its_run_goes_on(rate: float, tmp_path: Path) -> None:
    """The larger rate undoes what was learnt: the best weights are earlier ones, and the last validation keeps them."""
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    best = run(whole, learning_rate=rate).best
    run(broken, begin=10, learning_rate=rate)
    assert not is_finished(read_header(broken)) and is_finished(read_header(whole))
    kept = state_path(broken).rename(tmp_path / "kept")
    assert "broken.safetensors is from a run that was interrupted, and the state" in describe_interruption(broken)
    with pytest.raises(UsageError, match="cannot be continued without its state"):
        run(broken, learning_rate=rate)
    kept.rename(state_path(broken))
    run(broken, resume="require", learning_rate=rate)
    ended, first = read_header(broken), read_header(whole)
    assert best == pytest.approx(first.facts["validation_bound"]), "of all validations, not of the last"
    assert ended.content_id == first.content_id and "finished" not in ended.facts
    assert ended.facts["step"] == (12 if rate < 0.1 else 8)
    state_path(broken).unlink()
    assert describe_interruption(broken) == ""


def test_weights_are_never_there_without_a_state_that_goes_on_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = tmp_path / "m.safetensors", tmp_path / "whole.safetensors"

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("mmgen.training.state.write_checkpoint", full)
        with pytest.raises(OSError, match="no space"):
            run(out)
    assert not out.exists() and not state_path(out).exists()
    run(out)
    run(whole)
    assert read_header(out).content_id == read_header(whole).content_id


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

"""How long a file was trained, and which of its weights it holds, is said as two things wherever it is said."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mmgen.artifacts import Header, read_header, write_checkpoint
from mmgen.artifacts.contents import describe_file, format_training
from mmgen.cli._make import _describe_best
from mmgen.figures.report.context import describe_model
from mmgen.training.loop import TrainingResult


def written(path: Path, facts: dict[str, Any], **training: Any) -> Header:
    settings = {"training": training, "objective": {"name": "elbo"}, "model": {"latent_size": 2}}
    write_checkpoint(path, kind="model", tensors={"w": torch.zeros(1)}, settings=settings, seed=0, facts=facts)
    return read_header(path)


@pytest.mark.parametrize(
    ("facts", "training", "said"),
    [
        ({"step": 2000}, {"steps": 2800}, "2,800 steps, weights of step 2,000"),
        ({"step": 2800}, {"steps": 2800}, "2,800 steps"),
        ({"step": 0}, {"steps": 2800}, "2,800 steps, weights of step 0"),
        ({"step": 2000, "finished": False}, {"steps": 2800}, "weights of step 2,000, not trained to the end"),
        ({"step": 20}, {"steps": 10**9, "minutes": 1.5}, "at most 1.5 minutes, weights of step 20"),
        ({"step": 20}, {}, "20 steps"),
        ({"step": True}, {"steps": 2}, ""),
        ({"step": "many"}, {"steps": 2}, ""),
        ({}, {"steps": 2}, ""),
    ],
)
def test_steps_of_a_run_and_of_the_weights_that_are_kept(
    facts: dict[str, Any], training: dict[str, Any], said: str, tmp_path: Path
) -> None:
    header = written(tmp_path / "m.safetensors", facts, **training)
    assert format_training(header) == said and describe_file(tmp_path / "m.safetensors").get("trained", "") == said
    group: Any = SimpleNamespace(header=header)  # all that a line about a model is of
    assert describe_model(group) == "objective elbo, latent size 2" + (f", {said}" if said else "")


def test_settings_that_are_none_say_nothing(tmp_path: Path) -> None:
    header = written(tmp_path / "m.safetensors", {"step": 3})
    for settings in ({}, {"training": 3}, {"training": [1]}):
        assert format_training(Header(**{**vars(header), "settings": settings})) == ""


@pytest.mark.parametrize(
    ("step", "own", "said"),
    [
        (2000, -3.5, "best validation value -3.50 nats per example: 2,800 steps, weights of step 2,000"),
        (2800, -4.0, "best validation value -3.50 nats per example (-4.00 of the weights that are kept): 2,800 steps"),
    ],
)
def test_the_last_line_of_a_run_says_which_weights_have_the_best_value(
    step: int, own: float, said: str, tmp_path: Path
) -> None:
    """The best weights by default, the last with keep=last; the run may have been stopped by the clock."""
    out = tmp_path / "m.safetensors"
    written(out, {"step": step, "validation_bound": own}, steps=10**6, minutes=3)
    assert _describe_best(TrainingResult(out, 2800, -3.5, 1.0)) == said

"""Weights that are not finite are refused where they are read, whatever the file is."""

import math
from pathlib import Path

import pytest
import torch

from mmgen.artifacts import read_checkpoint, write_checkpoint
from mmgen.core.errors import ArtifactError


@pytest.mark.parametrize("number", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("kind", "command"),
    [("model", "mmgen train"), ("aggregate", "mmgen fit-aggregate"), ("classifier", "mmgen train-classifier")],
)
def test_weights_that_are_not_finite_are_refused(tmp_path: Path, kind: str, command: str, number: float) -> None:
    path = tmp_path / "diverged.safetensors"
    tensors = {"steps": torch.ones(2, dtype=torch.int64), "decoder.0.weight": torch.tensor([[1.0, number]])}
    write_checkpoint(path, kind=kind, tensors=tensors, settings={}, seed=0)
    with pytest.raises(ArtifactError, match=rf"diverged.* 'decoder.0.weight', .* again with {command} and"):
        read_checkpoint(path, kind)


def test_a_training_state_may_hold_an_infinity(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    write_checkpoint(path, kind="training-state", tensors={"best": torch.tensor(-math.inf)}, settings={}, seed=0)
    assert read_checkpoint(path)[1]["best"] == -math.inf

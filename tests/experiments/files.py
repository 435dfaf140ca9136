"""Stages and the files that they make, as small as can be."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mmgen.artifacts import DatasetWriter, parent_record, read_header, write_checkpoint
from mmgen.experiments._stages import Stage
from mmgen.training.state import state_path


def stage(command: str, makes: str, **settings: Any) -> Stage:
    """A stage with a row of its own if ``of`` names one."""
    of = settings.pop("of", "")
    return Stage(why=f"makes {makes}", command=command, makes=makes, of=of, settings=settings)


def write_data(
    path: Path, level: int = 0, recipe: str = "toy", command: str = "mmgen make-data mnist -o data.h5"
) -> None:
    with DatasetWriter(path, size=3, settings={"recipe": recipe}, seed=0, command=command) as writer:
        writer.add_image("image", shape=(1, 2, 2), layout="bytes")
        writer.write(0, {"image": np.full((3, 1, 2, 2), level, np.uint8)})
        writer.add_splits("iid", train=np.array([0]), val=np.array([1]), test=np.array([2]))


def write_model(
    path: Path,
    data: Path,
    kind: str = "model",
    finished: bool | None = None,
    command: str = "mmgen train data.h5 -o model.safetensors",
    weight: float = 0.0,
    told: dict[str, Any] | None = None,
    seed: int = 0,
) -> None:
    tensors, common = {"w": torch.full((1,), weight)}, {"settings": {}, "seed": seed, "command": command}
    write_checkpoint(
        path, kind=kind, tensors=tensors, parents=(parent_record(data, "dataset", path),), facts=told or {}, **common
    )
    if finished is not None:
        facts = {"finished": finished}
        write_checkpoint(state_path(path), kind="training-state", tensors=tensors, parents=(), facts=facts, **common)


def score_line(*files: Path, value: float = 1.0, seed: int | None = None) -> str:
    """A score of some files as ``mmgen eval`` writes it."""
    ids = {path.name: read_header(path).content_id for path in files}
    return json.dumps({"metric": "elbo", "value": value, "ids": ids, "seed": seed}) + "\n"

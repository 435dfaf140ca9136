"""Which stages of a list are still to be run: what is there is used only if the list's command would make it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import DatasetWriter, read_header, reference, write_checkpoint
from mmgen.core.errors import ArtifactError
from mmgen.experiments._notes import remember
from mmgen.experiments._plan import fitting, state_of, with_data
from mmgen.experiments._stages import Scale, Stage
from mmgen.experiments._typed import choices
from mmgen.training.state import state_path


def write_data(path: Path, level: int = 0, recipe: str = "toy", command: str = "mmgen make-data x") -> None:
    with DatasetWriter(path, size=3, settings={"recipe": recipe}, seed=0, command=command) as writer:
        writer.add_image("image", shape=(1, 2, 2), layout="bytes")
        writer.write(0, {"image": np.full((3, 1, 2, 2), level, np.uint8)})
        writer.add_splits("iid", train=np.array([0]), val=np.array([1]), test=np.array([2]))


def write_model(
    path: Path,
    data: Path,
    kind: str = "model",
    finished: bool | None = None,
    command: str = "mmgen train data.h5",
    weight: float = 0.0,
    told: dict[str, Any] | None = None,
) -> None:
    tensors, common = {"w": torch.full((1,), weight)}, {"settings": {}, "seed": 0, "command": command}
    write_checkpoint(
        path, kind=kind, tensors=tensors, parents=(reference(data, "dataset", path),), facts=told or {}, **common
    )
    if finished is not None:
        facts = {"finished": finished}
        write_checkpoint(state_path(path), kind="training-state", tensors=tensors, parents=(), facts=facts, **common)


def score_line(*files: Path, value: float = 1.0, seed: int | None = None) -> str:
    """A score of some files as ``mmgen eval`` writes it."""
    ids = {path.name: read_header(path).content_id for path in files}
    return json.dumps({"metric": "elbo", "value": value, "ids": ids, "seed": seed}) + "\n"


TRAIN = Stage(why="", command="mmgen train data.h5 -o model.safetensors", makes="model.safetensors")
EVAL = Stage(why="", command="mmgen eval model.safetensors -o scores.jsonl", makes="scores.jsonl")
EARLIER = ["data.h5", "model.safetensors"]


def test_what_is_there_is_used_only_if_it_fits(tmp_path: Path) -> None:
    data, model, scores = (tmp_path / name for name in ("data.h5", "model.safetensors", "scores.jsonl"))
    make = Stage(why="", command="mmgen make-data x -o data.h5", makes="data.h5")
    assert state_of(make, tmp_path, []) == "missing"
    write_data(data)
    assert state_of(make, tmp_path, []) == "done"
    assert state_of(TRAIN, tmp_path, ["data.h5"]) == "missing"
    write_model(model, data, finished=False)
    assert state_of(TRAIN, tmp_path, ["data.h5"]) == "unfinished"
    write_model(model, data, finished=True)
    assert state_of(TRAIN, tmp_path, ["data.h5"]) == "done"
    for text in ("", "no json", '{"metric": "a"}', score_line(data), score_line(model).replace("1.0", '"high"')):
        scores.write_text(text)
        assert state_of(EVAL, tmp_path, EARLIER) == "outdated"
    scores.write_text(score_line(model, data))
    assert state_of(EVAL, tmp_path, EARLIER) == "done"
    data.unlink()
    write_data(data, level=7)
    with pytest.raises(ArtifactError, match=r"model.safetensors was made from another data.h5 .* remove it"):
        state_of(TRAIN, tmp_path, ["data.h5"])


@pytest.mark.parametrize(
    ("kind", "told", "state", "found"),
    [
        ("model", {"step": 3, "finished": False}, False, "unfinished"),
        ("aggregate", {"step": 3, "finished": False}, None, "gone"),
        ("model", {"step": 3}, None, "done"),
        ("model", {"step": 3}, True, "done"),
        ("classifier", {"step": 3}, True, "unfinished"),
        ("classifier", {"step": 3}, None, "gone"),
        ("classifier", {"step": 3, "held_out_accuracy": {"mean": 90.0}}, None, "done"),
    ],
)
def test_what_is_half_made_is_not_used(
    kind: str, told: dict[str, Any], state: bool | None, found: str, tmp_path: Path
) -> None:
    """Whatever has become of the state beside it."""
    write_data(tmp_path / "data.h5")
    write_model(tmp_path / "model.safetensors", tmp_path / "data.h5", kind=kind, told=told, finished=state)
    if found == "gone":
        with pytest.raises(ArtifactError, match=r"was interrupted, and its state model\.last\.safetensors is gone"):
            state_of(TRAIN, tmp_path, ["data.h5"])
    else:
        assert state_of(TRAIN, tmp_path, ["data.h5"]) == found


def test_what_another_seed_made_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    data, model, scores = (tmp_path / name for name in ("d.h5", "m.safetensors", "m.jsonl"))
    write_data(data)
    write_model(model, data, command="mmgen train d.h5 --seed 0")
    trained = Stage(why="", command="mmgen train d.h5 --seed 0 -o m.safetensors", makes="m.safetensors")
    other = Stage(why="", command="mmgen train d.h5 --seed 1 -o m.safetensors", makes="m.safetensors")
    assert state_of(trained, tmp_path, ["d.h5"]) == "done"
    with pytest.raises(ArtifactError, match=r"was made with seed 0 and is now to be made with seed 1; remove it"):
        state_of(other, tmp_path, ["d.h5"])
    scores.write_text(score_line(data, seed=0))
    command = "mmgen baseline d.h5 --method vae --seed {} -o m.jsonl"
    found = [
        state_of(Stage(why="", command=command.format(seed), makes="m.jsonl"), tmp_path, ["d.h5"]) for seed in (0, 1)
    ]
    assert found == ["done", "outdated"]


TOLD = "mmgen train d.h5 --preset a --set objective.beta=4 -o m.safetensors"


@pytest.mark.parametrize(
    ("recorded", "state"),
    [
        (TOLD, "done"),
        ("mmgen train '/else where/other.h5' --preset=a --set objective.beta=4 --output x/y.safetensors", "done"),
        ("a caller's own word", "unsure"),
        ("", "unsure"),
        ("mmgen train --preset a --set objective.beta=4 d.h5 --seed 0", "unsure"),
        (TOLD.replace("preset a", "preset b"), "unsure"),
        (TOLD.replace("beta=4", "beta=4 --set objective.beta=1"), "unsure"),
        ("mmgen train 'd.h5", "unsure"),
        ("mmgen train " + "word " * 100_000, "unsure"),
    ],
)
def test_a_command_in_other_words_is_asked(recorded: str, state: str, tmp_path: Path) -> None:
    """Training says itself whether a finished run is its own."""
    data, model = tmp_path / "d.h5", tmp_path / "m.safetensors"
    write_data(data)
    write_model(model, data, command=recorded)
    trained = Stage(why="", command=TOLD, makes=model.name)
    assert state_of(trained, tmp_path, ["d.h5"]) == state
    given = Scale(
        about="", folder="f", stage=(Stage(why="", command="mmgen make-data x -o d.h5", makes="d.h5"), trained)
    )
    (renamed,) = with_data(given, data.rename(tmp_path / "my own.h5")).stage
    assert state_of(renamed, tmp_path, []) == state


@pytest.mark.parametrize(
    ("recorded", "fits"),
    [
        ("mmgen make-data mnist-a --size 32 --mnist raw/train --seed 0 -o d.h5", True),
        ("mmgen make-data --seed 0 mnist-a --mnist {}/raw/train/ --size=32 --workers 3 --overwrite -o o.h5", True),
        ("mmgen make-data mnist-a --mnist ./raw/train --size 32 -o d.h5", True),
        ("mmgen make-data mnist-a --size 64 --mnist raw/train --seed 0 -o d.h5", False),
        ("mmgen make-data mnist-a --size 32 --mnist other/train --seed 0 -o d.h5", False),
        ("mmgen make-data mnist-a --size 32 --mnist /raw/train --seed 0 -o d.h5", False),
        ("a caller's own word", False),
        ("", False),
    ],
)
def test_a_dataset_of_other_choices_is_refused(recorded: str, fits: bool, tmp_path: Path) -> None:
    data = tmp_path / "d.h5"
    write_data(data, command=recorded.format(tmp_path))
    stage = Stage(why="", command="mmgen make-data mnist-a --size 32 --mnist raw/train --seed 0 -o d.h5", makes="d.h5")
    if fits:
        assert state_of(stage, tmp_path, []) == "done"
    else:
        with pytest.raises(ArtifactError, match=r"made by another command \(.*--data d.h5"):
            state_of(stage, tmp_path, [])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("--set x=1 --set y=2", "--set y=2 --set x=1", True),
        ("--set x=1 --set x=2", "--set x=2 --set x=1", False),
        ("--column a --column b", "--column b --column a", False),
        ("--size 3 --column a", "--column a --size 3", True),
    ],
)
def test_the_order_of_options_counts_where_one_is_said_twice(one: str, other: str, same: bool, tmp_path: Path) -> None:
    first, second = (choices(f"mmgen make-data toy {options}", tmp_path) for options in (one, other))
    assert (first == second) == same


def test_scores_of_a_changed_command_are_made_again(tmp_path: Path) -> None:
    data, scores = tmp_path / "d.h5", tmp_path / "m.jsonl"
    write_data(data)
    scores.write_text(score_line(data))
    few, many = (
        Stage(why="", command=f"mmgen eval d.h5 --draws {draws} -o m.jsonl", makes="m.jsonl") for draws in (2, 20)
    )
    assert state_of(many, tmp_path, ["d.h5"]) == "done"  # nobody knows by what
    remember(few, tmp_path)
    assert [state_of(stage, tmp_path, ["d.h5"]) for stage in (few, many)] == ["done", "outdated"]
    (tmp_path / ".stages" / "m.jsonl.txt").write_text(few.typed + "\n")  # as earlier versions noted it
    assert [state_of(stage, tmp_path, ["d.h5"]) for stage in (few, many)] == ["done", "outdated"]


def test_scores_that_somebody_has_put_there_are_made_again(tmp_path: Path) -> None:
    """The same ids do not make them the list's own."""
    data, scores = tmp_path / "d.h5", tmp_path / "m.jsonl"
    write_data(data)
    scores.write_text(score_line(data))
    stage = Stage(why="", command="mmgen eval d.h5 -o m.jsonl", makes="m.jsonl")
    remember(stage, tmp_path)
    assert state_of(stage, tmp_path, ["d.h5"]) == "done"
    scores.write_text(score_line(data, value=2.0))
    assert state_of(stage, tmp_path, ["d.h5"]) == "outdated"


def test_what_was_found_to_be_the_same_is_not_asked_again(tmp_path: Path) -> None:
    data, model = tmp_path / "data.h5", tmp_path / "model.safetensors"
    write_data(data)
    write_model(model, data, command="mmgen train --steps 9 data.h5")
    stage = Stage(why="", command="mmgen train data.h5 --steps 9 -o model.safetensors", makes="model.safetensors")
    assert state_of(stage, tmp_path, ["data.h5"]) == "unsure"
    remember(stage, tmp_path)
    assert state_of(stage, tmp_path, ["data.h5"]) == "done"
    model.unlink()
    write_model(model, data, command="mmgen train --steps 8 data.h5", weight=1.0)
    assert state_of(stage, tmp_path, ["data.h5"]) == "unsure"


def test_scores_of_a_model_that_does_not_fit_are_not_shown(tmp_path: Path) -> None:
    data, model, scores = (tmp_path / name for name in ("data.h5", "model.safetensors", "scores.jsonl"))
    write_data(data)
    write_model(model, data, command=TRAIN.typed)
    scores.write_text(score_line(model))
    make = Stage(why="", command="mmgen make-data x -o data.h5", makes="data.h5")
    other = Stage(why="", command="mmgen train data.h5 --steps 9 -o model.safetensors", makes="model.safetensors")
    listed = [Scale(about="", folder="f", stage=(make, train, EVAL)) for train in (TRAIN, other)]
    assert [fitting(scale, tmp_path) for scale in listed] == [["data.h5", *EARLIER[1:], "scores.jsonl"], ["data.h5"]]

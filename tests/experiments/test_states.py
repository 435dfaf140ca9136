"""Which stages of a list are still to be run: what is there is used only if the list's command would make it."""

import os
from pathlib import Path
from typing import Any

import pytest

from mmgen.core.errors import ArtifactError
from mmgen.experiments._plan import use_dataset
from mmgen.experiments._stages import Scale
from mmgen.experiments._states import find_state, finished_files, record_command
from tests.experiments.files import score_line, stage, write_data, write_model

TRAIN = stage("train", "model.safetensors", dataset="data.h5")
EVAL = stage("eval", "scores.jsonl", model="model.safetensors")
EARLIER = ["data.h5", "model.safetensors"]


def test_what_is_there_is_used_only_if_it_fits(tmp_path: Path) -> None:
    data, model, scores = (tmp_path / name for name in ("data.h5", "model.safetensors", "scores.jsonl"))
    make = stage("make-data", "data.h5", recipe="mnist")
    assert find_state(make, tmp_path, []) == "missing"
    write_data(data)
    assert find_state(make, tmp_path, []) == "done"
    assert find_state(TRAIN, tmp_path, ["data.h5"]) == "missing"
    write_model(model, data, finished=False)
    assert find_state(TRAIN, tmp_path, ["data.h5"]) == "unfinished"
    write_model(model, data, finished=True)
    assert find_state(TRAIN, tmp_path, ["data.h5"]) == "done"
    for text in ("", "no json", '{"metric": "a"}', score_line(data), score_line(model).replace("1.0", '"high"')):
        scores.write_text(text)
        assert find_state(EVAL, tmp_path, EARLIER) == "outdated"
    scores.write_text(score_line(model, data))
    assert find_state(EVAL, tmp_path, EARLIER) == "done"
    data.unlink()
    write_data(data, level=7)
    with pytest.raises(ArtifactError, match=r"model.safetensors was made from another data.h5 .* remove it"):
        find_state(TRAIN, tmp_path, ["data.h5"])


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
        with pytest.raises(ArtifactError, match=r"an interrupted run whose state model\.last\.safetensors is missing"):
            find_state(TRAIN, tmp_path, ["data.h5"])
    else:
        assert find_state(TRAIN, tmp_path, ["data.h5"]) == found


def test_what_another_seed_made_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    data, model, scores = (tmp_path / name for name in ("d.h5", "m.safetensors", "m.jsonl"))
    write_data(data)
    write_model(model, data, command="mmgen train d.h5 --seed 0 -o m.safetensors")
    trained = stage("train", "m.safetensors", dataset="d.h5", seed=0)
    other = stage("train", "m.safetensors", dataset="d.h5", seed=1)
    assert find_state(trained, tmp_path, ["d.h5"]) == "done"
    with pytest.raises(ArtifactError, match=r"was made with seed 0, expected seed 1; remove it"):
        find_state(other, tmp_path, ["d.h5"])
    files = ["d.h5", "m.safetensors"]
    for seed, expected in ((0, ["done", "outdated"]), (None, ["done", "done"])):  # of unknown seed: nobody knows better
        scores.write_text(score_line(model, seed=seed))
        asked = [stage("eval", "m.jsonl", model=files[1], seed=seed) for seed in (0, 1)]
        assert [find_state(one, tmp_path, files) for one in asked] == expected
    model.unlink()
    write_model(model, data, command=trained.command_line, seed=3)
    with pytest.raises(ArtifactError, match=r"was made with seed 3, expected seed 0; remove it"):
        find_state(trained, tmp_path, ["d.h5"])


def test_a_page_older_than_what_it_tells_of_is_made_again(tmp_path: Path) -> None:
    page = stage("report", "r.html", files="d.h5")
    write_data(tmp_path / "d.h5")
    (tmp_path / "r.html").write_text("a page")
    for seconds, expected in ((0, "done"), (1, "done"), (-1, "outdated")):
        os.utime(tmp_path / "d.h5", (1000, 1000))
        os.utime(tmp_path / "r.html", (1000 + seconds, 1000 + seconds))
        assert find_state(page, tmp_path, ["d.h5"]) == expected


def test_a_command_in_other_words_is_asked(tmp_path: Path) -> None:
    """Training says itself whether a finished run is its own."""
    data, model = tmp_path / "d.h5", tmp_path / "m.safetensors"
    write_data(data)
    trained = stage("train", model.name, dataset="d.h5", preset="a", set={"objective": {"beta": 4}})
    assert trained.command_line == "mmgen train d.h5 --preset a --set objective.beta=4 -o m.safetensors"
    for command in (
        trained.command_line,
        trained.command_line.replace("4", "1"),
        "a caller's own word",
        "",
        "mmgen 'd.h5",
    ):
        write_model(model, data, command=command)
        assert find_state(trained, tmp_path, ["d.h5"]) == ("done" if command == trained.command_line else "unsure")
        model.unlink()
    scale = Scale(about="", folder="f", stage=(stage("make-data", "d.h5", recipe="mnist"), trained))
    (renamed,) = use_dataset(scale, data.rename(tmp_path / "my own.h5")).stage
    assert renamed.settings["dataset"] == str(tmp_path / "my own.h5")
    write_model(model, tmp_path / "my own.h5", command=renamed.command_line)
    assert find_state(renamed, tmp_path, []) == "done"


def test_a_dataset_of_another_command_is_asked(tmp_path: Path) -> None:
    """make-data itself says whether the file is its own, and refuses to replace another."""
    make = stage("make-data", "d.h5", recipe="mnist-a", size=32, mnist="raw/train", seed=0)
    for command, state in (
        (make.command_line, "done"),
        (make.command_line.replace("32", "64"), "unsure"),
        ("", "unsure"),
    ):
        (tmp_path / "d.h5").unlink(missing_ok=True)
        write_data(tmp_path / "d.h5", command=command)
        assert find_state(make, tmp_path, []) == state


def test_scores_of_a_changed_command_are_made_again(tmp_path: Path) -> None:
    data, scores = tmp_path / "d.h5", tmp_path / "m.jsonl"
    write_data(data)
    scores.write_text(score_line(data))
    few, many = (stage("eval", "m.jsonl", model="d.h5", draws=draws) for draws in (2, 20))
    assert find_state(many, tmp_path, ["d.h5"]) == "done"  # nobody knows by what
    record_command(few, tmp_path)
    assert [find_state(one, tmp_path, ["d.h5"]) for one in (few, many)] == ["done", "outdated"]


def test_scores_that_somebody_has_put_there_are_made_again(tmp_path: Path) -> None:
    """The same ids do not make them the list's own."""
    data, scores = tmp_path / "d.h5", tmp_path / "m.jsonl"
    write_data(data)
    scores.write_text(score_line(data))
    scored = stage("eval", "m.jsonl", model="d.h5")
    record_command(scored, tmp_path)
    assert find_state(scored, tmp_path, ["d.h5"]) == "done"
    scores.write_text(score_line(data, value=2.0))
    assert find_state(scored, tmp_path, ["d.h5"]) == "outdated"


def test_what_was_found_to_be_the_same_is_not_asked_again(tmp_path: Path) -> None:
    data, model = tmp_path / "data.h5", tmp_path / "model.safetensors"
    write_data(data)
    write_model(model, data, command="mmgen train --steps 9 data.h5")
    trained = stage("train", "model.safetensors", dataset="data.h5", steps=9)
    assert find_state(trained, tmp_path, ["data.h5"]) == "unsure"
    record_command(trained, tmp_path)
    assert find_state(trained, tmp_path, ["data.h5"]) == "done"
    model.unlink()
    write_model(model, data, command="mmgen train --steps 8 data.h5", weight=1.0)
    assert find_state(trained, tmp_path, ["data.h5"]) == "unsure"


def test_scores_of_a_model_that_does_not_fit_are_not_shown(tmp_path: Path) -> None:
    data, model, scores = (tmp_path / name for name in ("data.h5", "model.safetensors", "scores.jsonl"))
    write_data(data)
    write_model(model, data, command=TRAIN.command_line)
    scores.write_text(score_line(model))
    make = stage("make-data", "data.h5", recipe="mnist")
    other = stage("train", "model.safetensors", dataset="data.h5", steps=9)
    listed = [Scale(about="", folder="f", stage=(make, train, EVAL)) for train in (TRAIN, other)]
    assert [finished_files(scale, tmp_path) for scale in listed] == [
        ["data.h5", *EARLIER[1:], "scores.jsonl"],
        ["data.h5"],
    ]

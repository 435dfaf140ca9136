"""Words of a list's commands: an option and its value are the same with a blank, with = and with neither."""

from pathlib import Path

import pytest

from mmgen.artifacts import read_header
from mmgen.core.errors import ArtifactError
from mmgen.experiments._plan import only, state_of, with_data
from mmgen.experiments._seeds import with_seed, with_seeds
from mmgen.experiments._stages import Scale, Stage
from tests.test_reproduction_states import write_data, write_model

TYPED = (
    ("mmgen train --dataset=d.h5 --seed=0 -oa.safetensors", "a.safetensors", "A"),
    ("mmgen train d.h5 --from=a.safetensors --seed=0 --output=b.safetensors", "b.safetensors", "B"),
    ("mmgen eval b.safetensors --text-proposal=a.safetensors --seed=0 -o b.jsonl", "b.jsonl", "B"),
)
SCALE = Scale(
    about="",
    folder="f",
    stage=(
        Stage(why="", command="mmgen make-data toy --seed=0 --output=d.h5", makes="d.h5"),
        *(Stage(why="", command=command, makes=makes, of=of) for command, makes, of in TYPED),
    ),
)


def test_seeds_are_found() -> None:
    assert [stage.seed for stage in SCALE.stage] == [0, 0, 0, 0]
    seeded = with_seed(SCALE, 7)
    assert [stage.seed for stage in seeded.stage] == [0, 7, 7, 7]
    assert seeded.folder == "f-seed7"


def test_files_of_each_seed_are_found() -> None:
    scale, runs = with_seeds(SCALE, (0, 1))
    assert runs["b.jsonl"] == ["b.jsonl", "b-seed1.jsonl"]
    assert scale.stage[-1].typed == (
        "mmgen eval b-seed1.safetensors --text-proposal a-seed1.safetensors --seed 1 -o b-seed1.jsonl"
    )


def test_what_a_row_needs_is_found() -> None:
    needed = only(SCALE, ["B"]).stage
    assert [stage.makes for stage in needed] == ["d.h5", "a.safetensors", "b.safetensors", "b.jsonl"]
    (first, *_) = with_data(SCALE, Path("/data/own.h5")).stage
    assert first.typed == "mmgen train --dataset /data/own.h5 --seed 0 -o a.safetensors"


def test_a_file_of_other_files_is_found(tmp_path: Path) -> None:
    write_data(tmp_path / "d.h5")
    stage = SCALE.stage[1]
    write_model(tmp_path / "a.safetensors", tmp_path / "d.h5", command=stage.typed)
    assert state_of(stage, tmp_path, ["d.h5"]) == "done"
    before = read_header(tmp_path / "d.h5").content_id
    (tmp_path / "d.h5").unlink()
    write_data(tmp_path / "d.h5", level=7)
    assert read_header(tmp_path / "d.h5").content_id != before
    with pytest.raises(ArtifactError, match=r"a\.safetensors was made from another d\.h5"):
        state_of(stage, tmp_path, ["d.h5"])

"""Headers, kinds and finding relatives."""

import os
import pickle
import shutil

import pytest
import torch

from mmgen.artifacts import (
    Parent,
    check_output,
    find_parent,
    find_record,
    find_relatives,
    parent_record,
    read_checkpoint,
    read_header,
    read_latents,
    require_kind,
    write_checkpoint,
)
from mmgen.core.errors import ArtifactError, MissingParentError, UsageError


@pytest.fixture
def family(tmp_path, monkeypatch, dataset_at, checkpoint_at):
    """data/tiny.h5 and models/model.safetensors made from it; the current folder is a third one."""
    for name in ("data", "models", "here"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    dataset, model = tmp_path / "data" / "tiny.h5", tmp_path / "models" / "model.safetensors"
    dataset_at(dataset)
    checkpoint_at(model, dataset=dataset)
    return dataset, model


def test_reference_is_relative_to_the_child(family):
    dataset, model = family
    parent = find_record(model, "dataset")
    assert parent == parent_record(dataset, "dataset", model)
    assert parent.path == "../data/tiny.h5"
    assert (parent.kind, parent.command) == ("dataset", "mmgen make-data tiny")
    assert parent.content_id == read_header(dataset).content_id


@pytest.mark.parametrize("place", ["data/tiny.h5", "models/tiny.h5", "models/renamed.h5", "here/renamed.h5"])
def test_parent_is_found_wherever_it_went(tmp_path, family, place):
    dataset, model = family
    shutil.move(dataset, tmp_path / place)
    (tmp_path / "models" / "notes.h5").write_text("not an artifact")
    assert find_parent(model, "dataset").resolve() == tmp_path / place


def test_the_whole_tree_may_move(tmp_path, family):
    shutil.copytree(tmp_path, tmp_path / "moved", ignore=shutil.ignore_patterns("moved"))
    shutil.rmtree(tmp_path / "data")
    assert find_parent(tmp_path / "moved/models/model.safetensors", "dataset") == tmp_path / "moved/data/tiny.h5"


def test_missing_parent_names_the_command(family):
    dataset, model = family
    dataset.unlink()
    with pytest.raises(MissingParentError, match=r"tiny\.h5 is not there\); make it again with: mmgen make-data tiny$"):
        find_parent(model, "dataset")


def test_another_file_under_the_parents_name_is_not_the_parent(family, dataset_at):
    dataset, model = family
    dataset_at(dataset, seed=99)
    with pytest.raises(MissingParentError, match="now holds something else"):
        find_parent(model, "dataset")


def test_a_role_that_is_not_there(family):
    dataset, model = family
    with pytest.raises(ArtifactError, match=r"model without a parent 'judge' \(it has: dataset\)"):
        find_record(model, "judge")
    with pytest.raises(ArtifactError, match=r"dataset without a parent 'dataset' \(it has: none\)"):
        find_parent(dataset, "dataset")


def test_hostile_paths_and_commands_in_a_parent(tmp_path):
    path = tmp_path / "m.safetensors"
    for recorded in ("/dev/zero", "../" * 50, "a\0b", "/proc/self/mem", "x" * 5000, ""):
        parent = Parent("dataset", "dataset", "0" * 64, recorded, "rm\x1b[2J\n-rf")
        write_checkpoint(path, kind="model", tensors={}, settings={}, seed=0, parents=[parent])
        with pytest.raises(MissingParentError) as caught:
            find_parent(path, "dataset")
        assert str(caught.value).isprintable()


def test_relatives_are_found_newest_first(tmp_path, family, checkpoint_at):
    dataset, model = family
    folder = model.parent
    judges = [folder / f"judge{i}.safetensors" for i in range(3)]
    for i, judge in enumerate(judges):
        checkpoint_at(judge, kind="classifier", dataset=dataset)
        os.utime(judge, (1000 + i, 1000 + i))
    checkpoint_at(folder / "stranger.safetensors", kind="classifier")
    (folder / "broken.safetensors").write_bytes(judges[0].read_bytes()[:-1])
    (folder / ".judge.safetensors.12.part").write_bytes(judges[0].read_bytes())
    (folder / "folder.safetensors").mkdir()
    identity = read_header(dataset).content_id
    assert find_relatives([folder, folder, tmp_path / "nowhere"], "classifier", identity) == judges[::-1]
    assert find_relatives([folder], "model", identity) == [model]
    assert find_relatives([folder], "model", "0" * 64) == []


@pytest.mark.parametrize("kind", ["dataset", "latents", "samples", "model"])
def test_kind_is_told_by_content_not_by_name(tmp_path, make, kind):
    path = tmp_path / "file.txt"
    make(kind, path)
    assert read_header(path).kind == kind
    assert require_kind(path, "classifier", kind).kind == kind


def test_wrong_kind_says_what_makes_the_right_one(family):
    dataset, model = family
    with pytest.raises(ArtifactError, match=r"tiny\.h5 is a dataset, expected a model; make one with mmgen train$"):
        read_checkpoint(dataset, "model")
    with pytest.raises(ArtifactError, match=r"is a model, expected latents; make one with mmgen fit-aggregate$"):
        read_latents(model)
    with pytest.raises(
        ArtifactError, match="expected a model or an aggregate or a sharpener or a classifier or a training-state"
    ):
        read_checkpoint(dataset)


class Bomb:
    def __reduce__(self):
        return (os.abort, ())


def test_pickles_are_never_opened(tmp_path):
    plain, torch_file = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    plain.write_bytes(pickle.dumps(Bomb()))
    torch.save({"x": Bomb()}, torch_file)
    with pytest.raises(ArtifactError, match=r"a\.safetensors is a pickle, which can hold code and is never opened"):
        read_checkpoint(plain, "model")
    with pytest.raises(ArtifactError, match=r"is a zip archive .*torch.save.*never opened"):
        read_checkpoint(torch_file)


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "is empty"), (b"x" * 100, "neither HDF5 nor safetensors"), (b"\x89PNG\r\n", "neither")]
)
def test_foreign_files(tmp_path, content, words):
    path = tmp_path / "file.h5"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=words):
        read_header(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(ArtifactError, match="no such file"):
        read_header(tmp_path / "nowhere")
    with pytest.raises(ArtifactError, match="it is a folder"):
        read_header(tmp_path)
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    with pytest.raises(ArtifactError, match="a device or a pipe"):
        read_header(tmp_path / "pipe")


def test_an_output_is_no_input_and_replaces_only_its_own_kind(tmp_path, family, checkpoint_at):
    """What would be lost is refused before any work: an input under any name, another kind, a foreign file."""
    dataset, model = family
    other = tmp_path / "other.safetensors"
    checkpoint_at(other, kind="classifier")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "empty").touch()
    (tmp_path / "link.h5").symlink_to(dataset)
    for allowed in ("new.safetensors", "models/../fresh", "empty"):
        check_output(tmp_path / allowed, "model", dataset)
    check_output(model, "model", dataset)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for path, words in (
        (dataset, "cannot write a model to .*tiny.h5: the command reads that file"),
        (tmp_path / "models/../data/tiny.h5", "the command reads that file"),
        (tmp_path / "link.h5", "the command reads that file"),
        (other, "it holds a classifier, which would be lost; choose another name"),
        (tmp_path / "notes.txt", "it holds something that is no artifact of mmgen"),
    ):
        with pytest.raises(UsageError, match=words):
            check_output(path, "model", dataset)
    with pytest.raises(ArtifactError, match="is a directory; choose the name of a file"):
        check_output(tmp_path, "model")
    with pytest.raises(ArtifactError, match=r"there is no folder .*nowhere; make it first"):
        check_output(tmp_path / "nowhere" / "m.safetensors", "model")
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

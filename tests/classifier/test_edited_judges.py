"""An accuracy that nobody measured is not believed, and not the reason to take a judge."""

import json
from pathlib import Path
from typing import Any

import pytest

from mmgen.artifacts import parent_record, read_checkpoint, read_header, write_checkpoint
from mmgen.artifacts.header import Header
from mmgen.classifier import load_classifier
from mmgen.classifier._files import find_best_classifier
from mmgen.classifier._training import train_classifier
from mmgen.core.errors import ArtifactError
from tests.artifacts.test_sealed import header_text, sealed
from tests.classifier.test_classifier import settings, write_dataset


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A dataset and a judge of three steps."""
    folder = tmp_path_factory.mktemp("judge")
    data = write_dataset(folder / "dots.h5")
    train_classifier(data, folder / "judge.safetensors", settings(steps=3)).run()
    return data, folder / "judge.safetensors"


@pytest.fixture
def judge(made: tuple[Path, Path], tmp_path: Path) -> Path:
    path = tmp_path / "judge.safetensors"
    path.write_bytes(made[1].read_bytes())
    return path


def edit(path: Path, fits_checksum: bool, **facts: Any) -> None:
    header = json.loads(header_text(path))
    header["facts"] |= facts
    header_text(path, sealed(header) if fits_checksum else json.dumps(header))


def forge(path: Path, **facts: Any) -> Header:
    """A whole new file, its content id fitting what it says."""
    header, tensors = read_checkpoint(path, "classifier")
    return write_checkpoint(
        path, kind="classifier", tensors=tensors, settings=header.settings, seed=header.seed, parents=header.parents,
        facts={**header.facts, **facts},
    )  # fmt: skip


@pytest.mark.parametrize("fits_checksum", [False, True])
def test_an_edited_accuracy_is_found(judge: Path, fits_checksum: bool) -> None:
    edit(judge, fits_checksum, held_out_accuracy={"mean": 99.9})
    with pytest.raises(ArtifactError, match=r"header does not match its checksum|do not match its content id"):
        load_classifier(judge)


@pytest.mark.parametrize("fits_checksum", [False, True])
def test_an_edited_judge_is_not_taken_however_good_it_says_it_is(
    made: tuple[Path, Path], judge: Path, fits_checksum: bool
) -> None:
    dataset = read_header(made[0]).content_id
    honest = judge.with_name("honest.safetensors")
    honest.write_bytes(made[1].read_bytes())
    edit(judge, fits_checksum, held_out_accuracy={"mean": 100.0})
    assert find_best_classifier(dataset, [judge.parent]) == honest
    honest.unlink()
    assert find_best_classifier(dataset, [judge.parent]) is None


@pytest.mark.parametrize("off", [-0.01, 40.0])
def test_an_accuracy_that_its_counts_do_not_come_to_is_found(judge: Path, off: float) -> None:
    said = read_header(judge).facts["held_out_accuracy"]
    forge(judge, held_out_accuracy={name: abs(value + off) % 100 for name, value in said.items()})
    with pytest.raises(ArtifactError, match="has no valid held-out accuracy"):
        load_classifier(judge)


@pytest.mark.parametrize("accuracy", [99.9, {"mean": "high"}, {"mean": 101.0}, {"mean": -1}, {"mean": None}, [1], None])
def test_an_accuracy_that_is_none_is_a_sentence(judge: Path, accuracy: Any) -> None:
    forge(judge, held_out_accuracy=accuracy, held_out_correct={}, held_out_images={})
    with pytest.raises(ArtifactError, match="has no valid held-out accuracy") as caught:
        load_classifier(judge)
    assert str(caught.value).isprintable()


def test_a_finished_judge_is_verified_before_it_is_called_finished(made: tuple[Path, Path], judge: Path) -> None:
    assert parent_record(judge, "judge", judge).content_id == read_header(made[1]).content_id
    edit(judge, True, held_out_correct={}, held_out_images={})
    with pytest.raises(ArtifactError, match="do not match its content id"):
        train_classifier(made[0], judge, settings(steps=3)).run()

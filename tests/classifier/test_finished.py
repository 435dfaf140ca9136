"""A judge that is half made judges nobody, and one that is finished is not trained again."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mmgen.artifacts import read_header
from mmgen.classifier import load_classifier
from mmgen.classifier._training import train_classifier
from mmgen.core.errors import ArtifactError, Interrupted, UsageError
from mmgen.core.progress import Work
from mmgen.training.log import log_path
from mmgen.training.state import state_path
from tests.classifier.test_classifier import settings, write_dataset

COMMAND = "mmgen train-classifier dots.h5"


def interrupt(work: Work[Any], step: int) -> None:
    for progress in work:
        if progress.done == step:
            os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupted_judge_is_refused_until_it_is_measured(tmp_path: Path) -> None:
    data, out = write_dataset(tmp_path / "dots.h5"), tmp_path / "judge.safetensors"
    quick = settings(steps=8, validate_every=2, log_every=1)
    with pytest.raises(Interrupted):
        interrupt(train_classifier(data, out, quick, COMMAND), step=5)
    assert read_header(out).kind == "classifier"
    with pytest.raises(ArtifactError, match=f"is not finished.*go on with: {COMMAND}$"):
        load_classifier(out)
    accuracy = train_classifier(data, out, quick, COMMAND).run()
    assert load_classifier(out).accuracy == pytest.approx(accuracy.percent)
    whole = tmp_path / "whole.safetensors"
    train_classifier(data, whole, quick, COMMAND).run()
    assert read_header(whole).content_id == read_header(out).content_id


def test_a_finished_judge_stays_as_it_is(tmp_path: Path) -> None:
    data, out = write_dataset(tmp_path / "dots.h5"), tmp_path / "judge.safetensors"
    accuracy = train_classifier(data, out, settings(steps=3)).run()
    made = out.read_bytes()
    for resume in ("auto", "require"):
        again = train_classifier(data, out, settings(steps=3), resume=resume)
        assert list(again) == []
        assert again.result == accuracy
        assert list(again.result.correct) == list(accuracy.correct), "in the order of the dataset"
    with pytest.raises(UsageError, match="is a finished judge with another steps"):
        train_classifier(data, out, settings(steps=4)).run()
    other = write_dataset(tmp_path / "other.h5", number=610)
    with pytest.raises(UsageError, match="is a finished judge with another learnt_from"):
        train_classifier(other, out, settings(steps=3)).run()
    assert out.read_bytes() == made
    assert not state_path(out).exists()
    train_classifier(data, out, settings(steps=4), resume="never").run()
    assert read_header(out).settings["training"]["steps"] == 4


def test_a_judge_is_not_written_over_its_dataset(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "dots.h5")
    with pytest.raises(UsageError, match="cannot write a classifier"):
        train_classifier(data, data, settings())


def test_a_judge_whose_state_is_kept_can_be_given_more_steps(tmp_path: Path) -> None:
    data, out = write_dataset(tmp_path / "dots.h5"), tmp_path / "judge.safetensors"
    first = train_classifier(data, out, settings(steps=3, keep_state=True)).run()
    assert state_path(out).exists()
    again = train_classifier(data, out, settings(steps=3, keep_state=True)).run()
    assert again.percent == first.percent
    train_classifier(data, out, settings(steps=5, keep_state=True)).run()
    assert state_path(out).exists() and log_steps(out) == [3, 5]
    load_classifier(out)


def log_steps(out: Path) -> list[int]:
    """Steps after which the run at ``out`` was validated."""
    lines = [json.loads(line) for line in log_path(out).read_text().splitlines()]
    return [line["step"] for line in lines if "validation" in line]

"""A plain network that learns from the labels that a semi-supervised model has."""

from pathlib import Path

import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.contrib.baselines import measure_labels
from mmgen.contrib.baselines._base import BaselineData, LabelSupply
from mmgen.contrib.baselines.commands.baseline import Baseline
from tests.program import exit_code
from tests.training.test_labelling import bars as bars, rows_of, settings_of


def test_baselines_take_what_settings_say(bars: Path) -> None:
    few = settings_of(bars, data={"labelled": None, "labelled_seed": None, "labelled_share": None, "paired": 0.1})
    assert Baseline(bars)._label_supplies(few) == [LabelSupply(0.1)]
    assert Baseline(bars, paired=[0.2])._label_supplies(few) == [LabelSupply(0.2)]
    assert Baseline(bars)._label_supplies(settings_of(bars)) == [LabelSupply(count=12)]


def test_the_plain_network_has_the_same_labels(bars: Path) -> None:
    settings = settings_of(bars, training={"steps": 60, "learning_rate": 1e-2})
    rows = rows_of(bars, settings)
    with Dataset.open(bars) as dataset:
        material = BaselineData(dataset, settings)
        chosen = material.labelled_positions(LabelSupply(count=12)).tolist()
        assert sorted(chosen) == sorted(set(rows._example[: rows.labelled_rows].tolist()))
        pairs = material.labelled_rows(LabelSupply(count=12))
        assert len(pairs) == 12 and pairs.batch(torch.arange(12)).present["attributes"].all()
    (score,) = measure_labels(bars, "supervised", [LabelSupply(count=12)], settings).run()
    assert score.value == 100
    assert [score.details[key] for key in ("labelled", "labelled_seed", "paired", "share")] == [12, 4, 12, 0.1]


def test_a_share_and_a_number_of_labels_exclude_each_other(bars: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("baseline", str(bars), "--preset", "wu/mnist", "--paired", "0.1", "--labelled", "3")
    assert "expected one of them" in " ".join(capsys.readouterr().err.split())

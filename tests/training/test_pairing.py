"""Weak supervision: the partition is exact, nested and reproducible, masks are right, nothing learns what is absent."""

import json
import os
import signal
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset, read_checkpoint
from mmgen.core.batch import Batch
from mmgen.core.errors import DataError, Interrupted, SettingsError
from mmgen.objectives._base import Objective
from mmgen.training.batches import DatasetRows, Rows
from mmgen.training.model_run import ExperimentSettings, complete_settings, train_model
from mmgen.training.pairing import (
    PairedRows,
    choose_paired_examples,
    describe_rows,
    effective_paired_share,
    make_training_rows,
    paired_count,
)
from mmgen.training.state import state_path
from tests.small_data import write_small

NAMES = ("image", "attributes", "text")


class Numbered(Rows):
    """Example n holds n + 1 in every modality."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def batch(self, indices: Tensor) -> Batch:
        n = indices + 1
        values = {
            "image": n.float()[:, None, None, None].expand(-1, 1, 2, 2),
            "attributes": n[:, None].expand(-1, 3),
            "text": n[:, None].expand(-1, 4),
        }
        present = {
            "image": torch.ones(len(n), dtype=torch.bool),
            "attributes": (n[:, None] % 2 == torch.tensor([0, 1, n.max() + 1])),  # every other one unknown
            "text": torch.ones(len(n), dtype=torch.bool),
        }
        return Batch(values, present)


def rows_of(rows: PairedRows) -> list[dict[str, int]]:
    """What each row holds: the number of its example, by modality that is present."""
    batch = rows.batch(torch.arange(len(rows)))
    return [
        {
            name: int(batch.values[name][row].flatten()[0]) - 1
            for name in batch.values
            if batch.values[name][row].flatten()[0] > 0
        }
        for row in range(len(rows))
    ]


@pytest.mark.parametrize("apart", [("image", "attributes"), NAMES])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_every_example_is_whole_once_or_alone_once_in_each_modality(share: float, apart: tuple[str, ...]) -> None:
    """N_p + M N_u rows; what is whole is nowhere alone, and the other way round."""
    rows = PairedRows(Numbered(40), apart, share, seed=3)
    paired = round(40 * share)
    assert len(rows) == paired + len(apart) * (40 - paired)
    held = rows_of(rows)
    whole = [row for row in held if len(row) == 3]
    assert len(whole) == paired and held[:paired] == whole
    assert {n for row in whole for n in row.values()} == set(choose_paired_examples(40, share, 3).tolist())
    assert all(len(set(row.values())) == 1 for row in whole)
    alone = Counter((name, n) for row in held[paired:] for name, n in row.items())
    rest = set(range(40)) - {row["image"] for row in whole}
    assert alone == Counter({(name, n): 1 for name in apart for n in rest})


def test_row_numbers_do_not_say_what_belonged_together() -> None:
    rows = PairedRows(Numbered(200), ("image", "attributes"), 0.0, seed=0)
    held = rows_of(rows)
    images = [row["image"] for row in held[:200]]
    words = [row["attributes"] for row in held[200:]]
    assert sorted(images) == sorted(words) == list(range(200))
    assert images != sorted(images) and words != sorted(words)
    # Two independent permutations of n agree in one place on average, in more than 6 with probability below 1e-4.
    assert sum(a == b for a, b in zip(images, words, strict=True)) <= 6


def test_pairs_are_nested_reproducible_and_of_their_seed() -> None:
    shares = (0.01, 0.05, 0.3, 1.0)
    chosen = [choose_paired_examples(1000, share, 7).tolist() for share in shares]
    assert [len(set(part)) for part in chosen] == [10, 50, 300, 1000]
    for small, large in pairwise(chosen):
        assert large[: len(small)] == small
    assert choose_paired_examples(1000, 0.05, 7).tolist() == chosen[1]
    assert choose_paired_examples(1000, 0.05, 8).tolist() != chosen[1]
    # Chosen evenly: of 300 in 1000, each half holds 150 +- 10.
    assert abs(sum(n < 500 for n in chosen[2]) - 150) < 40


def test_counts_and_shares_that_leave_nothing() -> None:
    assert [paired_count(60_000, share) for share in (0.0, 0.0005, 0.001, 1.0)] == [0, 30, 60, 60_000]
    assert paired_count(0, 0.5) == 0, "a part without examples"
    with pytest.raises(DataError, match=r"no whole example of 100 training examples, expected at least 0.01"):
        paired_count(100, 0.001)


def test_masks_are_those_of_the_row_and_of_the_data() -> None:
    rows = PairedRows(Numbered(10), ("image", "attributes"), 0.2, seed=1)
    batch = rows.batch(torch.arange(len(rows)))
    present = batch.present
    assert present["image"].tolist() == [True] * 2 + [True] * 8 + [False] * 8
    assert present["text"].tolist() == [True] * 2 + [False] * 16  # looked at by nobody: of whole rows only
    n = batch.values["attributes"][:, 0]
    assert not present["attributes"][2:10].any() and not batch.values["attributes"][2:10].any()
    for row in (*range(2), *range(10, 18)):  # what the data do not know stays unknown
        assert present["attributes"][row].tolist() == [int(n[row]) % 2 == 0, int(n[row]) % 2 == 1, False]
    assert not batch.values["image"][10:].any()


def test_whole_rows_can_be_drawn_more_often() -> None:
    """2 pairs and 2 x 38 rows alone; a quarter of the draws whole takes R / (R + 76) = 1 / 4, R = 25.3."""
    rows = PairedRows(Numbered(40), ("image", "attributes"), 0.05, seed=0, paired_share=0.25)
    assert len(rows) == 25 + 76
    counts = Counter(row["image"] for row in rows_of(rows)[:25])
    assert sorted(counts.values()) == [12, 13] and set(counts) == set(choose_paired_examples(40, 0.05, 0).tolist())
    assert len(PairedRows(Numbered(40), ("image", "attributes"), 0.9, seed=0, paired_share=0.25)) == 36 + 8, (
        "never fewer"
    )


SIZE = 96
TINY: dict[str, Any] = {
    "model": {
        "latent_size": 3,
        "hidden": 16,
        "image_network": {"name": "mlp", "hidden": [16]},
        "attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8},
    },
    "objective": {"name": "mvae"},
    "data": {"paired": 0.1},
    "training": {
        "steps": 12,
        "keep_state": True,
        "batch": 16,
        "validate_every": 4,
        "validation_examples": 8,
        "log_every": 2,
    },
}


@pytest.fixture(scope="module")
def dataset_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pictures of 4x4 with two attributes."""
    path = tmp_path_factory.mktemp("data") / "tiny.h5"
    generator = np.random.default_rng(0)
    codes = np.stack([generator.integers(0, 3, SIZE), generator.integers(0, 2, SIZE)], 1).astype(np.uint8)
    images = {name: generator.integers(0, 256, (SIZE, 1, 4, 4)).astype(np.uint8) for name in ("image", "edges")}
    labels = {"digit": ["0", "1", "2"], "size": ["big", "small"]}
    return write_small(path, {**images, "attributes": codes}, labels, parts=(64, 16), recipe="tiny")


def settings_of(dataset_path: Path, **values: Any) -> ExperimentSettings:
    merged = {**TINY, **values, "training": {**TINY["training"], "device": "cpu", **values.get("training", {})}}
    with Dataset.open(dataset_path) as dataset:
        return complete_settings(merged, dataset)


def test_rows_of_three_modalities_resident_and_streamed(dataset_path: Path) -> None:
    """Each modality of an example that is not paired is an example of its own."""
    settings = settings_of(dataset_path, objective={"name": "mvae", "modalities": ["image", "edges", "attributes"]})
    objective = settings.build_objective()
    with Dataset.open(dataset_path) as dataset:
        two = [
            make_training_rows(
                DatasetRows(dataset, dataset.split("iid", "train"), torch.device("cpu"), resident=resident),
                objective,
                settings.data,
                settings.training.seed,
            )
            for resident in (True, False)
        ]
        assert len(two[0]) == len(two[1]) == 6 + 3 * 58
        indices = torch.tensor([170, 3, 60, 100, 3, 5])
        one, other = (rows.batch(indices) for rows in two)
    for name in ("image", "edges", "attributes"):
        assert torch.equal(one.values[name], other.values[name])
        assert torch.equal(one.present[name], other.present[name])
    assert one.present["edges"].tolist() == [False, True, False, True, True, True]
    assert "58 of image alone and 58 of edges alone and 58 of attributes" in describe_rows(64, objective, settings.data)


def test_what_objectives_that_need_whole_examples_are_given(dataset_path: Path) -> None:
    rows = Numbered(64)
    jmvae = settings_of(dataset_path, objective={"name": "jmvae"})
    assert len(make_training_rows(rows, jmvae.build_objective(), jmvae.data, 0)) == 6
    said = describe_rows(64, jmvae.build_objective(), jmvae.data)
    assert "trains on the 6 paired ones and leaves 58 out" in said
    none = jmvae.data.model_copy(update={"paired": 0.0})
    with pytest.raises(DataError, match="needs paired examples; choose a share above 0"):
        describe_rows(64, jmvae.build_objective(), none)
    vae = settings_of(dataset_path, objective={"name": "elbo", "modalities": ["image"], "given": ["image"]})
    assert make_training_rows(rows, vae.build_objective(), vae.data, 0) is rows
    assert "image alone, so data.paired changes nothing" in describe_rows(64, vae.build_objective(), vae.data)
    whole = vae.data.model_copy(update={"paired": 1.0})
    assert make_training_rows(rows, jmvae.build_objective(), whole, 0) is rows
    assert describe_rows(64, jmvae.build_objective(), whole) == ""


@pytest.mark.parametrize(
    ("objective", "paired", "drawn", "said"),
    [
        # 6 pairs and 2 x 58 rows alone: the pairs are 6 / 122 = 4.9 % of the rows; a fifth takes 29 of 145.
        ("mvae", 0.1, 0.2, "58 of attributes alone; the pairs are repeated until they are 20 % of what is drawn."),
        ("mvae", 0.1, 0.04, "; data.least_paired_share changes nothing, as they are at least that part of these rows."),
        ("mvae", 0.0, 0.2, "; data.least_paired_share changes nothing, as there are no pairs."),
        ("mvae", 1.0, 0.2, "All training examples are paired, so data.least_paired_share changes nothing."),
        ("jmvae", 0.1, 0.2, "leaves 58 out (mvae learns from them too), so data.least_paired_share changes nothing."),
        ("jmvae", 1.0, 0.2, "All training examples are paired, so data.least_paired_share changes nothing."),
        ("elbo", 0.1, 0.2, "image alone, so data.paired and data.least_paired_share change nothing."),
    ],
)
def test_a_share_of_draws_that_changes_nothing_is_said(
    dataset_path: Path, objective: str, paired: float, drawn: float, said: str
) -> None:
    asked = {"name": objective} | ({"modalities": ["image"], "given": ["image"]} if objective == "elbo" else {})
    settings = settings_of(dataset_path, objective=asked, data={"paired": paired, "least_paired_share": drawn})
    built, rows = settings.build_objective(), Numbered(64)
    assert describe_rows(64, built, settings.data).endswith(said)
    plain = settings.data.model_copy(update={"least_paired_share": None})
    assert "drawn" not in describe_rows(64, built, plain) and effective_paired_share(64, built, plain) is None
    with_it, without = (len(make_training_rows(rows, built, data, 0)) for data in (settings.data, plain))
    assert effective_paired_share(64, built, settings.data) == (drawn if with_it != without else None)
    assert (with_it != without) == ("repeated" in said)
    if with_it != without:
        assert (without, with_it) == (6 + 116, 29 + 116)


def _gradients(objective: Objective, settings: ExperimentSettings, batch: Batch) -> dict[str, float]:
    from mmgen.models._build import build_model

    torch.manual_seed(0)
    model = build_model(settings.model, objective.demands, settings.data)
    objective(model, batch, None).value.sum().backward()
    sizes: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        grad = 0.0 if parameter.grad is None else float(parameter.grad.abs().sum())
        sizes[name] = grad
    return sizes


@pytest.mark.parametrize("alone", ["image", "attributes"])
def test_an_absent_modality_gets_no_gradient(dataset_path: Path, alone: str) -> None:
    settings = settings_of(dataset_path)
    objective = settings.build_objective()
    with Dataset.open(dataset_path) as dataset:
        source = DatasetRows(dataset, dataset.split("iid", "train"), torch.device("cpu"))
        rows = make_training_rows(source, objective, settings.data, 0)
        start = 6 + (0 if alone == "image" else 58)
        sizes = _gradients(objective, settings, rows.batch(torch.arange(start, start + 16)))
    absent = "attributes" if alone == "image" else "image"
    decoders = {n: sum(s for name, s in sizes.items() if name.startswith(f"decoders.{n}.")) for n in (absent, alone)}
    assert decoders[absent] == 0 and decoders[alone] > 0
    encoders = {name: s for name, s in sizes.items() if name.startswith("inference.")}
    touched = [name for name, s in encoders.items() if s > 0]
    assert touched and len(touched) < len(encoders)


def test_a_prediction_is_one_more_likelihood_of_whole_examples(dataset_path: Path) -> None:
    """With predicts, E log p(label | z), z ~ q(z|image), joins the bound of a pair, of nothing else."""
    from mmgen.models._build import build_model

    plain = settings_of(dataset_path)
    more = settings_of(dataset_path, objective={"name": "mvae", "predicts": {"image": ["attributes"]}})
    torch.manual_seed(0)
    model = build_model(plain.model, plain.build_objective().demands, plain.data).eval()
    with Dataset.open(dataset_path) as dataset:
        source = DatasetRows(dataset, dataset.split("iid", "train"), torch.device("cpu"))
        batch = make_training_rows(source, plain.build_objective(), plain.data, 0).batch(torch.tensor([0, 1, 10, 100]))
    values = []
    for settings in (plain, more):
        torch.manual_seed(1)
        values.append(settings.build_objective()(model, batch, None).value)
    torch.manual_seed(1)
    units = [("image", None), ("attributes", None)]
    q = model.subset_posteriors(batch, units, [(True, True), (True, False), (False, True)])
    expected = 50 * model.log_likelihood("attributes", q.sample()[1], batch)
    assert torch.allclose(values[1][:2] - values[0][:2], expected[:2], rtol=1e-5)
    assert torch.equal(values[1][2:], values[0][2:])
    with pytest.raises(SettingsError, match="predicts got sound, expected some of the modalities image, attributes"):
        settings_of(dataset_path, objective={"name": "mvae", "predicts": {"image": ["sound"]}})


def run(dataset_path: Path, out: Path, stop_at: int | None = None, **values: Any) -> None:
    for progress in train_model(dataset_path, settings_of(dataset_path, **values), out, "mmgen train"):
        if stop_at is not None and progress.done >= stop_at:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.slow_cases("False", "True")
@pytest.mark.parametrize("streamed", [False, True])
def test_an_interrupted_run_resumes_to_identical_weights(
    dataset_path: Path, tmp_path: Path, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmgen.training.batches.fits_in_memory", lambda size, device: not streamed)
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    run(dataset_path, whole)
    with pytest.raises(Interrupted):
        run(dataset_path, broken, stop_at=6)
    run(dataset_path, broken)
    (header, one), (_, two) = read_checkpoint(whole, "model"), read_checkpoint(broken, "model")
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert header.settings["data"]["paired"] == 0.1
    states = [read_checkpoint(state_path(path), "training-state")[1] for path in (whole, broken)]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    # Validation examples are whole, whatever training ones are.
    lines = [json.loads(line) for line in (tmp_path / "whole.log.jsonl").read_text().splitlines()]
    assert all("log p(attributes|z)" in " ".join(line["validation"]["terms"]) for line in lines if "validation" in line)

"""The loop: order, unpacking, resuming bit for bit, stopping on signals, catching NaN by its name."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import mmgen.objectives
from mmgen.artifacts import Dataset, read_checkpoint
from mmgen.core.batch import Batch
from mmgen.core.errors import Interrupted, SettingsError, TrainingError, UsageError
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription, unpack_bits
from mmgen.models._build import build_model
from mmgen.objectives._base import Bound
from mmgen.settings.config import merge
from mmgen.settings.extends import load_preset
from mmgen.settings.presets import preset_names as preset_names
from mmgen.training.batches import DatasetRows, Order, fits_in_memory
from mmgen.training.log import log_path
from mmgen.training.model_run import complete_settings, load_model, read_experiment, train_model
from mmgen.training.state import RunState, describe_interruption, state_path
from mmgen.training.validation import NanGuard
from tests.small_data import write_small
from tests.worlds import added, added_rows

SIZE = 96
TINY: dict[str, Any] = {
    "model": {
        "latent_size": 3,
        "hidden": 16,
        "image_network": {"name": "strided", "channels": [8, 8], "fully_connected": [16], "patch": 4},
        "attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8},
    },
    "objective": {"name": "telbo"},
    "training": {
        "steps": 12,
        "keep_state": True,
        "batch": 16,
        "validate_every": 4,
        "validation_examples": 8,
        "log_every": 2,
        "device": "cpu",
        "schedule": "cosine",
    },
}


@pytest.fixture(scope="module")
def dataset_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of random binary 16x16 images with two attributes, one value unknown."""
    path = tmp_path_factory.mktemp("data") / "tiny.h5"
    generator = np.random.default_rng(0)
    codes = np.stack([generator.integers(0, 3, SIZE), generator.integers(0, 2, SIZE)], 1).astype(np.uint8)
    codes[5, 0] = 255
    values = {"image": (generator.random((SIZE, 1, 16, 16)) < 0.3).astype(np.uint8), "attributes": codes}
    labels = {"digit": ["0", "1", "2"], "size": ["big", "small"]}
    return write_small(path, values, labels, None, (64, 16), "bits", recipe="tiny")


def run(dataset_path: Path, out: Path, stop_at: int | None = None, resume: str = "auto", **training: Any) -> None:
    values = {**TINY, "training": {**TINY["training"], **training}}
    with Dataset.open(dataset_path) as dataset:
        settings = complete_settings(values, dataset)
    work = train_model(dataset_path, settings, out, "mmgen train", resume)
    for progress in work:
        if stop_at is not None and progress.done >= stop_at:
            os.kill(os.getpid(), signal.SIGINT)


def tensors_of(path: Path, kind: str) -> dict[str, Tensor]:
    return read_checkpoint(path, kind)[1]


def test_order_visits_every_example_once_an_epoch_and_can_start_anywhere() -> None:
    order = Order(10, 4, seed=1)
    stream = torch.cat([order[step] for step in range(5)])
    assert sorted(stream[:10].tolist()) == list(range(10))
    assert sorted(stream[10:20].tolist()) == list(range(10))
    assert stream[:10].tolist() != stream[10:20].tolist()
    assert torch.equal(Order(10, 4, seed=1)[3], order[3])
    assert not torch.equal(Order(10, 4, seed=2)[0], order[0])


def test_unpack_bits_is_the_inverse_of_packbits() -> None:
    pixels = np.random.default_rng(0).integers(0, 2, (5, 3 * 6 * 5)).astype(np.uint8)
    packed = torch.from_numpy(np.packbits(pixels, axis=1))
    assert np.array_equal(unpack_bits(packed, (3, 6, 5)).numpy(), pixels.reshape(5, 3, 6, 5))


def test_rows_streamed_from_the_file_equal_rows_in_memory(dataset_path: Path) -> None:
    with Dataset.open(dataset_path) as dataset:
        chosen = np.array([70, 3, 5, 90])
        resident = DatasetRows(dataset, chosen, torch.device("cpu"), resident=True)
        streamed = DatasetRows(dataset, chosen, torch.device("cpu"), resident=False)
        indices = torch.tensor([3, 0, 0, 1])
        one, two = resident.batch(indices), streamed.batch(indices)
        assert torch.equal(one.values["image"], two.values["image"])
        assert torch.equal(one.values["attributes"], two.values["attributes"])
        expected = dataset.read_image("image", np.array([90]))
        assert np.array_equal(one.values["image"][:1].numpy(), expected.astype(np.float32))
        # Row 5 is the second of the sorted rows; its digit is unknown.
        assert one.present["attributes"].tolist() == [[True, True], [True, True], [True, True], [False, True]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "training",
    [
        {"precision": "32-true"},
        {"precision": "bf16-mixed"},
        {"optimizer": "muon", "weight_decay": 0.1},
        {"optimizer": "muon", "muon_parameters": "matrices"},
    ],
)
def test_an_interrupted_run_resumes_to_identical_weights(
    dataset_path: Path, tmp_path: Path, training: dict[str, Any]
) -> None:
    whole, broken = tmp_path / "whole.safetensors", tmp_path / "broken.safetensors"
    run(dataset_path, whole, **training)
    with pytest.raises(Interrupted) as caught:
        run(dataset_path, broken, stop_at=6, **training)
    assert caught.value.exit_code == 130
    assert "broken.safetensors is from a run that was interrupted at step " in describe_interruption(broken)
    run(dataset_path, broken, resume="require", **training)
    assert describe_interruption(broken) == "" == describe_interruption(tmp_path / "nothing.safetensors")
    for path_of, kind in ((lambda p: p, "model"), (state_path, "training-state")):
        one, two = tensors_of(path_of(whole), kind), tensors_of(path_of(broken), kind)
        assert one.keys() == two.keys()
        assert all(torch.equal(one[key], two[key]) for key in one)
    logs = [
        [json.loads(line) for line in (tmp_path / f"{n}.log.jsonl").read_text().splitlines()]
        for n in ("whole", "broken")
    ]
    assert [line["step"] for line in logs[0]] == [line["step"] for line in logs[1]]
    assert [line.get("bound") for line in logs[0]] == [line.get("bound") for line in logs[1]]


def test_a_finished_run_is_not_run_again(dataset_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(dataset_path, out)
    before = out.stat().st_mtime_ns
    run(dataset_path, out)
    assert out.stat().st_mtime_ns == before
    out.unlink()
    with pytest.raises(UsageError, match="too to run it again"):
        run(dataset_path, out)


def test_a_state_of_other_settings_is_refused(dataset_path: Path, tmp_path: Path) -> None:
    run(dataset_path, tmp_path / "m.safetensors")
    with pytest.raises(UsageError, match=r"training\.learning_rate \(0\.001 there, 0\.5 now\)"):
        run(dataset_path, tmp_path / "m.safetensors", learning_rate=0.5)
    run(dataset_path, tmp_path / "m.safetensors", learning_rate=0.5, resume="never")


@pytest.mark.slow
def test_the_last_weights_can_be_kept_instead_of_the_best(dataset_path: Path, tmp_path: Path) -> None:
    """A learning rate that undoes what was learnt: the best weights are old, the last ones are the state's."""
    values = {"learning_rate": 0.5, "schedule": "constant"}
    for keep in ("best", "last"):
        run(dataset_path, tmp_path / f"{keep}.safetensors", keep=keep, **values)
    best, kept_best = read_checkpoint(tmp_path / "best.safetensors", "model")
    last, kept_last = read_checkpoint(tmp_path / "last.safetensors", "model")
    assert best.facts["validation_bound"] > last.facts["validation_bound"]
    assert (best.facts["step"] < 12, last.facts["step"]) == (True, 12)
    _, state = read_checkpoint(state_path(tmp_path / "last.safetensors"), "training-state")
    assert all(torch.equal(value, state[f"task.model.{name}"]) for name, value in kept_last.items())
    assert not all(torch.equal(value, kept_best[name]) for name, value in kept_last.items())


def test_resume_requires_a_state(dataset_path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs the state"):
        run(dataset_path, tmp_path / "m.safetensors", resume="require")


@pytest.mark.slow
def test_checkpoint_loads_to_the_same_model(dataset_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(dataset_path, out)
    header, settings, model = load_model(out)
    assert header.facts["validation_bound"] < 0
    assert header.parents[0].role == "dataset"
    assert settings.objective["name"] == "telbo"
    assert all(torch.equal(value, tensors_of(out, "model")[key]) for key, value in model.state_dict().items())
    assert not model.training


def test_guard_names_step_and_term() -> None:
    guard = NanGuard(interval=3)
    good = {"bound": torch.tensor(1.0), "kl": torch.tensor(2.0), "gradient norm": torch.tensor(1.0)}
    guard.add(6, good)
    guard.add(7, {**good, "kl": torch.tensor(torch.nan), "bound": torch.tensor(torch.nan)})
    with pytest.raises(TrainingError, match=r"at step 8, in kl;"):
        guard.add(8, {name: torch.tensor(torch.nan) for name in good})


def test_means_are_of_the_steps_since_the_last_ones() -> None:
    guard = NanGuard(interval=2)
    for numbers, mean in (([1.0, 3.0, 5.0], 3.0), ([10.0, 20.0], 15.0)):
        for step, number in enumerate(numbers):
            guard.add(step, {"bound": torch.tensor(number)})
        assert guard.means() == {"bound": mean}


def test_data_stay_in_memory_where_they_take_less_than_half_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmgen.training.batches.machine_memory", lambda: 100)
    assert [fits_in_memory(size, torch.device("cpu")) for size in (49, 50)] == [True, False]


def test_nan_in_training_leaves_the_last_good_state(dataset_path: Path, tmp_path: Path, monkeypatch: Any) -> None:
    objective = mmgen.objectives.get("telbo")
    original = objective.__call__

    def poisoned(self: Any, model: Any, batch: Batch, step: int | None = None) -> Bound:
        bound: Bound = original(self, model, batch, step)
        if step == 6:
            return Bound(bound.value * torch.nan, {**bound.terms, "kl": bound.terms["kl"] * torch.nan})
        return bound

    monkeypatch.setattr(objective, "__call__", poisoned)
    out = tmp_path / "m.safetensors"
    with pytest.raises(TrainingError, match=r"step 7, in kl;"):
        run(dataset_path, out)
    assert read_checkpoint(out, "model")[0].facts["step"] == 4
    assert all(tensor.isfinite().all() for tensor in tensors_of(out, "model").values())
    assert read_checkpoint(state_path(out), "training-state")[0].facts["step"] == 6


def test_all_wrong_settings_are_named_at_once(dataset_path: Path) -> None:
    values = {"training": {"stepps": 3, "batch": 0}, "modell": {}}
    with Dataset.open(dataset_path) as dataset, pytest.raises(SettingsError) as caught:
        complete_settings(values, dataset)
    message = str(caught.value)
    assert "did you mean 'training.steps'" in message
    assert "training.batch" in message
    assert "did you mean 'model'" in message


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_validates_and_builds(name: str) -> None:
    side = 50 if "multimnist" in name else 64
    views = ("grayscale", "edges", "mask", "completion", "watermark", "m0", "m1", "m2", "m3", "m4")
    pictures = {view: {"kind": "image", "shape": (1, side, side), "layout": "bits"} for view in ("image", *views)}
    with_data = {
        **load_preset(name),
        "data": {
            "modalities": {
                **pictures,
                "attributes": {"kind": "attributes", "names": ("digit",), "values": (("0", "1"),)},
                "text": {"kind": "text", "vocabulary": ("red", "cube"), "length": 2},
                **added_rows("MODALITIES_OF_PRESETS"),
            },
        },
    }

    for start, data in added_rows("DATA_OF_PRESETS").items():
        if name.startswith(start):
            with_data["data"] = data
    if name == "flow/autoencoder":  # which the user completes with weights, or with pixels
        with_data["model"] = {**with_data["model"], "codec": {"name": "pixels"}}
    settings = read_experiment(with_data)
    with torch.device("meta"):
        model = build_model(settings.model, settings.build_objective().demands, settings.data)
    small = tuple(start for starts in added("SMALL_PRESETS") for start in starts)
    least = 40_000 if name.startswith(small) else 100_000
    assert sum(p.numel() for p in model.parameters()) > least


@pytest.mark.slow
def test_minutes_end_a_run(dataset_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    run(dataset_path, out, steps=100_000, minutes=0.01)
    facts = read_checkpoint(state_path(out), "training-state")[0].facts
    assert facts["finished"] and facts["step"] < 100_000


def test_the_regulariser_reaches_the_attribute_decoder_alone(dataset_path: Path) -> None:
    from mmgen.training.task import ModelTask

    with Dataset.open(dataset_path) as dataset:
        settings = complete_settings(TINY, dataset)
    model = build_model(settings.model, settings.build_objective().demands, settings.data)
    task = ModelTask(model, settings.build_objective(), 0.5)
    rest, decoder = task.parameter_groups(weight_decay=0.25)
    assert rest["weight_decay"] == 0.25 and decoder["weight_decay"] == 0.75
    weights = {id(p) for name, p in model.decoders["attributes"].named_parameters() if name.endswith("weight")}
    assert weights and {id(p) for p in decoder["params"]} == weights, "weight matrices (VE), no biases"
    assert len(rest["params"]) + len(decoder["params"]) == len(list(task.parameters()))


def test_the_regulariser_finds_a_decoder_of_attributes_by_any_name() -> None:
    from mmgen.models._settings import DataSettings, MultimodalSettings
    from mmgen.objectives.mvae import Mvae
    from mmgen.training.task import ModelTask

    data = DataSettings.from_descriptions(
        ImageDescription(name="attributes", shape=(1, 16, 16), layout="bits"),
        AttributesDescription(name="labels", names=("digit",), values=(("0", "1", "2"),)),
    )
    objective = Mvae(modalities=("attributes", "labels"))
    model = build_model(MultimodalSettings(**TINY["model"]), objective.demands, data)
    _, decoder = ModelTask(model, objective, 0.5).parameter_groups()
    assert {id(p) for p in decoder["params"]} == {id(p) for p in model.decoders["labels"].parameters() if p.dim() > 1}


def test_a_regulariser_of_nothing_is_refused(dataset_path: Path, tmp_path: Path) -> None:
    values: dict[str, Any] = {"objective": {"name": "elbo", "modalities": ["image"]}}
    regularised = merge(TINY, {**values, "model": {"l2_attributes_decoder": 0.5}})
    with Dataset.open(dataset_path) as dataset:
        settings = complete_settings(regularised, dataset)
    words = r"model\.l2_attributes_decoder got 0\.5, but this model has no decoder of attributes; leave the setting out"
    with pytest.raises(SettingsError, match=words):
        train_model(dataset_path, settings, tmp_path / "m.safetensors")
    assert list(tmp_path.iterdir()) == []


def test_rate_and_weights_decay_as_asked(dataset_path: Path, tmp_path: Path) -> None:
    """The rate falls by a factor a step; a decay that outweighs the bound pulls every weight towards 0 by a step."""
    training = {"schedule": "constant", "learning_rate": 1e-3, "log_every": 1, "precision": "32-true"}
    run(dataset_path, tmp_path / "m.safetensors", learning_rate_decay=0.5, steps=4, **training)
    lines = [json.loads(line) for line in log_path(tmp_path / "m.safetensors").read_text().splitlines()]
    rates = [line["learning_rate"] for line in lines if "learning_rate" in line]
    assert rates == pytest.approx([1e-3, 5e-4, 2.5e-4, 1.25e-4])
    first, after = tmp_path / "first.safetensors", tmp_path / "after.safetensors"
    run(dataset_path, first, steps=0, **training)
    run(dataset_path, after, steps=1, weight_decay=1e15, **training)
    weights = {name: t for name, t in tensors_of(first, "model").items() if name.endswith("weight")}
    for name, before in weights.items():
        expected = before - 1e-3 * before.sign()  # Adam's first step is as long as the rate, whatever the gradient
        torch.testing.assert_close(tensors_of(after, "model")[name], expected, rtol=0, atol=1e-6)


STILL: dict[str, Any] = {
    "steps": 40, "schedule": "constant", "learning_rate": 1e-30, "validate_every": 2, "patience": 2, "log_every": 1,
}  # fmt: skip
"""A training that changes no weight: it stops at the second validation after the first, in step 6."""


@pytest.mark.slow
def test_a_training_whose_validation_no_longer_rises_stops(dataset_path: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.safetensors"
    run(dataset_path, out, **STILL)
    assert read_checkpoint(out, "model")[0].facts["converged_at_step"] == 6
    validated = [
        line["step"] for line in map(json.loads, log_path(out).read_text().splitlines()) if "validation" in line
    ]
    assert validated == [2, 4, 6] and describe_interruption(out) == ""
    whole = tmp_path / "whole.safetensors"
    run(dataset_path, whole, **{**STILL, "patience": 20})
    facts = read_checkpoint(whole, "model")[0].facts
    assert "converged_at_step" not in facts and json.loads(log_path(whole).read_text().splitlines()[-1])["step"] == 40


def test_patience_counts_on_where_a_run_was_interrupted(dataset_path: Path, tmp_path: Path) -> None:
    """Interrupted after the first validation without a rise, and again at the end with more steps to make."""
    out = tmp_path / "model.safetensors"
    with pytest.raises(Interrupted):
        run(dataset_path, out, stop_at=5, **STILL)
    run(dataset_path, out, resume="require", **STILL)
    assert read_checkpoint(out, "model")[0].facts["converged_at_step"] == 6
    run(dataset_path, out, **{**STILL, "steps": 60})  # an uninterrupted run of 60 steps has stopped here as well
    assert read_checkpoint(state_path(out), "training-state")[0].facts["step"] == 6


def test_a_rise_renews_patience() -> None:
    state = RunState()
    for value, waited in ((1.0, 0), (0.9, 1), (1.1, 0), (1.1, 1), (1.0, 2), (1.05, 3)):
        state.wait(value, patience=3)
        assert (state.waited, state.converged) == (waited, waited == 3)


def test_patience_needs_a_figure_to_wait_for(dataset_path: Path, tmp_path: Path) -> None:
    values = {**TINY, "objective": {"name": "capacity"}, "training": {**TINY["training"], "patience": 2}}
    with Dataset.open(dataset_path) as dataset:
        settings = complete_settings(values, dataset)
    with pytest.raises(UsageError, match=r"training\.patience got 2, but no figure of validation tells"):
        train_model(dataset_path, settings, tmp_path / "m.safetensors", "mmgen train").run()

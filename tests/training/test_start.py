"""Runs that begin with another model's weights: what is taken over, what is refused, what the file says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmgen.artifacts import Dataset, find_parent, read_checkpoint, read_header, write_checkpoint
from mmgen.cli._main import main
from mmgen.commands.train import Train
from mmgen.core.errors import SettingsError, UsageError
from mmgen.core.progress import Watch
from mmgen.settings.config import merge
from mmgen.training.model_run import complete_settings, train_model
from mmgen.training.weights import settings_from_start
from tests.small_data import write_small

SIZE = 40
VAE: dict[str, Any] = {
    "objective": {"name": "elbo", "modalities": ["image"], "samples": 3, "kl_warmup_steps": 5},
    "model": {"latent_size": 3, "hidden": 8, "image_network": {"name": "mlp", "hidden": [8]}},
    "data": {"split": "other"},
    "training": {"steps": 6, "batch": 8, "device": "cpu", "validate_every": 3, "learning_rate": 0.01},
}
SHORT = {"training": {"steps": 4, "batch": 8, "device": "cpu", "validate_every": 2}}


def write(path: Path, side: int = 4, words: tuple[str, ...] = ("no", "yes")) -> Path:
    generator, parts = np.random.default_rng(0), {}
    values = {"image": generator.integers(0, 256, (SIZE, 1, side, side), np.uint8)}
    values["attributes"] = generator.integers(0, 2, (SIZE, 1), np.uint8)
    for scheme, first in (("iid", 0), ("other", 10)):
        parts[scheme] = np.split(np.roll(np.arange(SIZE), -first), [20, 30])
    return write_small(path, values, {"a": words}, None, parts, "probabilities", recipe="noise")


@pytest.fixture(scope="module")
def dataset_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("start") / "noise.h5")


@pytest.fixture(scope="module")
def vae(dataset_path: Path) -> Path:
    return train(dataset_path, dataset_path.with_name("vae.safetensors"), VAE)


def train(dataset_path: Path, out: Path, values: dict[str, Any], start: Path | None = None, begin: int = 0) -> Path:
    with Dataset.open(dataset_path) as dataset:
        settings = complete_settings(settings_from_start(start, values) if start else values, dataset)
    for progress in train_model(dataset_path, settings, out, start=start):
        if begin and progress.done >= begin:
            break
    return out


def test_networks_that_are_far_larger_than_the_file_are_not_built(
    dataset_path: Path, vae: Path, tmp_path: Path
) -> None:
    """A file of some kilobytes, whose settings a run takes over, would else fill the machine with 200 GB."""
    header, tensors = read_checkpoint(vae)
    huge = merge(header.settings, {"model": {"image_network": {"hidden": [20_000] * 125}}})
    path = tmp_path / "huge.safetensors"
    write_checkpoint(path, kind="model", tensors=tensors, settings=huge, seed=0, parents=header.parents)
    with pytest.raises(SettingsError, match=r"^--from got .*, whose settings describe networks of far more than the"):
        train(dataset_path, tmp_path / "m.safetensors", SHORT, path)
    assert [one.name for one in tmp_path.iterdir()] == ["huge.safetensors"]


class Heard(Watch):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def say(self, text: str) -> None:
        self.texts.append(text)


def test_a_preset_for_a_gpu_says_that_there_is_one_for_cpus(dataset_path: Path) -> None:
    def told(preset: str) -> list[str]:
        watch = Heard()
        assert Train(dataset_path, preset=preset, device="cpu", progress=watch)._preset_name() in (
            preset,
            f"{preset}-cpu",
        )
        return watch.texts

    (said,) = told("higgins/beta-vae-mnist-a")
    assert "none here" in said and "higgins/beta-vae-mnist-a-cpu is its variant for CPUs" in said
    assert told("higgins/beta-vae-mnist-a-cpu") == told("kingma/mnist-m2-100") == []


def test_networks_and_what_objectives_share_are_taken_over_and_nothing_of_the_training(vae: Path) -> None:
    values = settings_from_start(vae, {"objective": {"name": "iwae", "samples": 7}, **SHORT})
    assert values["objective"]["name"] == "iwae"
    assert values["objective"]["modalities"] == ["image"]
    assert values["objective"]["samples"] == 7
    assert not {"beta", "kl_warmup_steps"} & values["objective"].keys()
    assert values["model"]["latent_size"] == 3
    assert values["data"] == {"split": "other"}
    assert values["training"] == SHORT["training"]
    again = settings_from_start(vae, {})
    assert again["objective"]["name"] == "elbo"
    assert not {"samples", "kl_warmup_steps"} & again["objective"].keys()
    assert "training" not in again


@pytest.mark.parametrize(
    ("before", "name", "kept"),
    [
        ({"name": "factor-vae", "gamma": 35.0}, "capacity", {}),
        ({"name": "capacity", "gamma": 1000.0, "capacity": 9.0, "capacity_steps": 7}, "factor-vae", {}),
        ({"name": "elbo", "beta": 4.0, "image_weight": 3.0}, "beta-tcvae", {}),
        ({"name": "elbo", "beta": 4.0, "image_weight": 3.0}, "iwae", {"image_weight": 3.0}),
        ({"name": "capacity", "gamma": 10.0, "capacity_steps": 7}, "capacity", {"gamma": 10.0}),
        ({"name": "beta-tcvae", "beta": 2.0, "examples": 7}, "beta-tcvae", {"beta": 2.0}),
    ],
)
def test_weights_of_another_objective_are_not_taken_over(
    before: dict[str, Any], name: str, kept: dict[str, Any], vae: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A letter is a weight of something else in each; schedules and numbers of examples are those of a run."""
    header = replace(read_header(vae), settings={"objective": {"modalities": ["image"], **before}})
    monkeypatch.setattr("mmgen.training.weights.require_kind", lambda path, kind: header)
    found = settings_from_start(vae, {"objective": {"name": name}})["objective"]
    assert found == {"name": name, "modalities": ["image"], **kept}


def test_a_run_begins_with_the_weights_and_names_the_model_as_its_parent(
    dataset_path: Path, vae: Path, tmp_path: Path
) -> None:
    """Without a step it is the model itself; with some it is another one, of the other objective."""
    objective = {"objective": {"name": "iwae"}}
    same = train(
        dataset_path, tmp_path / "same.safetensors", merge(SHORT, {**objective, "training": {"steps": 0}}), vae
    )
    (_, before), (_, after) = read_checkpoint(vae, "model"), read_checkpoint(same, "model")
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    iwae = train(dataset_path, tmp_path / "iwae.safetensors", merge(SHORT, objective), vae)
    header, moved = read_checkpoint(iwae, "model")
    assert header.settings["objective"]["name"] == "iwae"
    assert [parent.role for parent in header.parents] == ["dataset", "start"]
    assert find_parent(iwae, "start").resolve() == vae.resolve()
    assert any(not tensor.equal(moved[name]) for name, tensor in before.items())


def test_it_resumes_bit_for_bit_and_only_from_the_same_start(dataset_path: Path, vae: Path, tmp_path: Path) -> None:
    values = merge(SHORT, {"objective": {"name": "iwae", "samples": 2}})
    whole = train(dataset_path, tmp_path / "whole.safetensors", values, vae)
    broken = train(dataset_path, tmp_path / "broken.safetensors", values, vae, begin=2)
    train(dataset_path, broken, values, vae)
    tensors = [read_checkpoint(path, "model")[1] for path in (whole, broken)]
    assert all(tensor.equal(tensors[1][name]) for name, tensor in tensors[0].items())
    other = train(dataset_path, tmp_path / "other.safetensors", merge(VAE, {"training": {"seed": 1}}))
    with pytest.raises(UsageError, match="holds a run with other settings: start"):
        train(dataset_path, broken, values, other)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (
            {"model": {"latent_size": 4}},
            r"whose networks are not those of this run: .* is \[.*\] in the file and \[.*\] in this run",
        ),
        ({"objective": {"name": "elbo", "modalities": ["image", "attributes"]}}, "missing in the file and"),
        ({"data": {"split": "iid"}}, "was trained on split 'other' of this dataset, but this run is on 'iid'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(
    values: dict[str, Any], complaint: str, dataset_path: Path, vae: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        train(dataset_path, tmp_path / "m.safetensors", merge(SHORT, values), vae)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_another_kind_of_picture_is_refused_and_the_model_is_not_overwritten(
    dataset_path: Path, vae: Path, tmp_path: Path
) -> None:
    larger = write(tmp_path / "larger.h5", side=5)
    with pytest.raises(UsageError, match=r"trained with another image \(its shape differs\)"):
        train(larger, tmp_path / "m.safetensors", SHORT, vae)
    with pytest.raises(UsageError, match="the command reads that file"):
        train(dataset_path, vae, SHORT, vae)


def test_from_the_command_line(
    dataset_path: Path, vae: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "iwae.safetensors"
    options = ["--objective", "iwae", "--steps", "2", "--batch", "4", "--device", "cpu", "-o", str(out)]
    monkeypatch.setattr("sys.argv", ["mmgen", "train", str(dataset_path), "--from", str(vae), *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capsys.readouterr().out.strip() == str(out)
    assert read_header(out).settings["objective"]["samples"] == 5


def test_first_weights_are_those_of_the_other_model_and_the_file_says_so(
    vae: Path, dataset_path: Path, tmp_path: Path
) -> None:
    asked = {"model": {"initial_weights": "glorot", "output_bias": "mean"}}
    out = train(dataset_path, tmp_path / "on.safetensors", merge(SHORT, {**asked, "training": {"steps": 0}}), vae)
    header, tensors = read_checkpoint(out, "model")
    assert header.settings["model"]["initial_weights"] == header.settings["model"]["output_bias"] == "default"
    before = read_checkpoint(vae, "model")[1]
    assert all((tensors[name] == before[name]).all() for name in before)

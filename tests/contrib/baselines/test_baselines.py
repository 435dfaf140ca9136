"""Baselines of weak supervision: right on what can be separated, blind to labels they must not see, errors in words."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mmgen.contrib.baselines
from mmgen.artifacts import Dataset
from mmgen.cli._main import main
from mmgen.contrib.baselines import _base as networks, measure_labels, rbm
from mmgen.contrib.baselines._base import BaselineData, LabelSupply, fit_regression
from mmgen.core.errors import DataError, UsageError
from mmgen.training.model_run import ExperimentSettings, complete_settings
from mmgen.training.pairing import choose_paired_examples
from tests.small_data import write_small

SIZE, TRAIN = 400, 240
READERS = [name for name, member in mmgen.contrib.baselines.import_all().items() if member.answers == "labels"]
TINY: dict[str, Any] = {
    "model": {
        "latent_size": 4,
        "image_network": {"name": "mlp", "hidden": [16]},
        "attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8},
        "head_layers": 0,
    },
    "objective": {"name": "mvae"},
    "training": {
        "steps": 120,
        "batch": 32,
        "validate_every": 40,
        "validation_examples": 80,
        "learning_rate": 1e-2,
        "device": "cpu",
    },
}


PLACES = {"place": ["left", "middle", "right"]}


def write(path: Path, images: dict[str, np.ndarray], codes: np.ndarray, words: dict[str, list[str]] = PLACES) -> Path:
    """A dataset of pictures [SIZE, 1, 6, 6] by modality with attributes [SIZE, A]."""
    values = {name: pixels.astype(np.uint8) for name, pixels in images.items()}
    return write_small(path, {**values, "attributes": codes.astype(np.uint8)}, words, None, (TRAIN, 80), recipe="bars")


def bars_and_places(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 6x6 in which one of three bars is bright, and its place."""
    place = np.arange(SIZE) % 3
    images = generator.integers(0, 40, (SIZE, 1, 6, 6))
    for bar in range(3):
        images[place == bar, 0, :, 2 * bar : 2 * bar + 2] += 200
    return images, place


def write_bars(path: Path, shuffled: bool = False, two: bool = False) -> None:
    """Pictures of bars, whose place is the label, or by chance."""
    generator = np.random.default_rng(0)
    images, place = bars_and_places(generator)
    codes = (generator.permutation(place) if shuffled else place)[:, None]
    other = np.zeros((SIZE, int(two)))
    write(path, {"image": images}, np.concatenate([codes, other], 1), PLACES | ({"colour": ["grey"]} if two else {}))


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "bars.h5"
    write_bars(path)
    return path


def settings_of(path: Path, **training: Any) -> ExperimentSettings:
    with Dataset.open(path) as dataset:
        return complete_settings({**TINY, "training": {**TINY["training"], **training}}, dataset)


@pytest.mark.slow_cases("autoencoder")
@pytest.mark.parametrize("method", READERS)
def test_every_baseline_reads_what_can_be_separated(method: str, bars: Path) -> None:
    """24 pairs of three well separated kinds: all 80 test images right, and two of four more that are not."""
    (score,) = measure_labels(bars, method, [LabelSupply(0.1)], settings_of(bars)).run()
    assert score.value == 100
    assert score.stderr == pytest.approx(100 * math.sqrt(82 / 84 * 2 / 84 / 84))  # Agresti and Coull
    assert (score.n, score.details["correct"], score.details["paired"]) == (80, 80, 24)
    assert (score.posterior, score.details["method"]) == (method, method)
    assert json.loads(json.dumps(score.to_json()))["details"]["share"] == 0.1
    if method == "logistic":  # all penalties are right on all validation images: of equals the first is taken
        assert score.details["inverse_penalty"] == networks.INVERSE_PENALTIES[0]


def test_accuracy_and_error_where_there_is_nothing_to_learn(tmp_path: Path) -> None:
    """Labels by chance: 80 images at 1 / 3 are 33 +- 5 %; the error is Agresti and Coull's."""
    path = tmp_path / "chance.h5"
    write_bars(path, shuffled=True)
    (score,) = measure_labels(path, "logistic", [LabelSupply(1.0)], settings_of(path)).run()
    assert abs(score.value - 33.3) < 20
    right = (80 * score.value / 100 + 2) / 84
    assert score.stderr == pytest.approx(100 * math.sqrt(right * (1 - right) / 84))
    assert sum(score.points.values) / 80 == pytest.approx(score.value)


@pytest.mark.parametrize("method", ["supervised", "autoencoder", "vae"])
def test_networks_have_the_weights_that_are_best_on_validation_images(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels by chance, few pictures and many steps: what is best comes early, and is what is measured."""
    path, seen = tmp_path / "chance.h5", []
    write_bars(path, shuffled=True)
    written = networks.write_checkpoint
    monkeypatch.setattr(
        networks, "write_checkpoint", lambda path, **said: (seen.append(said["facts"]), written(path, **said))
    )
    settings = settings_of(path, steps=120, validate_every=10, learning_rate=0.03)
    (score,) = measure_labels(path, method, [LabelSupply(0.1)], settings).run()
    (figure,) = {name for facts in seen for name in facts if name.startswith("validation_") and "exam" not in name} - {
        "validation_stderr", "validation_terms",
    }  # fmt: skip
    figures = [facts[figure] for facts in seen]
    assert figures == sorted(set(figures))  # each better than the one before
    assert 1 <= len(seen) < 12
    if method == "supervised":
        assert score.details["step"] == seen[-1]["step"] < 120


@pytest.mark.parametrize("method", ["logistic", "supervised", "vae"])
def test_labels_of_what_is_not_paired_change_nothing(method: str, bars: Path, tmp_path: Path) -> None:
    """All labels but those of the pairs, of validation and of test are turned round."""
    other, settings = tmp_path / "turned.h5", settings_of(bars, steps=30, validate_every=10)
    keep = set(choose_paired_examples(TRAIN, 0.05, settings.training.seed).tolist()) | set(range(TRAIN, SIZE))
    with Dataset.open(bars) as source:
        codes = source.read_attributes("attributes")
        turned = np.array([[c if n in keep else (c + 1) % 3] for n, (c,) in enumerate(codes)], np.uint8)
        write(other, {"image": source.read_image("image")}, turned)
    one, two = (measure_labels(path, method, [LabelSupply(0.05)], settings).run()[0] for path in (bars, other))
    assert one.points.values == two.points.values


def test_pairs_are_those_of_training_and_unknown_labels_are_none(bars: Path) -> None:
    with Dataset.open(bars) as dataset:
        material = BaselineData(dataset, settings_of(bars, seed=5))
        chosen = material.labelled_positions(LabelSupply(0.1))
        assert chosen.tolist() == choose_paired_examples(TRAIN, 0.1, 5).tolist()
        whole = material.labelled_rows(LabelSupply(0.1))
        assert len(whole) == 24
        pixels = material.pixels("train")
        assert pixels.shape == (TRAIN, 36)
        assert np.array_equal(
            pixels, dataset.read_image("image", np.arange(TRAIN)).reshape(TRAIN, -1) / np.float32(255)
        )
        material.rows("train")._in_memory["attributes"][chosen[0]] = 255
        assert material.labelled_positions(LabelSupply(0.1)).tolist() == chosen[1:].tolist()


def test_a_single_kind_of_label_is_always_said() -> None:
    reader = fit_regression(np.eye(3, dtype=np.float32), np.array([2, 2, 2]), 1.0)
    assert reader.predict(np.zeros((4, 3), np.float32)).tolist() == [2] * 4


def test_the_rbm_looks_at_whole_batches_and_repeats_itself(bars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbm, "EPOCHS", 1)
    with Dataset.open(bars) as dataset:
        made = []
        for _ in range(2):
            baseline = rbm.Rbm(BaselineData(dataset, settings_of(bars)))
            fractions = list(baseline.learn_features())
            made.append(baseline.features("test"))
    assert fractions[-1] == 1 and made[0].shape == (80, rbm.HIDDEN)
    assert np.array_equal(made[0], made[1])


def test_the_main_picture_is_that_of_the_joint_model(tmp_path: Path) -> None:
    """In the file "completion" stands before "image", which is the main picture of the joint model."""
    path, generator = tmp_path / "views.h5", np.random.default_rng(0)
    codes = (np.arange(SIZE) % 3)[:, None].astype(np.uint8)
    images = {"completion": generator.integers(0, 256, (SIZE, 1, 6, 6)), "image": np.zeros((SIZE, 1, 6, 6))}
    for bar in range(3):
        images["image"][codes[:, 0] == bar, 0, :, 2 * bar : 2 * bar + 2] = 200
    write(path, images, codes)
    settings = settings_of(path)
    with Dataset.open(path) as dataset:
        assert next(iter(dataset.images)) == "completion"
        material = BaselineData(dataset, settings)
        assert material.image.name == "image"
        assert "completion" not in material.rows("train").batch(torch.arange(2)).values, "read, though nobody looks"
    (score,) = measure_labels(path, "logistic", [LabelSupply(0.1)], settings).run()
    assert score.value == 100


def write_unknown(path: Path, unknown: slice) -> None:
    """Pictures of noise; labels of some examples are not known."""
    codes = (np.arange(SIZE) % 3)[:, None].astype(np.uint8)
    codes[unknown] = 255
    images = np.random.default_rng(0).integers(0, 256, (SIZE, 1, 6, 6)).astype(np.uint8)
    write(path, {"image": images}, codes)


@pytest.mark.parametrize("method", READERS)
@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        (slice(None), r"'place' for none of the 24 paired training images \(for 0 of all 240\).*choose a dataset or"),
        (slice(TRAIN - 1), r"none of the 24 paired training images \(for 1 of all 240\).*choose a larger --paired"),
        (slice(320, None), r"gives 'place' for none of the test images"),
    ],
)
def test_labels_that_are_unknown_are_reported_before_anything_is_learnt(
    method: str, unknown: slice, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "unknown.h5"
    write_unknown(path, unknown)
    learnt: list[str] = []
    for step in ("learn_features", "predict_test_labels"):
        monkeypatch.setattr(mmgen.contrib.baselines.get(method), step, lambda *_: learnt.append(method))
    with pytest.raises(DataError, match=said):
        measure_labels(path, method, [LabelSupply(0.1)], settings_of(path)).run()
    assert not learnt


def test_a_network_learns_the_attribute_that_is_said_alone(tmp_path: Path) -> None:
    """The other attribute, different in everything, changes neither the weights nor when training stops."""
    paths, kinds = [tmp_path / f"{n}.h5" for n in range(2)], ["grey", "red"]
    generator = np.random.default_rng(0)
    images, place = bars_and_places(generator)
    for path, colour in zip(paths, (generator.integers(0, 2, SIZE), np.full(SIZE, 255)), strict=True):
        write(path, {"image": images}, np.stack([colour, place], 1), {"colour": kinds, **PLACES})
    settings = settings_of(paths[0], steps=60, validate_every=10)
    one, two = (measure_labels(path, "supervised", [LabelSupply(0.1)], settings, "place").run()[0] for path in paths)
    assert one.details == two.details
    assert one.details["validation_accuracy"] == pytest.approx(100)  # of noise it would be right half the time


@pytest.mark.parametrize(
    ("method", "share", "error", "said"),
    [
        ("logistik", 0.1, UsageError, "did you mean 'logistic'"),
        ("gaussian", 0.1, UsageError, "gaussian is for densities, expected one for labels"),
        ("logistic", 0.0, UsageError, "--paired got 0, expected a share above 0"),
        ("logistic", 0.0001, DataError, "which is no whole example of 240 training examples"),
    ],
)
def test_mistakes_are_sentences(method: str, share: float, error: type[Exception], said: str, bars: Path) -> None:
    with pytest.raises(error, match=said):
        measure_labels(bars, method, [LabelSupply(share)], settings_of(bars)).run()


def test_of_two_attributes_one_is_named(tmp_path: Path) -> None:
    two = tmp_path / "two.h5"
    write_bars(two, two=True)
    with pytest.raises(UsageError, match=r"got no --attribute, expected one of place, colour"):
        measure_labels(two, "logistic", [LabelSupply(0.1)], settings_of(two)).run()
    (score,) = measure_labels(two, "logistic", [LabelSupply(0.1)], settings_of(two), "place").run()
    assert score.value == 100 and score.details["attribute"] == "place"


def test_the_command_writes_what_eval_writes(
    bars: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["baseline", str(bars), "--paired", "0.1", "--paired", "0.05", "-o", "out.jsonl", "--device", "cpu"]
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2 and "there is none for the recipe 'bars'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--steps", "1", "--set", "training.batch=7"])
    refused = "logistic trains no networks, so --steps and --set training.batch would change nothing"
    assert left.value.code == 2 and refused in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--preset", "vedantam/telbo-mnist-a-cpu", "--set", "training.seed=1"])
    assert left.value.code == 2 and "--set training.seed got 1, expected the option --seed" in capsys.readouterr().err
    with pytest.raises(SystemExit) as left:
        main([*arguments, "--preset", "vedantam/telbo-mnist-a-cpu"])
    assert left.value.code == 0 and capsys.readouterr().out == "out.jsonl\n"
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [line["details"]["paired"] for line in lines] == [12, 24]
    with Dataset.open(bars) as dataset:
        assert {line["ids"]["dataset"] for line in lines} == {dataset.header.content_id}

"""The presets of Wu and Goodman: each learns on data of its kind, and has as many parameters as Table 1 says."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.models._build import build_model
from mmgen.settings.extends import format_preset_with_origins, load_preset
from mmgen.settings.presets import preset_names as preset_names
from mmgen.training.batches import DatasetRows
from mmgen.training.model_run import ExperimentSettings, complete_settings

WU = [name.removeprefix("wu/") for name in preset_names() if name.startswith("wu/")]
FACES = {"image": 3, "grayscale": 1, "edges": 1, "mask": 1, "completion": 3, "watermark": 3}
SIZE = 8
Named = Callable[[str], ExperimentSettings]


def data_of(name: str) -> str:
    """The dataset that a preset is for."""
    names = ("binary-mnist", "fashion-mnist", "multimnist", "mnist", "celeba", "transforms", "translation")
    return next(data for data in names if name.startswith(data))


def write_sentences(path: Path) -> None:
    """A few random sentences in the languages of the presets."""
    codes = np.random.default_rng(0).integers(0, 5, (SIZE, 4)).astype(np.uint16)
    command = "mmgen make-data parallel-text"
    with DatasetWriter(path, size=SIZE, settings={"recipe": "parallel-text"}, seed=0, command=command) as writer:
        for name in ("en", "de", "vi"):
            writer.add_text(name, tuple("abcde"), 4)
        writer.write(0, dict.fromkeys(("en", "de", "vi"), codes))
        rows = np.arange(SIZE)
        writer.add_splits("iid", train=rows[:4], val=rows[4:6], test=rows[6:])


def write(path: Path, data: str) -> None:
    """A few random examples with the modalities that the recipe of these data writes."""
    generator = np.random.default_rng(0)
    if data == "translation":
        write_sentences(path)
        return
    side = {"multimnist": 50, "celeba": 64, "transforms": 64}.get(data, 28)
    channels = FACES if data == "transforms" else {"image": 3 if data == "celeba" else 1}
    with DatasetWriter(path, size=SIZE, settings={"recipe": data}, seed=0, command=f"mmgen make-data {data}") as writer:
        images = {}
        for image, depth in channels.items():
            layout = "bits" if data == "binary-mnist" else "bytes"
            writer.add_image(image, shape=(depth, side, side), layout=layout)
            images[image] = generator.integers(0, 256, (SIZE, depth, side, side)).astype(np.uint8)
            if layout == "bits":
                images[image] = np.packbits(images[image].reshape(SIZE, -1) > 127, axis=1)
        labels: dict[str, Any] = {}
        if data == "multimnist":
            writer.add_text("text", tuple("0123456789"), 4)
            counts = generator.integers(0, 5, (SIZE, 1))
            words = generator.integers(0, 10, (SIZE, 4))
            labels["text"] = np.where(np.arange(4) < counts, words, 10).astype(np.uint16)
        else:
            values = [["no", "yes"]] * 18 if data in ("celeba", "transforms") else [list("0123456789")]
            writer.add_attributes("attributes", {f"attribute {a}": list(v) for a, v in enumerate(values)})
            codes = [generator.integers(0, len(v), SIZE) for v in values]
            labels["attributes"] = np.stack(codes, 1).astype(np.uint8)
        writer.write(0, images | labels)
        rows = np.arange(SIZE)
        writer.add_splits("iid", train=rows[:4], val=rows[4:6], test=rows[6:])


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wu")
    found = {data: folder / f"{data}.h5" for data in {data_of(name) for name in WU}}
    for data, path in found.items():
        write(path, data)
    return found


@pytest.fixture(scope="module")
def complete(paths: dict[str, Path]) -> Named:
    """A preset's settings, completed as mmgen train --dry-run does."""

    def settings(name: str) -> ExperimentSettings:
        with Dataset.open(paths[data_of(name)]) as dataset:
            return complete_settings(load_preset(f"wu/{name}"), dataset)

    return settings


@pytest.mark.slow_cases("transforms")
@pytest.mark.parametrize("name", WU)
def test_a_step_of_every_preset(name: str, paths: dict[str, Path], complete: Named) -> None:
    """Finite terms, and gradients to every weight."""
    settings = complete(name)
    objective = settings.build_objective()
    torch.manual_seed(0)
    model = build_model(settings.model, objective.demands, settings.data)
    with Dataset.open(paths[data_of(name)]) as dataset:
        rows = DatasetRows.open_split(dataset, "iid", "train", torch.device("cpu"))
    bound = objective(model, rows.batch(torch.arange(4)), step=1)
    assert bound.value.isfinite().all() and all(term.isfinite().all() for term in bound.terms.values())
    (-bound.value.mean()).backward()
    assert [key for key, p in model.named_parameters() if p.grad is None] == []
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def inference_parameters(settings: ExperimentSettings) -> int:
    with torch.device("meta"):
        model = build_model(settings.model, settings.build_objective().demands, settings.data)
    return sum(p.numel() for p in model.inference.parameters())


PUBLISHED = {
    "mnist": 1_063_680,
    "mnist-vae": 730_240,
    "mnist-cvae": 735_360,
    "binary-mnist-cvae": 735_360,
    "mnist-jmvae": 2_061_184,
    "fashion-mnist": 3_742_976,
    "fashion-mnist-vae": 3_409_536,
    "fashion-mnist-cvae": 3_414_656,
    "fashion-mnist-jmvae": 7_682_432,
    "multimnist-vae": 1_316_936,
    "celeba": 4_447_504,
    "celeba-vae": 4_070_472,
    "celeba-cvae": 4_079_688,
    "celeba-jmvae": 9_052_504,
}


@pytest.mark.parametrize(("name", "published"), PUBLISHED.items())
def test_parameters_of_inference_networks_are_those_of_table_1(name: str, published: int, complete: Named) -> None:
    assert inference_parameters(complete(name)) == published


@pytest.mark.parametrize("data", ["mnist", "binary-mnist", "fashion-mnist", "multimnist", "celeba"])
def test_bivcca_and_both_mvaes_have_the_same_inference_networks(data: str, complete: Named) -> None:
    """WG Table 1 has equal rows for them; BinaryMNIST is counted as MNIST is."""
    counts = {inference_parameters(complete(name)) for name in (data, f"{data}-bivcca", f"{data}-mvae-q")}
    assert len(counts) == 1
    assert counts == {inference_parameters(complete(data.replace("binary-", "")))}


@pytest.mark.parametrize(
    ("name", "published", "more"),
    [
        ("multimnist", 1_841_936, -200),
    ],
    ids=["no vector for the start of a sentence"],
)
def test_where_counts_differ_from_table_1_and_why(name: str, published: int, more: int, complete: Named) -> None:
    assert inference_parameters(complete(name)) == published + more


def test_mvae19_has_the_networks_of_the_published_code(complete: Named) -> None:
    """Table 1's 10,857,048 are 18 copies of the network that reads all 18 attributes (377,032 parameters each).

    The published code has 18 networks of two vectors of 512, a layer of 512 and the Gaussian. Here the vectors are a
    linear map of two numbers (three for "unknown"), which can be any two vectors.
    """
    assert 4_070_472 + 18 * 377_032 == 10_857_048
    code = 2 * 512 + (512 * 512 + 512) + (512 * 200 + 200)
    ours = 3 * 2 + (2 * 512 + 512) + (512 * 512 + 512) + (512 * 200 + 200)
    assert inference_parameters(complete("celeba19")) == 4_070_472 + 18 * ours
    assert ours - code == 518


def decoder_parameters(settings: ExperimentSettings) -> dict[str, int]:
    with torch.device("meta"):
        model = build_model(settings.model, settings.build_objective().demands, settings.data)
    return {name: sum(p.numel() for p in decoder.parameters()) for name, decoder in model.decoders.items()}


def fully_connected(*sizes: int) -> int:
    """Weights and biases of linear layers of these sizes."""
    return sum(before * after + after for before, after in itertools.pairwise(sizes))


@pytest.mark.parametrize("data", ["mnist", "binary-mnist"])
@pytest.mark.parametrize("model", ["", "-vae", "-jmvae", "-bivcca", "-mvae-q", "-cvae"])
def test_decoders_of_digits_have_three_hidden_layers_as_in_the_published_code(
    data: str, model: str, complete: Named
) -> None:
    """Table 1 counts inference networks alone; ImageDecoder and TextDecoder are of the published mnist/model.py."""
    z = 64 + (11 if model == "-cvae" else 0)  # a CVAE's decoder is given the label as well, or that it is unknown
    wanted = {"image": fully_connected(z, 512, 512, 512, 784)}
    if model in ("", "-jmvae", "-bivcca", "-mvae-q"):
        wanted["attributes"] = fully_connected(z, 512, 512, 512, 10)
    assert decoder_parameters(complete(data + model)) == wanted


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("fashion-mnist", fully_connected(64, 512, 512, 512, 10)),
        ("celeba", fully_connected(100, 512, 512, 512, 18 * 2) + 3 * 2 * 512),
        ("celeba19", 18 * fully_connected(100, 512, 512, 512, 2)),
    ],
)
def test_decoders_of_labels_have_three_hidden_layers(name: str, published: int, complete: Named) -> None:
    """As published, but for two logits of an attribute where the code has one."""
    assert decoder_parameters(complete(name))["attributes"] == published


@pytest.mark.parametrize("name", [name for name in WU if name.startswith("transforms")])
def test_views_are_trained_as_in_the_published_code(name: str) -> None:
    """Divided by six, and then every posterior explains all six: anything less starves the terms of one modality."""
    objective = load_preset(f"wu/{name}")["objective"]
    six = objective["modalities"]
    assert objective["mean_of_modalities"] and objective["subsets"] == 0
    assert {alone: {alone, *others} for alone, others in objective["predicts"].items()} == {n: set(six) for n in six}


@pytest.mark.parametrize("name", [name for name in WU if name.startswith("celeba19")])
def test_single_attributes_are_trained_as_in_the_published_code(name: str) -> None:
    objective = load_preset(f"wu/{name}")["objective"]
    assert (objective["subsets"], objective["subset_law"], objective["weigh"]) == (1, "sizes", "joint")


OURS = ("kl_warmup_steps", "learning_rate", "schedule", "warmup_steps", "gradient_clip")


@pytest.mark.parametrize("name", [n for n in preset_names() if n.endswith("-cpu") or n.startswith(("quick", "cremer"))])
def test_what_no_paper_says_says_where_it_is_from(name: str) -> None:
    lines = [line for line in format_preset_with_origins(name).splitlines() if line.split(" = ")[0] in OURS]
    assert lines
    published = name == "cremer/two-objects"
    assert [line for line in lines if "#" not in line and not (published and line.startswith("schedule"))] == []


def test_schedules_are_those_of_the_paper() -> None:
    """500 epochs of 60,000 digits with 200 of annealing; 100 of 162,770 faces, or 133,317 pairs, with 20."""
    for name in WU:
        if name.endswith("-cpu"):
            continue
        training, objective = load_preset(f"wu/{name}")["training"], load_preset(f"wu/{name}")["objective"]
        faces = data_of(name) in ("celeba", "transforms")
        examples, epochs, annealing = (162_770, 100, 20) if faces else (60_000, 500, 200)
        if name == "translation":
            examples, epochs, annealing = 133_317, 100, 20
        per_epoch = -(-examples // training["batch"])
        assert training["steps"] == epochs * per_epoch
        assert objective["kl_warmup_steps"] == annealing * per_epoch
        assert training["learning_rate"] == (1e-4 if faces else 1e-3)

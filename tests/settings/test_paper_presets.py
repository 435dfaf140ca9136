"""Presets of papers: each learns on data of its kind, with networks of the published sizes and their schedules."""

import itertools
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from mmgen.models import DataSettings
from mmgen.models._build import build_model
from mmgen.settings.config import validate
from mmgen.settings.extends import format_preset_with_origins, load_preset
from mmgen.settings.presets import preset_names as preset_names
from mmgen.training.batches import make_batch
from mmgen.training.model_run import ExperimentSettings, complete_settings

WU = [name.removeprefix("wu/") for name in preset_names() if name.startswith("wu/")]
VIEWS = {"image": 3, "grayscale": 1, "edges": 1, "mask": 1, "completion": 3, "watermark": 3}
YES = [["no", "yes"]] * 18
DIGITS, SIZED = [list("0123456789")], [list("0123456789"), ["big", "small"]]
DATA: dict[str, tuple[int, dict[str, int], str, list[list[str]]]] = {
    "binary-mnist": (28, {"image": 1}, "bits", DIGITS),
    "fashion-mnist": (28, {"image": 1}, "bytes", DIGITS),
    "mnist-a": (64, {"image": 1}, "bits", SIZED),
    "multimnist": (50, {"image": 1}, "bytes", []),
    "celeba": (64, {"image": 3}, "bytes", YES),
    "transforms": (64, VIEWS, "bytes", YES),
    "translation": (0, {}, "", []),
    "dsprites": (64, {"image": 1}, "bits", DIGITS),
    "pictures": (32, {"image": 3}, "bytes", DIGITS),
    "two-objects": (64, {"image": 3}, "bytes", DIGITS),
    "mnist": (28, {"image": 1}, "bytes", DIGITS),
}
"""Data of presets by a part of their names: side and channels of pictures, layout, and values of attributes."""


def data_of(name: str) -> str:
    return next(data for data in DATA if data in name)


def described(data: str, side: int = 0) -> dict[str, Any]:
    own, channels, layout, values = DATA[data]
    side = side or own
    found: dict[str, Any] = {
        image: {"kind": "image", "shape": [depth, side, side], "layout": layout} for image, depth in channels.items()
    }
    if values:
        names = [f"attribute {a}" for a in range(len(values))]
        found["attributes"] = {"kind": "attributes", "names": names, "values": values}
    texts = {"multimnist": ["text"], "translation": ["en", "de", "vi"], "pictures": ["text"], "two-objects": ["text"]}
    for text in texts.get(data, []):
        found[text] = {"kind": "text", "vocabulary": list("0123456789"), "length": 4}
    return found


@cache
def complete(name: str, side: int = 0) -> ExperimentSettings:
    """A preset's settings, completed as mmgen train --dry-run does."""
    data = validate(DataSettings, {"modalities": described(data_of(name), side)})
    dataset: Any = SimpleNamespace(modalities=data.modalities, schemes=("iid",), default_scheme="iid")
    return complete_settings(load_preset(name), dataset)


def meta_model(name: str, side: int = 0) -> Any:
    settings = complete(name, side)
    with torch.device("meta"):
        return build_model(settings.model, settings.build_objective().demands, settings.data)


def parameters(part: nn.Module) -> int:
    return sum(parameter.numel() for parameter in part.parameters())


@pytest.mark.slow_cases(
    "wu/transforms", "vedantam/bivcca-celeba", "vedantam/bivcca-mnist-a-compositional", "vedantam/bivcca-mnist-a"
)
@pytest.mark.parametrize(
    "name", [one for one in preset_names() if one.startswith(("wu/", "vedantam/")) and "2bit" not in one]
)
def test_a_step_of_every_preset(name: str) -> None:
    """Finite terms, and gradients to every weight."""
    settings = complete(name)
    objective, generator = settings.build_objective(), np.random.default_rng(0)
    torch.manual_seed(0)
    model = build_model(settings.model, objective.demands, settings.data)
    values: dict[str, torch.Tensor] = {}
    for modality, one in described(data_of(name)).items():
        if one["kind"] == "image":
            values[modality] = torch.rand(4, *one["shape"]).round()
        elif one["kind"] == "text":  # of no to four words, and then the end
            words, counts = generator.integers(0, 10, (4, 4)), generator.integers(0, 5, (4, 1))
            values[modality] = torch.from_numpy(np.where(np.arange(4) < counts, words, 10))
        else:
            codes = [generator.integers(0, len(v), 4) for v in one["values"]]
            values[modality] = torch.from_numpy(np.stack(codes, 1)).byte()
    bound = objective(model, make_batch(settings.data.modalities, values), step=1)
    assert bound.value.isfinite().all() and all(term.isfinite().all() for term in bound.terms.values())
    (-bound.value.mean()).backward()
    assert [key for key, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()] == []


# Sizes of networks, by hand.


def dense(*sizes: int) -> int:
    """Weights and biases of linear layers of these sizes."""
    return sum(before * after + after for before, after in itertools.pairwise(sizes))


def convolved(*channels: int) -> int:
    """Weights and biases of convolutions of 4x4."""
    return sum(16 * before * after + after for before, after in itertools.pairwise(channels))


def convolutional(maps: tuple[int, ...], *hidden: int) -> int:
    """Convolutions, linear layers to ten means and log standard deviations, and back."""
    flat = 16 * maps[-1]
    back = dense(10, *hidden[::-1], flat) + convolved(*maps[::-1])
    return convolved(*maps) + dense(flat, *hidden, 20) + back


HIGGINS = dense(4096, 1200, 1200, 20) + dense(10, 1200, 1200, 1200, 4096)
KIM, NARROW = (1, 32, 32, 64, 64), (1, 32, 32, 32, 32)
SIZES = {
    "garg/mnist": dense(784, 400, 40) + dense(20, 400, 784),
    **dict.fromkeys(("higgins/dsprites-vae", "higgins/dsprites-beta-vae", "chen/dsprites-beta-tcvae"), HIGGINS),
    **dict.fromkeys(("kim/dsprites-factor-vae", "kim/dsprites-beta-vae"), convolutional(KIM, 128)),
    **{f"locatello/dsprites-{one}": convolutional(KIM, 256) for one in ("beta-vae", "factor-vae", "beta-tcvae")},
    "burgess/dsprites-capacity": convolutional(NARROW, 256, 256),
}


@pytest.mark.parametrize(("name", "published"), SIZES.items())
def test_models_of_pictures_have_the_published_sizes(name: str, published: int) -> None:
    assert parameters(meta_model(name)) == published
    assert complete(name).build_objective().demands.generates == ("image",)


def test_activations_of_the_fully_connected_ones() -> None:
    settings = complete("higgins/dsprites-beta-vae")
    assert (settings.training.optimizer, settings.objective["beta"]) == ("adagrad", 4.0)
    parts = meta_model("higgins/dsprites-beta-vae").modules()
    assert (
        sorted(type(one).__name__ for one in parts if isinstance(one, nn.ReLU | nn.Tanh)) == ["ReLU"] * 2 + ["Tanh"] * 3
    )


def experts(layer: int) -> int:
    """Of 18 experts of one attribute each, behind the vectors of its values."""
    return 18 * (layer + (512 * 512 + 512) + (512 * 200 + 200))


WU_TABLE_1 = {
    "mnist": 1_063_680, "mnist-vae": 730_240, "mnist-cvae": 735_360, "binary-mnist-cvae": 735_360,
    "mnist-jmvae": 2_061_184, "fashion-mnist": 3_742_976, "fashion-mnist-vae": 3_409_536,
    "fashion-mnist-cvae": 3_414_656, "fashion-mnist-jmvae": 7_682_432, "multimnist-vae": 1_316_936,
    "multimnist": 1_841_936 - 200,  # no vector for the start of a sentence
    "celeba": 4_447_504, "celeba-vae": 4_070_472, "celeba-cvae": 4_079_688, "celeba-jmvae": 9_052_504,
    # Table 1's 10,857,048 are 18 copies of the network that reads all 18 attributes (377,032 parameters each). The
    # published code has 18 networks of two vectors of 512; here these are a linear map of two numbers (three for
    # "unknown"), which can be any two vectors.
    "celeba19": 4_070_472 + experts(3 * 2 + 2 * 512 + 512),
}  # fmt: skip


@pytest.mark.parametrize(("name", "published"), WU_TABLE_1.items())
def test_inference_networks_are_those_of_table_1(name: str, published: int) -> None:
    assert parameters(meta_model(f"wu/{name}").inference) == published


@pytest.mark.parametrize("data", ["mnist", "binary-mnist", "fashion-mnist", "multimnist", "celeba"])
def test_bivcca_and_both_mvaes_have_the_same_inference_networks(data: str) -> None:
    """WG Table 1 has equal rows for them; BinaryMNIST is counted as MNIST is."""
    names = (data, f"{data}-bivcca", f"{data}-mvae-q", data.replace("binary-", ""))
    assert len({parameters(meta_model(f"wu/{name}").inference) for name in names}) == 1


DIGIT = {"image": dense(64, 512, 512, 512, 784), "attributes": dense(64, 512, 512, 512, 10)}
DECODERS = {
    **{f"{data}{model}": DIGIT for data in ("mnist", "binary-mnist") for model in ("", "-jmvae", "-bivcca", "-mvae-q")},
    **{f"{data}-vae": {"image": DIGIT["image"]} for data in ("mnist", "binary-mnist")},
    # A CVAE's decoder is given the label as well, or that it is unknown.
    **{f"{data}-cvae": {"image": dense(64 + 11, 512, 512, 512, 784)} for data in ("mnist", "binary-mnist")},
    "fashion-mnist": {"attributes": DIGIT["attributes"]},
    # As published, but for two logits of an attribute where the code has one.
    "celeba": {"attributes": dense(100, 512, 512, 512, 18 * 2) + 3 * 2 * 512},
    "celeba19": {"attributes": 18 * dense(100, 512, 512, 512, 2)},
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoders_have_three_hidden_layers_as_in_the_published_code(name: str) -> None:
    """Table 1 counts inference networks alone; ImageDecoder and TextDecoder are of the published mnist/model.py."""
    found = {modality: parameters(decoder) for modality, decoder in meta_model(f"wu/{name}").decoders.items()}
    assert found.items() >= DECODERS[name].items()
    assert "mnist" not in name or "fashion" in name or found == DECODERS[name]


@pytest.mark.parametrize(("name", "side"), [("flow/pictures", 32), ("flow/pictures", 64), ("flow/two-objects-cpu", 64)])
def test_presets_with_places_build_models(name: str, side: int) -> None:
    model = meta_model(name, side)
    assert model.latent.shapes == {"z": (4, 8, 8)} and complete(name).model.image_network["name"] == "spatial"
    assert model.has_posterior(("image",)) and not model.has_posterior(("text",))


# Objectives and schedules.


def test_faces_have_their_own_latents_and_likelihood_and_new_combinations_their_own_split_and_schedule() -> None:
    for objective in ("telbo", "jmvae", "bivcca"):
        faces, unseen = (complete(f"vedantam/{objective}-{data}") for data in ("celeba", "mnist-a-compositional"))
        assert (faces.model.latent_size, faces.model.image_likelihood) == (18, "quantised-normal")  # VE Appendix A.4
        assert (unseen.data.split, unseen.training.steps) == ("compositional", 160_000)
        assert faces.objective["name"] == unseen.objective["name"] == objective


@pytest.mark.parametrize("name", [name for name in WU if name.startswith(("transforms", "celeba19"))])
def test_many_modalities_are_trained_as_in_the_published_code(name: str) -> None:
    """Views: divided by six, and every posterior explains all six: less starves the terms of one modality."""
    objective = load_preset(f"wu/{name}")["objective"]
    if name.startswith("celeba19"):
        assert (objective["subsets"], objective["subset_law"], objective["weigh"]) == (1, "sizes", "joint")
        return
    six = objective["modalities"]
    assert objective["mean_of_modalities"] and objective["subsets"] == 0
    assert {alone: {alone, *others} for alone, others in objective["predicts"].items()} == {n: set(six) for n in six}


@pytest.mark.parametrize("name", [name for name in WU if not name.endswith("-cpu")])
def test_schedules_are_those_of_the_paper(name: str) -> None:
    """500 epochs of 60,000 digits with 200 of annealing; 100 of 162,770 faces, or 133,317 pairs, with 20."""
    training, objective = load_preset(f"wu/{name}")["training"], load_preset(f"wu/{name}")["objective"]
    examples = {"celeba": 162_770, "transforms": 162_770, "translation": 133_317}.get(data_of(name), 60_000)
    epochs, annealing = (500, 200) if examples == 60_000 else (100, 20)
    per_epoch = -(-examples // training["batch"])
    assert (training["steps"], objective["kl_warmup_steps"]) == (epochs * per_epoch, annealing * per_epoch)
    assert training["learning_rate"] == (1e-4 if examples == 162_770 else 1e-3)


OURS = ("kl_warmup_steps", "learning_rate", "schedule", "warmup_steps", "gradient_clip")


@pytest.mark.parametrize("name", [n for n in preset_names() if n.endswith("-cpu") or n.startswith(("quick", "cremer"))])
def test_what_no_paper_says_says_where_it_is_from(name: str) -> None:
    lines = [line for line in format_preset_with_origins(name).splitlines() if line.split(" = ")[0] in OURS]
    assert lines
    published = name == "cremer/two-objects"
    assert [line for line in lines if "#" not in line and not (published and line.startswith("schedule"))] == []

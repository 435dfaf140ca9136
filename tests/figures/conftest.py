"""A model and a judge whose every answer is known, with the interface of the real ones; tests get them as ``stubs``."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mmgen.artifacts import parent_record, read_header, write_checkpoint
from mmgen.core.batch import Batch
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.posteriors import Guidance
from tests.figures._reading_models import make_reading_models
from tests.posteriors.stand_in import StandIn, stand_ins
from tests.small_data import write_small

INFO = AttributesDescription(
    name="attributes", names=("digit", "scale"), values=(("0", "1", "2", "3"), ("big", "small"))
)
IMAGE = ImageDescription(name="image", shape=(1, 6, 6), layout="bytes")


class Noisy:
    """A modality whose decoder gives its means; draws differ a little."""

    def typical(self, parameters: Tensor) -> Tensor:
        return parameters

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return parameters + 1e-3 * torch.rand(parameters.shape, generator=generator)


class FlatModel(nn.Module):
    """z = (digit, scale, noise): draws an image whose left half has intensity digit / 4, the right half scale / 2."""

    def __init__(self, conditional: bool = False) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(()))
        self.conditional_on = ("attributes",) if conditional else ()
        self.conditions: list[Batch | None] = []
        self.modalities, self.generates = {"image": Noisy()}, ("image",)

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        assert name == "image"
        self.conditions.append(condition)
        image = torch.zeros(*z.shape[:-1], 1, 6, 6)
        image[..., :3] = (z[..., 0] / 4)[..., None, None, None]
        image[..., 3:] = (z[..., 1] / 2)[..., None, None, None]
        return image


@dataclass
class FlatLoaded:
    """A loaded model: "aggregate" draws what is asked for, "own" always draws a small 3."""

    model: Any = field(default_factory=FlatModel)
    path: str = "flat.safetensors"
    attributes: AttributesDescription | None = INFO
    image: ImageDescription = IMAGE
    text: Any = None
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    guidance: Guidance = field(default_factory=Guidance)
    completes: bool = True
    sharpener: None = None

    @property
    def images(self) -> dict[str, ImageDescription]:
        return {self.image.name: self.image}

    @property
    def observation(self) -> ImageDescription:
        return self.image

    @property
    def observed(self) -> dict[str, ImageDescription]:
        return self.images

    def reads(self, posterior: str) -> tuple[str, ...]:
        return ("attributes",)

    @property
    def posteriors(self) -> dict[str, StandIn]:
        return stand_ins(("prior", "own", "aggregate"), self._draws, fitted="aggregate", reads=("attributes",))

    def _draws(self, posterior: str) -> Callable[[Batch, int, torch.Generator], Tensor]:
        def sampler(batch: Batch, n: int, generator: torch.Generator) -> Tensor:
            codes = batch.values["attributes"].float()
            if posterior == "own":
                codes = torch.tensor([[3.0, 1.0]]).expand_as(codes)
            noise = torch.rand(n, batch.size, 1, generator=generator)
            return torch.cat([codes.expand(n, *codes.shape), noise], -1)

        return sampler


class Reader:
    """A judge that reads FlatModel's images without mistakes."""

    names = INFO.names
    values = INFO.values
    hints, described = (), SimpleNamespace(name="image")
    device = torch.device("cpu")
    accuracy: ClassVar = {"digit": 100.0, "scale": 100.0, "mean": 100.0}

    def predict(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        digit = (images[:, 0, 0, 0] * 4).floor()
        scale = (images[:, 0, 0, 5] * 2).floor()
        return torch.stack([digit, scale], 1).to(torch.uint8)


@pytest.fixture(scope="session")
def stubs() -> SimpleNamespace:
    return SimpleNamespace(
        FlatLoaded=FlatLoaded, FlatModel=FlatModel, Reader=Reader, INFO=INFO,
        train_tiny=train_tiny, fit_tiny=fit_tiny, save_judge=save_judge,
    )  # fmt: skip


HOSTILE = '<script>alert("x")</script>'
"""Stands in settings, commands and names of the files below; pages must show it as text."""


def _dataset(path: Path) -> None:
    """160 images of 16 x 16: parity turns the left half on, magnitude the right half."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (160, 2)).astype(np.uint8)
    images = (generator.random((160, 1, 16, 16)) < 0.1).astype(np.uint8)
    images[..., :8] |= codes[:, 0, None, None, None]
    images[..., 8:] |= codes[:, 1, None, None, None]
    labels, values = {"parity": ["even", "odd"], "magnitude": [HOSTILE, "high"]}, {"image": images, "attributes": codes}
    write_small(path, values, labels, None, (100, 20), "bits", recipe="mnist-a", size=16, remark=HOSTILE)


def train_tiny(
    dataset: Path,
    out: Path,
    objective: dict[str, Any],
    latent_size: int = 2,
    steps: int = 4,
    **networks: dict[str, Any],
) -> None:
    """A model of ``dataset`` after a few steps; ``networks`` are settings of ``model``."""
    from mmgen.artifacts import Dataset
    from mmgen.training.model_run import complete_settings, train_model

    image = {"image_network": {"name": "strided", "channels": [4, 4]}}
    values = {
        "model": {"latent_size": latent_size, "hidden": 8} | image | networks,
        "objective": objective,
        "training": {"steps": steps, "batch": 16, "log_every": 1, "validate_every": 2, "device": "cpu"},
    }
    with Dataset.open(dataset) as data:
        settings = complete_settings(values, data)
    train_model(dataset, settings, out, f"mmgen train {dataset.name} -o {out.name}").run()


def fit_tiny(
    model: Path,
    dataset: Path,
    out: Path,
    target: str,
    given: str,
    steps: int = 2,
    family: dict[str, Any] | None = None,
) -> None:
    """A Gaussian fitted to a model for two steps, or another ``family``."""
    from mmgen.posteriors import complete_fit_settings, fit_aggregate
    from mmgen.training.model_run import load_model

    values = {
        "aggregate": {"target": {"name": target}, "given": given, "family": family or {"name": "gaussian"}},
        "training": {"steps": steps, "batch": 16, "log_every": 1, "device": "cpu"},
    }
    settings = complete_fit_settings(values, load_model(model)[1])
    latents = model.with_name(f"{model.stem}-latents.h5")
    for work in fit_aggregate(model, dataset, settings, out, latents, f"mmgen fit-aggregate {model.name}"):
        work.run()


def save_judge(
    dataset: Path, out: Path, channels: int, info: AttributesDescription, accuracy: dict[str, float], **options: Any
) -> None:
    """An untrained judge of 16 x 16 images with an accuracy that somebody claims."""
    from mmgen.classifier._files import build_classifier, describe_classifier

    judge = build_classifier(
        "small",
        ImageDescription(shape=(channels, 16, 16), layout="bytes"),
        info.names,
        info.values,
        options.pop("told", ()),
    )
    write_checkpoint(
        out, kind="classifier", tensors=judge.network.state_dict(), settings={"classifier": describe_classifier(judge)},
        seed=0, parents=(parent_record(dataset, "dataset", out),), facts={"held_out_accuracy": accuracy, **options},
    )  # fmt: skip


def score(metric: str, value: float, given: int, posterior: str, ids: dict[str, str], protocol: str = "") -> Any:
    """A line as ``mmgen eval`` prints it."""
    line: dict[str, Any] = {"metric": metric, "quantity": metric, "value": value, "stderr": 0.5, "unit": "%"}
    line |= {"better": "higher", "n": 100, "posterior": posterior, "given": given, "protocol": protocol, "ids": ids}
    return line | {"conditions": {"split": "iid"}}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that a project accumulates, tiny and hardly trained: data.h5, judge.safetensors; flat
    (2-D latents, from images) with its aggregates flat-true, flat-aggregate, flat-aggregate-nothing; telbo (3-D); cvae;
    blind (2-D, images alone); and scores.jsonl of flat."""
    folder = tmp_path_factory.mktemp("world")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    data = folder / "data.h5"
    _dataset(data)
    info = AttributesDescription(
        name="attributes", names=("parity", "magnitude"), values=(("even", "odd"), (HOSTILE, "high"))
    )
    accuracy = {"magnitude": 97.5, "mean": 96.25, "parity": 95.0}
    counted = {"parity": 40, "magnitude": 40}
    save_judge(data, folder / "judge.safetensors", 1, info, accuracy, held_out_images=counted)
    tables = {"embedding": 4, "hidden": 8, "decoder_hidden": 8}
    for name, objective, size in (("flat", "elbo", 2), ("telbo", "telbo", 3), ("cvae", "cvae", 2)):
        train_tiny(data, folder / f"{name}.safetensors", {"name": objective}, size, attribute_network=tables)
    train_tiny(data, folder / "blind.safetensors", {"name": "elbo", "modalities": ["image"]})
    for target, given in (("true", "attributes"), ("aggregate", "attributes"), ("aggregate", "nothing")):
        tail = "-nothing" if given == "nothing" else ""
        fit_tiny(folder / "flat.safetensors", data, folder / f"flat-{target}{tail}.safetensors", target, given)
    true = {"aggregate": read_header(folder / "flat-true.safetensors").content_id}
    aggregate = {"aggregate": read_header(folder / "flat-aggregate.safetensors").content_id}
    whole = {"details": {"all_right": 85.0, "all_right_stderr": 1.0}}
    lines = [score("correctness", 91.0, 2, "aggregate", aggregate) | whole]
    lines += [score("correctness", 60.0, 2, "true", true) | whole]
    lines += [score("correctness", 30.0, 2, "prior", true), score("coverage", 80.0, 1, "true", true, protocol="paper")]
    (folder / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    torch.set_num_threads(threads)
    return folder


VIEWS = {"image": (3, 16, 16), "edges": (1, 16, 16), "mask": (1, 8, 8)}


def _write_views(path: Path) -> None:
    """100 squares in colour, their outlines, and their masks at half the size; whether they are large, whether red."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (100, 2)).astype(np.uint8)
    pictures = {name: np.zeros((100, *shape), np.uint8) for name, shape in VIEWS.items()}
    for row, (large, red) in enumerate(codes):
        inside = np.zeros((16, 16), bool)
        left, top = 2 * generator.integers(0, 3, 2)
        inside[top : top + 6 + 4 * large, left : left + 6 + 4 * large] = True
        pictures["image"][row, 0 if red else 2] = np.where(inside, 230, 30)
        inner = inside & np.roll(inside, 1, 0) & np.roll(inside, -1, 0) & np.roll(inside, 1, 1) & np.roll(inside, -1, 1)
        pictures["edges"][row, 0] = 255 * (inside & ~inner)
        pictures["mask"][row, 0] = 255 * inside[::2, ::2]
    labels = {"Large": ["no", "yes"], "Red": ["no", "yes"]}
    write_small(path, {**pictures, "attributes": codes}, labels, parts=(60, 10), recipe="views")


@pytest.fixture(scope="session")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data.h5 and models: all (mvae of everything), single (its images alone), one (main image only)."""
    folder = tmp_path_factory.mktemp("views")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    _write_views(folder / "data.h5")
    everything = [*VIEWS, "attributes"]
    for name, modalities in (("all", everything), ("single", list(VIEWS)), ("one", ["image", "attributes"])):
        objective = {"name": "mvae", "modalities": modalities, "weights": {}, "subsets": int(len(modalities) > 2)}
        networks = {"attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8}}
        train_tiny(folder / "data.h5", folder / f"{name}.safetensors", objective, 3, **networks)
    torch.set_num_threads(threads)
    return folder


@pytest.fixture(scope="session")
def readers(stubs: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models that read or say attributes, free text, both or none."""
    folder = tmp_path_factory.mktemp("read")
    make_reading_models(folder, stubs)
    return folder

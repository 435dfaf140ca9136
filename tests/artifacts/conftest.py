"""Small artifacts of every kind, made by fixtures that are functions, so that property tests can call them often."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.artifacts import (
    PARTS,
    Dataset,
    DatasetWriter,
    parent_record,
    read_checkpoint,
    read_header,
    read_latents,
    read_samples,
    write_checkpoint,
    write_latents,
    write_samples,
)
from mmgen.modalities.attributes import AttributesDescription

INFO = AttributesDescription(name="attributes", names=("digit", "scale"), values=(("0", "1", "2"), ("big", "small")))
WORDS = ("red", "grün", "cube")
N = 30


def make_dataset(
    path: Path, *, step: int = 7, settings: dict[str, Any] | None = None, **options: Any
) -> dict[str, np.ndarray]:
    """A dataset with one modality of each layout, written ``step`` rows at a time; returns what went in."""
    random = np.random.default_rng(0)
    bits = random.integers(0, 2, (N, 1, 3, 5), dtype=np.uint8)
    grey = random.integers(0, 256, (N, 2, 4, 3), dtype=np.uint8)
    codes = np.stack([random.choice([0, 1, 2, 255], N), random.choice([0, 1, 255], N)], 1).astype(np.uint8)
    angle = random.normal(size=N).astype(np.float32)
    source = np.arange(N, dtype=np.int32)
    lengths = random.integers(0, 5, N)
    words = np.where(np.arange(4) < lengths[:, None], random.integers(0, 3, (N, 4)), 3).astype(np.uint16)
    mask = random.integers(0, 3, (N, 3, 5), dtype=np.uint8)
    options = {"seed": 5, "command": "mmgen make-data tiny"} | options
    with DatasetWriter(path, N, settings or {"recipe": "tiny"}, **options) as writer:
        writer.add_image("image", (1, 3, 5), "bits")
        writer.add_image("grey", (2, 4, 3), "bytes")
        writer.add_attributes("attributes", dict(zip(INFO.names, INFO.values, strict=True)))
        writer.add_factor("angle", np.float32, "°", "rotation, clockwise positive")
        writer.add_factor("source", np.int32)
        writer.add_factor("mask", np.uint8, "", "object of each pixel", shape=(3, 5))
        writer.add_text("text", WORDS, 4)
        packed = np.packbits(bits.reshape(N, -1), axis=1)
        for start in range(0, N, step):
            rows = slice(start, start + step)
            writer.write(
                start,
                {"image": packed[rows], "grey": grey[rows], "attributes": codes[rows], "text": words[rows]},
                {"angle": angle[rows], "source": source[rows], "mask": mask[rows]},
            )
        writer.add_splits("other", train=range(5), val=[7], test=[], meaning="a few")
        writer.add_splits("iid", train=range(20), val=range(20, 25), test=range(29, 24, -1))
    return {"image": bits, "grey": grey, "attributes": codes, "angle": angle, "source": source} | {
        "text": words,
        "mask": mask,
    }


def make_checkpoint(
    path: Path, kind: str = "model", dataset: Path | None = None, **options: Any
) -> dict[str, torch.Tensor]:
    """A checkpoint with tensors of several types; returns them."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(3, 4, generator=generator)
    tensors = {
        "net.weight": weight,
        "net.transposed": weight.T,
        "half": weight.to(torch.bfloat16),
        "step": torch.tensor(17),
        "mask": torch.tensor([True, False]),
        "empty": torch.zeros(0, 3),
    }
    parents = [parent_record(dataset, "dataset", path)] if dataset else []
    values = {
        "settings": {"training": {"steps": 10}},
        "seed": 2,
        "facts": {"bound": -1.5},
        "command": "mmgen train tiny.h5",
    }
    write_checkpoint(path, kind=kind, tensors=tensors, parents=parents, **(values | options))
    return tensors


def make_latents(path: Path) -> None:
    random = np.random.default_rng(2)
    write_latents(
        path, mean=random.normal(size=(6, 3)), log_sd=random.normal(size=(6, 3)), rows=np.arange(6) * 2,
        columns={"attributes": np.full((6, 2), 255, np.uint8)}, split="iid/train", settings={"batch": 2}, seed=3,
        command="mmgen fit-aggregate model.safetensors",
    )  # fmt: skip


def make_samples(path: Path) -> None:
    random = np.random.default_rng(3)
    images = random.random((4, 1, 3, 5), dtype=np.float32)
    codes = np.array([[0, 255], [1, 1], [2, 0], [255, 255]], np.uint8)
    write_samples(
        path, images=images, images_sampled=(images > 0.5).astype(np.uint8) * 255, attributes=codes,
        attributes_judged=codes, z=random.normal(size=(4, 2)), info=INFO, settings={"n": 4}, seed=4,
        command="mmgen sample model.safetensors",
    )  # fmt: skip


def _read_dataset(path: Path) -> None:
    with Dataset.open(path) as dataset:
        for name in dataset.images:
            dataset.read_image(name)
            dataset.read_image(name, np.array([dataset.size - 1, 0, 0]))
        for name in dataset.attributes:
            dataset.read_attributes(name)
        for name in dataset.factors:
            dataset.read_factor(name)
        for scheme in dataset.schemes:
            dataset.scheme_meaning(scheme)
            for part in PARTS:
                dataset.split(scheme, part)
        dataset.verify()


MAKERS: dict[str, Callable[[Path], object]] = {
    "dataset": make_dataset, "latents": make_latents, "samples": make_samples, "model": make_checkpoint,
}  # fmt: skip
READERS: dict[str, Callable[[Path], object]] = {
    "dataset": _read_dataset, "latents": read_latents, "samples": read_samples,
    **dict.fromkeys(("model", "aggregate", "sharpener", "classifier", "training-state"), read_checkpoint),
}  # fmt: skip


@pytest.fixture(scope="session")
def dataset_at() -> Callable[..., dict[str, np.ndarray]]:
    return make_dataset


@pytest.fixture(scope="session")
def checkpoint_at() -> Callable[..., dict[str, torch.Tensor]]:
    return make_checkpoint


@pytest.fixture(scope="session")
def make() -> Callable[[str, Path], None]:
    """Makes an artifact of a kind at a path."""

    def make(kind: str, path: Path) -> None:
        MAKERS[kind](path)

    return make


@pytest.fixture(scope="session")
def read_all() -> Callable[[str, Path], None]:
    """Reads everything that is in an artifact of a kind."""

    def read_all(kind: str, path: Path) -> None:
        read_header(path)
        READERS[kind](path)

    return read_all


@pytest.fixture(scope="session")
def info() -> AttributesDescription:
    return INFO


@pytest.fixture(scope="session")
def originals(tmp_path_factory, make) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("originals")
    for kind in MAKERS:
        make(kind, folder / kind)
    return {kind: (folder / kind).read_bytes() for kind in MAKERS}

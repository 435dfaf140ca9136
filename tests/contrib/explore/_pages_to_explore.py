"""Pages to explore for tests: models that draw lively pictures, scenes with captions, and what a page holds."""

import base64
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from mmgen.artifacts import DatasetWriter
from mmgen.contrib.explore.make import Limits, make_explorer
from mmgen.contrib.explore.sprites import STEP, picture_bytes
from mmgen.modalities.attributes import AttributesDescription

HOSTILE = "</script><img src=x onerror=alert(1)>"
SMALL = Limits(number=2, weights=0)
NAMES, WORDS = ("size", "colour", "side"), (("big", "small"), ("red", "blue"), ("left", "right"))


def page_of(paths: list[Path], out: Path, **options: Any) -> tuple[str, dict[str, Any]]:
    """The page's source, and the data in it."""
    source = make_explorer(paths, out, **options).run().read_text(encoding="utf-8")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', source, re.S)
    return source, json.loads(data)


def picture(sheets: dict[str, Any], number: int) -> np.ndarray:
    """One picture of a page, uint8 [H, W, 3], as the page's script finds it."""
    width, height = sheets["size"]
    encoded = sheets["images"][number // sheets["each"]].partition(",")[2]
    sheet = np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))).convert("RGB"))
    place = number % sheets["each"]
    left, top = place % sheets["columns"] * width, place // sheets["columns"] * height
    return sheet[top : top + height, left : left + width]


def as_on_the_page(images: np.ndarray) -> np.ndarray:
    """Means [n, 1, H, W] in the page's 16 greys, uint8 [n, H, W]."""
    return (np.rint(picture_bytes(images)[..., 0] / STEP) * STEP).astype(np.uint8)


@pytest.fixture(scope="module")
def lively(world: Path, tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with flat and its fits as in the world, trained until pictures of different z differ."""
    folder, data = tmp_path_factory.mktemp("lively"), world / "data.h5"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    tables = {"embedding": 4, "hidden": 8, "decoder_hidden": 8}
    stubs.train_tiny(data, folder / "flat.safetensors", {"name": "elbo"}, 2, steps=60, attribute_network=tables)
    for target, given, name in (
        ("true", "attributes", "true"),
        ("aggregate", "attributes", "aggregate"),
        ("aggregate", "nothing", "aggregate-nothing"),
    ):
        out = folder / f"flat-{name}.safetensors"
        stubs.fit_tiny(folder / "flat.safetensors", data, out, target, given, steps=30)
    torch.set_num_threads(threads)
    return folder


def _scenes(path: Path, spelled: bool) -> None:
    """60 pictures with captions of three words, which spell attributes, or free ones, the last of which is hostile."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 2, (60, 3)).astype(np.uint8)
    images = generator.integers(0, 255, (60, 1, 16, 16)).astype(np.uint8)
    vocabulary = [word for words in WORDS for word in words]
    vocabulary = vocabulary if spelled else [*vocabulary[:-1], HOSTILE]
    with DatasetWriter(
        path, size=60, settings={"recipe": "scenes"}, seed=0, command="mmgen make-data scenes"
    ) as writer:
        writer.add_image("image", shape=(1, 16, 16), layout="bytes")
        rows: dict[str, np.ndarray] = {
            "image": images,
            "text": (codes + np.array([0, 2, 4], np.uint8)).astype(np.uint16),
        }
        if spelled:
            writer.add_attributes("attributes", dict(zip(NAMES, map(list, WORDS), strict=True)))
            rows["attributes"] = codes
        writer.add_text("text", vocabulary, 3, list(NAMES) if spelled else [])
        writer.write(0, rows)
        writer.add_splits("iid", train=np.arange(40), val=np.arange(40, 50), test=np.arange(50, 60))


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory, stubs: SimpleNamespace) -> Path:
    """A folder with spelled, a model of captions in slots, with judge and fit; and free, one of free captions."""
    folder = tmp_path_factory.mktemp("scenes")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name in ("spelled", "free"):
        _scenes(folder / f"{name}.h5", name == "spelled")
        objective = {"name": "elbo", "modalities": ["image", "text"], "given": ["image"]}
        words = {"embedding": 4, "hidden": 8, "head": 8}
        stubs.train_tiny(folder / f"{name}.h5", folder / f"{name}.safetensors", objective, text_network=words)
        stubs.fit_tiny(
            folder / f"{name}.safetensors",
            folder / f"{name}.h5",
            folder / f"{name}-fit.safetensors",
            "aggregate",
            "text",
        )
    info = AttributesDescription(name="attributes", names=NAMES, values=WORDS)
    stubs.save_judge(folder / "spelled.h5", folder / "judge.safetensors", 1, info, {"size": 90.0}, told=("side",))
    torch.set_num_threads(threads)
    return folder

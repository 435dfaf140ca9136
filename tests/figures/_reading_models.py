"""Data with attributes and free text, models that read or say one of them, both or none, and what was fitted."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from mmgen.core.errors import UsageError
from tests.small_data import write_small

__all__ = ["make_reading_models", "refusal"]

WORDS = ("red", "blue", "big", "small", "one")  # the last is no attribute's value


def make_reading_models(folder: Path, stubs: SimpleNamespace) -> None:
    """data.h5, and files named after their objective or, behind a dash, after what was fitted."""
    data, generator = folder / "data.h5", np.random.default_rng(0)
    codes = np.stack([np.arange(60) % 2, np.arange(60) // 2 % 2], 1).astype(np.uint8)
    tokens = np.stack([2 + codes[:, 1], codes[:, 0], np.full(60, len(WORDS))], 1).astype(np.uint16)
    pictures, known = generator.integers(0, 2, (60, 1, 16, 16), np.uint8), {"colour": WORDS[:2], "size": WORDS[2:4]}
    write_small(data, {"image": pictures, "attributes": codes, "text": tokens}, known, (WORDS, ()), (40, 10), "bits")
    labels = {"attribute_network": {"embedding": 4, "hidden": 8, "decoder_hidden": 8}}
    words = {"text_network": {"embedding": 4, "hidden": 8, "head": 8}}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name, objective, networks in (
        ("labels", {"name": "mvae", "modalities": ["image", "attributes"], "weights": {}, "subsets": 0}, labels),
        ("elbo", {"name": "elbo", "modalities": ["image", "attributes"]}, labels),
        ("both", {"name": "mvae", "modalities": ["image", "text", "attributes"], "weights": {}}, words | labels),
        ("jmvae", {"name": "jmvae", "description": "text"}, words),
        ("cvae", {"name": "cvae"}, labels),
        ("bare", {"name": "elbo", "modalities": ["image"]}, {}),
    ):
        stubs.train_tiny(data, folder / f"{name}.safetensors", objective, 2, **networks)
    for target, given in (("aggregate", "attributes"), ("aggregate", "text"), ("aggregate", "nothing")):
        stubs.fit_tiny(folder / "elbo.safetensors", data, folder / f"elbo-{given}.safetensors", target, given)
    stubs.fit_tiny(folder / "elbo.safetensors", data, folder / "elbo-true.safetensors", "true", "attributes")
    torch.set_num_threads(threads)


def refusal(way: Callable[[], Any]) -> str:
    """Why it is refused; "" if it is not."""
    try:
        way()
    except UsageError as error:
        return str(error)
    return ""

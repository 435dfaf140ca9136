"""Latents: the encodings of a dataset's images by one model, computed once and fitted to many times."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts.bundle import read_bundle, write_bundle
from mmgen.artifacts.header import Header, Parent
from mmgen.errors import ArtifactError
from mmgen.parsing import Malformed, parse_json

__all__ = ["Latents", "read_latents", "write_latents"]


@dataclass(frozen=True)
class Latents:
    """Gaussian posteriors q(z | image) of M dataset rows.

    Of a model with several layers of z they lie side by side, in the order of ``layers``. Of every layer but the last,
    the top, ``mean`` is one draw, z1 ~ q(z1 | image), z2 ~ q(z2 | z1) ..., and ``log_sd`` is -7 (sd 0.001, next to
    nothing); of the top they are those of its Gaussian given the layers drawn below. So one row is a draw of
    q(z1 | image) with q(z2 | z1) beside it, and many rows together are the aggregate posterior of all layers.

    Attributes:
        header: Header of the file.
        mean: float32 [M, D], D of all layers together.
        log_sd: float32 [M, D], natural logarithm of the standard deviation.
        rows: int64 [M], rows of the dataset that were encoded.
        attributes: uint8 [M, A], attribute codes of those rows; 255 unknown.
        split: Which rows these are, as "scheme/part" or "part".
        text: uint16 [M, T], word codes of those rows, V for "no word"; None where the dataset holds no text.
        layers: Size of each layer of z by name, the one next to the data first; {"z": D} of a model with one.
    """

    header: Header
    mean: np.ndarray
    log_sd: np.ndarray
    rows: np.ndarray
    attributes: np.ndarray
    split: str
    text: np.ndarray | None = None
    layers: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Files that name no layers are of one, or from before layers were named.
        object.__setattr__(self, "layers", dict(self.layers) or {"z": self.mean.shape[-1]})


def write_latents(
    path: Path,
    *,
    mean: np.ndarray,
    log_sd: np.ndarray,
    rows: np.ndarray,
    attributes: np.ndarray,
    text: np.ndarray | None = None,
    layers: Mapping[str, int] | None = None,
    split: str,
    settings: Mapping[str, Any],
    seed: int,
    parents: Iterable[Parent] = (),
    facts: Mapping[str, Any] | None = None,
    command: str = "",
) -> Header:
    """Write encodings, whole or not at all; arguments as in :class:`Latents`.

    Returns:
        The header as it was written.

    Raises:
        ArtifactError: The file system refuses.
    """
    mean, log_sd = np.asarray(mean, np.float32), np.asarray(log_sd, np.float32)
    rows, attributes = np.asarray(rows, np.int64), np.asarray(attributes)
    if mean.ndim != 2 or log_sd.shape != mean.shape or rows.shape != mean.shape[:1]:
        raise ValueError(f"mean {mean.shape}, log_sd {log_sd.shape} and rows {rows.shape} do not fit together")
    if attributes.dtype != np.uint8 or attributes.ndim != 2 or len(attributes) != len(mean):
        raise ValueError(f"attributes are {attributes.dtype} {attributes.shape}, expected uint8 [{len(mean)}, A]")
    arrays = {"mean": mean, "log_sd": log_sd, "rows": rows, "attributes": attributes}
    if text is not None:
        if text.dtype != np.uint16 or text.ndim != 2 or len(text) != len(mean):
            raise ValueError(f"text is {text.dtype} {text.shape}, expected uint16 [{len(mean)}, T]")
        arrays["text"] = text
    if layers and (sum(layers.values()) != mean.shape[1] or min(layers.values()) < 1):
        raise ValueError(f"layers are {dict(layers)}, expected sizes whose sum is {mean.shape[1]}")
    texts = {"split": split}
    if layers and len(layers) > 1:  # one layer is what a file without names has
        texts["layers"] = json.dumps(dict(layers))
    return write_bundle(
        path, "latents", arrays, texts,
        settings=settings, seed=seed, parents=parents, facts=facts, command=command,
    )  # fmt: skip


def read_latents(path: Path) -> Latents:
    """Read encodings, verified against the content id.

    Raises:
        ArtifactError: It is no readable latents file.
    """
    header, arrays, texts = read_bundle(
        path, "latents",
        {
            "mean": ("float32", 2),
            "log_sd": ("float32", 2),
            "rows": ("int64", 1),
            "attributes": ("uint8", 2),
            "text": ("uint16", 2),
        },
        ("split", "layers"),
        ("text", "layers"),
    )  # fmt: skip
    layers = _layers(texts.get("layers", ""))
    latents = Latents(header=header, split=texts["split"], layers=layers or {}, **arrays)
    same_rows = len({len(array) for array in arrays.values()}) == 1
    fits = layers is not None and sum(latents.layers.values()) == latents.mean.shape[1]
    if not same_rows or not fits or latents.log_sd.shape != latents.mean.shape or (latents.rows < 0).any():
        raise ArtifactError(f"{path}: its arrays do not fit together; make it again with mmgen fit-aggregate")
    return latents


def _layers(text: str) -> dict[str, int] | None:
    """Sizes of layers by name from the file's text; {} of a file that names none, None where the text says no such."""
    if not text:
        return {}
    try:
        found = parse_json(text)
    except Malformed:
        return None
    if not isinstance(found, dict) or not all(type(size) is int and size > 0 for size in found.values()):
        return None
    return found

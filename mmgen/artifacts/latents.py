"""Latents: encodings of a dataset by one model, computed once and fitted to many times."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts.bundle import read_bundle, write_bundle
from mmgen.artifacts.header import Header, Parent
from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import MalformedError, parse_json
from mmgen.settings.arguments import check_arguments

__all__ = ["COLUMNS", "Latents", "read_latents", "write_latents"]


@dataclass(frozen=True)
class Latents:
    """Gaussian posteriors q(z | example) of M dataset rows, as stored in a file.

    Of a model with several layers of z they lie side by side, in the order of ``layers``. Of every layer but the last,
    the top, ``mean`` is one draw, z1 ~ q(z1 | image), z2 ~ q(z2 | z1) ..., and ``log_sd`` is -7 (sd 0.001, next to
    nothing); of the top they are those of its Gaussian given the layers drawn below. So one row is a draw of
    q(z1 | image) with q(z2 | z1) beside it, and many rows together are the aggregate posterior of all layers.

    Attributes:
        header: Header of the file.
        mean: float32 [M, D], D of all layers together.
        log_sd: float32 [M, D], natural logarithm of the standard deviation.
        rows: int64 [M], rows of the dataset that were encoded.
        columns: Descriptions of those rows as stored, by kind: "attributes" uint8 [M, A], 255 unknown; "text"
            uint16 [M, T], V for "no word", or [M, K T] of K captions an example. A kind that the dataset does not hold
            is not there. Descriptions that the model's training did not show are unknown, or without a word.
        split: Which rows these are, as "scheme/part" or "part".
        layers: Size of each layer of z by name, the one next to the data first; {"z": D} of a model with one.
    """

    header: Header
    mean: np.ndarray
    log_sd: np.ndarray
    rows: np.ndarray
    columns: Mapping[str, np.ndarray]
    split: str
    layers: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", dict(self.layers) or {"z": self.mean.shape[-1]})


COLUMNS = {"attributes": ("uint8", 2), "text": ("uint16", 2)}
"""Types and axes of the columns; every file has attributes, none of them where the dataset holds none."""


def write_latents(
    path: Path,
    *,
    mean: np.ndarray,
    log_sd: np.ndarray,
    rows: np.ndarray,
    columns: Mapping[str, np.ndarray],
    layers: Mapping[str, int] | None = None,
    split: str,
    settings: Mapping[str, Any],
    seed: int,
    parents: Iterable[Parent] = (),
    facts: Mapping[str, Any] | None = None,
    command: str = "",
) -> Header:
    """Write posteriors of examples to a file; a failed write leaves no file. Arguments are as in :class:`Latents`.

    Returns:
        The header as it was written.

    Raises:
        ArtifactError: The file system refuses.
    """
    mean, log_sd = np.asarray(mean, np.float32), np.asarray(log_sd, np.float32)
    rows = np.asarray(rows, np.int64)
    if mean.ndim != 2 or log_sd.shape != mean.shape or rows.shape != mean.shape[:1]:
        raise ValueError(
            f"got mean {mean.shape}, log_sd {log_sd.shape} and rows {rows.shape}, expected shapes (M, D), (M, D), (M,)"
        )
    columns = {"attributes": np.zeros((len(mean), 0), np.uint8), **columns}
    for name, column in columns.items():
        dtype, axes = COLUMNS[name]
        if column.dtype != dtype or column.ndim != axes or len(column) != len(mean):
            raise ValueError(
                f"column {name} has {column.dtype} {list(column.shape)}, expected {dtype} [{len(mean)}, ...]"
            )
    arrays = {"mean": mean, "log_sd": log_sd, "rows": rows, **columns}
    if layers and (sum(layers.values()) != mean.shape[1] or min(layers.values()) < 1):
        raise ValueError(f"layers are {dict(layers)}, expected sizes whose sum is {mean.shape[1]}")
    texts = {"split": split}
    if layers and len(layers) > 1:  # one layer is what a file without names has
        texts["layers"] = json.dumps(dict(layers))
    return write_bundle(
        path, "latents", arrays, texts,
        settings=settings, seed=seed, parents=parents, facts=facts, command=command,
    )  # fmt: skip


@check_arguments
def read_latents(path: str | Path) -> Latents:
    """Read a file of posteriors of examples, verified against its content id.

    Raises:
        ArtifactError: It is no readable latents file.
    """
    path = Path(path)
    header, arrays, texts = read_bundle(
        path, "latents",
        {"mean": ("float32", 2), "log_sd": ("float32", 2), "rows": ("int64", 1), **COLUMNS},
        ("split", "layers"),
        ("text", "layers"),
    )  # fmt: skip
    columns = {name: arrays[name] for name in COLUMNS if name in arrays and arrays[name].shape[1]}
    layers = _parse_layers(texts.get("layers", ""))
    found = arrays["mean"], arrays["log_sd"], arrays["rows"]
    latents = Latents(header, *found, columns, texts["split"], layers or {})
    same_rows = len({len(array) for array in arrays.values()}) == 1
    fits = layers is not None and sum(latents.layers.values()) == latents.mean.shape[1]
    if not same_rows or not fits or latents.log_sd.shape != latents.mean.shape or (latents.rows < 0).any():
        raise ArtifactError(f"{path}: its arrays do not fit together; make it again with mmgen fit-aggregate")
    return latents


def _parse_layers(text: str) -> dict[str, int] | None:
    """Parse sizes of latent layers by name from JSON text; {} without layers, None for malformed text."""
    if not text:
        return {}
    try:
        found = parse_json(text)
    except MalformedError:
        return None
    if not isinstance(found, dict) or not all(type(size) is int and size > 0 for size in found.values()):
        return None
    return found

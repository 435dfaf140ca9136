"""Latents: the encodings of a dataset's images by one model, computed once and fitted to many times."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts.bundle import read_bundle, write_bundle
from mmgen.artifacts.header import Header, Parent
from mmgen.errors import ArtifactError

__all__ = ["COLUMNS", "Latents", "read_latents", "write_latents"]


@dataclass(frozen=True)
class Latents:
    """Gaussian posteriors q(z | image) of M dataset rows.

    Attributes:
        header: Header of the file.
        mean: float32 [M, D].
        log_sd: float32 [M, D], natural logarithm of the standard deviation.
        rows: int64 [M], rows of the dataset that were encoded.
        columns: What describes those rows, as it is stored, by kind: "attributes" uint8 [M, A], 255 unknown; "text"
            uint16 [M, T], V for "no word". A kind that the dataset does not hold is not there.
        split: Which rows these are, as "scheme/part" or "part".
    """

    header: Header
    mean: np.ndarray
    log_sd: np.ndarray
    rows: np.ndarray
    columns: Mapping[str, np.ndarray]
    split: str


COLUMNS = {"attributes": ("uint8", 2), "text": ("uint16", 2)}
"""Types and axes of the columns; every file has attributes, none of them where the dataset holds none."""


def write_latents(
    path: Path,
    *,
    mean: np.ndarray,
    log_sd: np.ndarray,
    rows: np.ndarray,
    columns: Mapping[str, np.ndarray],
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
    rows = np.asarray(rows, np.int64)
    if mean.ndim != 2 or log_sd.shape != mean.shape or rows.shape != mean.shape[:1]:
        raise ValueError(f"mean {mean.shape}, log_sd {log_sd.shape} and rows {rows.shape} do not fit together")
    columns = {"attributes": np.zeros((len(mean), 0), np.uint8), **columns}
    for name, column in columns.items():
        dtype, axes = COLUMNS[name]
        if column.dtype != dtype or column.ndim != axes or len(column) != len(mean):
            raise ValueError(f"{name} are {column.dtype} {column.shape}, expected {dtype} [{len(mean)}, ...]")
    arrays = {"mean": mean, "log_sd": log_sd, "rows": rows, **columns}
    return write_bundle(
        path, "latents", arrays, {"split": split},
        settings=settings, seed=seed, parents=parents, facts=facts, command=command,
    )  # fmt: skip


def read_latents(path: Path) -> Latents:
    """Read encodings, verified against the content id.

    Raises:
        ArtifactError: It is no readable latents file.
    """
    header, arrays, texts = read_bundle(
        path, "latents",
        {"mean": ("float32", 2), "log_sd": ("float32", 2), "rows": ("int64", 1), **COLUMNS},
        ("split",),
        ("text",),
    )  # fmt: skip
    columns = {name: arrays[name] for name in COLUMNS if name in arrays and arrays[name].shape[1]}
    latents = Latents(header, arrays["mean"], arrays["log_sd"], arrays["rows"], columns, texts["split"])
    same_rows = len({len(array) for array in arrays.values()}) == 1
    if not same_rows or latents.log_sd.shape != latents.mean.shape or (latents.rows < 0).any():
        raise ArtifactError(f"{path}: its arrays do not fit together; make it again with mmgen fit-aggregate")
    return latents

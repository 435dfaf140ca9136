"""Latents: encodings of a dataset by one model, computed once and fitted to many times."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts.bundle import Bundle
from mmgen.artifacts.header import Header
from mmgen.core.parsing import MalformedError, parse_json
from mmgen.settings.arguments import check_arguments


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


COLUMNS = ("attributes", "text")
"""Names of the columns; every file has attributes, none of them where the dataset holds none."""
_FORM = Bundle(
    "latents",
    {
        "mean": (("float32",), 2), "log_sd": (("float32",), 2), "rows": (("int64",), 1), "attributes": (("uint8",), 2),
        "text": (("uint16",), 2),
    },
    ("split", "layers"),
    frozenset(["text", "layers"]),
)  # fmt: skip


def write_latents(
    path: Path,
    *,
    mean: np.ndarray,
    log_sd: np.ndarray,
    rows: np.ndarray,
    columns: Mapping[str, np.ndarray],
    layers: Mapping[str, int] | None = None,
    split: str,
    **recorded: Any,
) -> Header:
    """Write posteriors of examples to a file; a failed write leaves no file. Arguments are as in :class:`Latents`.

    ``recorded`` are ``settings``, ``seed``, ``parents``, ``facts`` and ``command`` of the header.

    Returns:
        The header as it was written.

    Raises:
        ValueError: Shapes or types do not fit together.
        ArtifactError: The file system refuses.
    """
    sizes = dict(layers or {"z": mean.shape[1]})
    if log_sd.shape != mean.shape or sum(sizes.values()) != mean.shape[1] or min(sizes.values()) < 1:
        raise ValueError(f"got mean {mean.shape}, log_sd {log_sd.shape} and layers {sizes}, which do not fit together")
    columns = {"attributes": np.zeros((len(mean), 0), np.uint8), **columns}
    texts = {"split": split}
    if len(sizes) > 1:  # one layer is what a file without names has
        texts["layers"] = json.dumps(sizes)
    return _FORM.write(path, {"mean": mean, "log_sd": log_sd, "rows": rows, **columns}, texts, **recorded)


@check_arguments
def read_latents(path: str | Path) -> Latents:
    """Read a file of posteriors of examples, verified against its content id.

    Raises:
        ArtifactError: It is no readable latents file.
    """
    path = Path(path)
    header, arrays, texts = _FORM.read(path)
    mean, log_sd, rows = arrays["mean"], arrays["log_sd"], arrays["rows"]
    layers = _parse_layers(texts["layers"]) if "layers" in texts else {"z": mean.shape[1]}
    _FORM.require(
        path, sum(layers.values()) == mean.shape[1] and log_sd.shape == mean.shape and bool((rows >= 0).all())
    )
    columns = {name: arrays[name] for name in COLUMNS if name in arrays and arrays[name].shape[1]}
    return Latents(header, mean, log_sd, rows, columns, texts["split"], layers)


def _parse_layers(text: str) -> dict[str, int]:
    """Parse sizes of latent layers by name from JSON text; {} for anything else."""
    try:
        found = parse_json(text)
    except MalformedError:
        return {}
    are_sizes = isinstance(found, dict) and all(type(size) is int and size > 0 for size in found.values())
    return found if are_sizes else {}

"""Samples: images drawn from a model for given descriptions, with the z they were decoded from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts.bundle import read_bundle, write_bundle
from mmgen.artifacts.header import Header, Parent
from mmgen.artifacts.modality_info import AttributesInfo, attributes_info, names_json
from mmgen.errors import ArtifactError

__all__ = ["Samples", "read_samples", "write_samples"]


@dataclass(frozen=True)
class Samples:
    """n images that a model drew.

    Attributes:
        header: Header of the file.
        images: float32 [n, C, H, W] in [0, 1], the mean of p(image | z).
        images_sampled: uint8 [n, C, H, W], 0 to 255, a draw from p(image | z); None if there was none.
        attributes: uint8 [n, A], what was asked for; 255 where nothing was asked.
        attributes_judged: uint8 [n, A], what the judge saw; None without a judge.
        z: float32 [n, D].
        info: Names of the attributes and their values; None if they were not recorded.
    """

    header: Header
    images: np.ndarray
    images_sampled: np.ndarray | None
    attributes: np.ndarray
    attributes_judged: np.ndarray | None
    z: np.ndarray
    info: AttributesInfo | None


_ARRAYS = {
    "images": ("float32", 4), "images_sampled": ("uint8", 4), "attributes": ("uint8", 2),
    "attributes_judged": ("uint8", 2), "z": ("float32", 2),
}  # fmt: skip
_OPTIONAL = ("images_sampled", "attributes_judged")


def write_samples(
    path: Path,
    *,
    images: np.ndarray,
    attributes: np.ndarray,
    z: np.ndarray,
    settings: Mapping[str, Any],
    seed: int,
    images_sampled: np.ndarray | None = None,
    attributes_judged: np.ndarray | None = None,
    info: AttributesInfo | None = None,
    parents: Iterable[Parent] = (),
    facts: Mapping[str, Any] | None = None,
    command: str = "",
) -> Header:
    """Write samples, whole or not at all; arguments as in :class:`Samples`.

    Returns:
        The header as it was written.

    Raises:
        ArtifactError: The file system refuses.
    """
    given = {
        "images": images, "images_sampled": images_sampled, "attributes": attributes,
        "attributes_judged": attributes_judged, "z": z,
    }  # fmt: skip
    arrays = {}
    for name, values in given.items():
        if values is None:
            continue
        dtype, axes = _ARRAYS[name]
        values = np.asarray(values)
        if values.ndim != axes or not np.can_cast(values.dtype, dtype, "same_kind") or len(values) != len(images):
            raise ValueError(
                f"{name} are {values.dtype} {values.shape}, expected {dtype} with {axes} axes, all as long"
            )
        arrays[name] = values.astype(dtype, copy=False)
    names, vocabularies = names_json(info) if info is not None else ("", "")
    texts = {"name": info.name if info is not None else "", "names": names, "values": vocabularies}
    return write_bundle(
        path, "samples", arrays, texts, settings=settings, seed=seed, parents=parents, facts=facts, command=command
    )


def read_samples(path: Path) -> Samples:
    """Read samples, verified against the content id.

    Raises:
        ArtifactError: It is no readable samples file.
    """
    header, arrays, texts = read_bundle(path, "samples", _ARRAYS, ("name", "names", "values"), _OPTIONAL)
    info = attributes_info(texts["name"], texts["names"], texts["values"], str(path)) if texts["names"] else None
    judged, sampled = arrays.get("attributes_judged"), arrays.get("images_sampled")
    samples = Samples(header, arrays["images"], sampled, arrays["attributes"], judged, arrays["z"], info)
    fits = (
        len({len(array) for array in arrays.values()}) == 1
        and (sampled is None or sampled.shape == samples.images.shape)
        and (judged is None or judged.shape == samples.attributes.shape)
        and (info is None or samples.attributes.shape[1] == len(info.names))
    )
    if not fits or (
        info is not None and not all(info.valid(codes) for codes in (samples.attributes, judged) if codes is not None)
    ):
        raise ArtifactError(f"{path}: its arrays do not fit together; make it again with mmgen sample")
    return samples

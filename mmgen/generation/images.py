"""Reading of images from pictures, samples files and datasets, float32 in [0, 1]."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.artifacts import Dataset, require_kind
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.seeding import numpy_generator

__all__ = ["images_of_dataset", "images_of_file", "read_pictures", "rows_to_show"]

_FILE_SUFFIXES = (".h5", ".hdf5")


def images_of_dataset(path: Path, rows: Sequence[int], modality: str = "") -> tuple[np.ndarray, list[str]]:
    """Read images float32 [n, C, H, W] in [0, 1] of rows of a dataset, and their names.

    Args:
        path: The dataset.
        rows: Which rows.
        modality: Which images, where it has several; the modality "image", else the first, where it has no such.

    Raises:
        UsageError: A row that the dataset does not have, or a dataset without images.
    """
    with Dataset.open(path) as data:
        found = data.observed
        if not found:
            raise UsageError(f"{path} holds words alone, expected images; choose a dataset with images")
        info = found.get(modality) or found.get("image") or next(iter(found.values()))
        images = data.read_values(info.name, np.asarray(rows, np.int64))
    return images, [f"{path.name} row {row}" for row in rows]


def images_of_file(
    path: Path,
    shape: Sequence[int],
    rows: Sequence[int] = (),
    modality: str = "",
    settings: Mapping[str, Any] | None = None,
) -> tuple[np.ndarray, list[str], str]:
    """Read images from a picture, a samples file or rows of a dataset file.

    Args:
        path: A picture (see :data:`mmgen.core.pictures.FORMATS`), or .h5.
        shape: (C, H, W) that the model expects.
        rows: Rows of a dataset or of samples; without any all samples, or the first 16 of a dataset.
        modality: Which images of a file that has several.
        settings: Those of the model's dataset, which say how its pictures were brought to their size, as a picture will
            be; where they say nothing the middle of the picture is taken.

    Returns:
        float32 [n, C, H, W] in [0, 1], what to call each, and what was done to a picture of another size or kind, "" if
        nothing was.

    Raises:
        ArtifactError: It cannot be read as any of these.
        UsageError: Images of another size in an HDF5 file.
    """
    notice = ""
    if path.suffix.lower() in _FILE_SUFFIXES:
        if require_kind(path, "samples", "dataset").kind == "dataset":
            images, names = images_of_dataset(path, list(rows) or list(range(16)), modality)
        else:
            images, names = _images_of_samples(path, rows, modality)
    else:
        picture, notice = _picture(path, shape, settings or {})
        images, names = picture[None], [path.name]
    if tuple(images.shape[1:]) != tuple(shape):
        raise _wrong_size(path, images.shape[1:], shape)
    return images, names, notice


def _images_of_samples(path: Path, rows: Sequence[int], modality: str) -> tuple[np.ndarray, list[str]]:
    from mmgen.artifacts.samples import read_samples

    samples = read_samples(path)
    # A sampled image is what the decoder's distribution means by an image; the mean is a blur between several.
    means, sampled = samples.further.get(modality, (samples.images, samples.images_sampled))
    images = means if sampled is None else sampled
    images = images.astype(np.float32) / 255 if images.dtype == np.uint8 else images
    chosen = list(rows) or list(range(len(images)))
    if min(chosen) < 0 or max(chosen) >= len(images):
        raise UsageError(f"{path} has samples 0 to {len(images) - 1}, got {max(chosen)}; choose one that it has")
    return images[chosen], [f"{path.name} sample {row}" for row in chosen]


def _picture(path: Path, shape: Sequence[int], settings: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    """Read a picture in the size of the dataset, float32 [C, H, W], and a notice about changes."""
    from mmgen.core.foreign import CannotReadError, read_file
    from mmgen.core.pictures import MOST_BYTES, Fitting, fit_picture

    fitting = Fitting.for_shape(shape, settings)
    try:
        fitted = fit_picture(read_file(path, MOST_BYTES), fitting)
    except CannotReadError as error:
        raise ArtifactError(
            f"cannot read the picture {path}: {error}; name a picture, or an HDF5 file (.h5) of images"
        ) from None
    done = [trait for trait in fitted.traits if trait != "grey"]
    if fitted.size != (fitting.width, fitting.height):
        how = "as the dataset was made" if "fit" in settings else "the dataset does not say how its own were resized"
        done.append(
            f"{fitted.size[0]} x {fitted.size[1]} pixels became {fitting.width} x {fitting.height} by "
            f"'{fitting.fit}', {how}"
        )
    return fitted.pixels.astype(np.float32) / 255, f"{path.name}: {', '.join(done)}" if done else ""


def _wrong_size(path: Path, got: Sequence[int], expected: Sequence[int]) -> UsageError:
    sizes = ["x".join(map(str, shape)) for shape in (got, expected)]
    return UsageError(f"{path} has images of {sizes[0]} (channels x height x width), expected {sizes[1]}; resize them")


def read_pictures(data: Dataset, rows: np.ndarray, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return images float32 [n, C, H, W] in [0, 1] of rows of an open dataset by modality, by default of all.

    The modality "image" comes first, the others in the file's order.
    """
    chosen = list(names) or sorted(data.images, key=lambda name: name != "image")
    return {name: data.read_values(name, rows) for name in chosen}


def rows_to_show(data: Dataset, scheme: str, count: int, seed: int) -> np.ndarray:
    """Return random rows of the test part, increasing."""
    every = data.split(scheme, "test")
    return np.sort(every[numpy_generator(seed, "examples", "test").permutation(len(every))[:count]])

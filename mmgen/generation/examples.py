"""Examples of a dataset: their rows, pictures, attributes and text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmgen.artifacts import Dataset, require_kind
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.core.seeding import numpy_generator

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel


@dataclass(frozen=True)
class Examples:
    """Examples of a dataset with their pictures, attributes and text.

    Attributes:
        rows: Rows in the dataset, int [n].
        images: Values of the main modality, such as pictures float32 [n, C, H, W] in [0, 1].
        tokens: Word codes uint16 [n, T]; None for a model without text.
        codes: Attribute codes uint8 [n, A]; None for a model without attributes.
    """

    rows: np.ndarray
    images: np.ndarray
    tokens: np.ndarray | None
    codes: np.ndarray | None

    def first(self, count: int) -> "Examples":
        """Return the first ``count`` examples."""
        tokens, codes = (None if values is None else values[:count] for values in (self.tokens, self.codes))
        return Examples(self.rows[:count], self.images[:count], tokens, codes)


def read_examples(loaded: "TrainedModel", data: Dataset, rows: np.ndarray) -> Examples:
    """Read examples from ``rows`` of a dataset: the model's main modality, attributes and text."""
    main, info, text = loaded.observation, loaded.attributes, loaded.text
    assert main is not None
    return Examples(
        rows,
        data.read_values(main.name, rows),
        data.read_text(text.name, rows) if text is not None else None,
        data.read_attributes(info.name, rows) if info is not None else None,
    )


def random_examples(loaded: "TrainedModel", dataset: Path, split: str, count: int, seed: int) -> Examples:
    """Read ``count`` random examples from a split of a dataset: "train", "val" or "test"."""
    with Dataset.open(dataset) as data:
        every = data.split(loaded.settings.data.split, split)
        chosen = numpy_generator(seed, "examples", split).permutation(len(every))[:count]
        return read_examples(loaded, data, np.sort(every[chosen]))


_FILE_SUFFIXES = (".h5", ".hdf5")


def read_dataset_images(path: Path, rows: Sequence[int], modality: str = "") -> tuple[np.ndarray, list[str]]:
    """Read images float32 [n, C, H, W] in [0, 1] from rows of a dataset; return them with a name for each.

    Args:
        path: The dataset.
        rows: Positions in the dataset.
        modality: The image modality; if the dataset lacks it "image", else the first.

    Raises:
        UsageError: The dataset lacks a row, or has no images.
    """
    with Dataset.open(path) as data:
        found = data.observed
        if not found:
            raise UsageError(f"{path} has only words, expected images; choose a dataset with images")
        info = found.get(modality) or found.get("image") or next(iter(found.values()))
        images = data.read_values(info.name, np.asarray(rows, np.int64))
    return images, [f"{path.name} row {row}" for row in rows]


def read_file_images(
    path: Path,
    shape: Sequence[int],
    rows: Sequence[int] = (),
    modality: str = "",
    settings: Mapping[str, Any] | None = None,
) -> tuple[np.ndarray, list[str], str]:
    """Read images from a picture file, or from ``rows`` of a samples file or dataset.

    Args:
        path: A picture (see :data:`mmgen.core.pictures.FORMATS`), or an HDF5 file.
        shape: (C, H, W) that the model expects.
        rows: Rows of a dataset or of samples; by default all samples, or the first 16 rows of a dataset.
        modality: The image modality, for a file of several.
        settings: Settings of the model's dataset: a picture is resized in the same way, or its middle is cut out.

    Returns:
        Images float32 [n, C, H, W] in [0, 1], their names, and a notice if a picture was converted, else "".

    Raises:
        ArtifactError: The file is neither a picture nor samples nor a dataset.
        UsageError: The images of an HDF5 file have another size.
    """
    notice = ""
    if path.suffix.lower() in _FILE_SUFFIXES:
        if require_kind(path, "samples", "dataset").kind == "dataset":
            images, names = read_dataset_images(path, list(rows) or list(range(16)), modality)
        else:
            images, names = _read_sample_images(path, rows, modality)
    else:
        picture, notice = _read_picture(path, shape, settings or {})
        images, names = picture[None], [path.name]
    if tuple(images.shape[1:]) != tuple(shape):
        raise _size_error(path, images.shape[1:], shape)
    return images, names, notice


def _read_sample_images(path: Path, rows: Sequence[int], modality: str) -> tuple[np.ndarray, list[str]]:
    from mmgen.artifacts.samples import read_samples

    samples = read_samples(path)
    # The data are like sampled images; a mean blurs several images.
    means, sampled = samples.further.get(modality, (samples.images, samples.images_sampled))
    images = means if sampled is None else sampled
    images = images.astype(np.float32) / 255 if images.dtype == np.uint8 else images
    chosen = list(rows) or list(range(len(images)))
    if min(chosen) < 0 or max(chosen) >= len(images):
        raise UsageError(f"{path} has samples 0 to {len(images) - 1}, got {max(chosen)}; choose one of them")
    return images[chosen], [f"{path.name} sample {row}" for row in chosen]


def _read_picture(path: Path, shape: Sequence[int], settings: Mapping[str, Any]) -> tuple[np.ndarray, str]:
    """Read a picture and resize it to [C, H, W] in [0, 1]; also return a notice of the changes, "" without changes."""
    from mmgen.core.foreign import CannotReadError, read_file
    from mmgen.core.pictures import MOST_BYTES, Fitting, fit_picture

    fitting = Fitting.for_shape(shape, settings)
    try:
        fitted = fit_picture(read_file(path, MOST_BYTES), fitting)
    except CannotReadError as error:
        raise ArtifactError(
            f"cannot read the picture {path}: {error}; "
            f"give a picture file such as PNG, or an HDF5 file (.h5) with images"
        ) from None
    done = [trait for trait in fitted.traits if trait != "grey"]
    if fitted.size != (fitting.width, fitting.height):
        reason = (
            "as in the dataset"
            if "fit" in settings
            else "since the dataset does not record how its pictures were resized"
        )
        done.append(
            f"{fitted.size[0]} x {fitted.size[1]} pixels became {fitting.width} x {fitting.height} by "
            f"'{fitting.fit}', {reason}"
        )
    return fitted.pixels.astype(np.float32) / 255, f"{path.name}: {', '.join(done)}" if done else ""


def _size_error(path: Path, got: Sequence[int], expected: Sequence[int]) -> UsageError:
    sizes = ["x".join(map(str, shape)) for shape in (got, expected)]
    return UsageError(f"{path} has images of {sizes[0]} (channels x height x width), expected {sizes[1]}; resize them")


def read_pictures(data: Dataset, rows: np.ndarray, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Read images float32 [n, C, H, W] in [0, 1] from ``rows``, by modality; ``names`` selects some of the modalities.

    By default "image" comes first, then the others in the file's order.
    """
    chosen = list(names) or sorted(data.images, key=lambda name: name != "image")
    return {name: data.read_values(name, rows) for name in chosen}


def random_test_rows(data: Dataset, scheme: str, count: int, seed: int) -> np.ndarray:
    """Choose ``count`` random rows of the test split, in increasing order."""
    every = data.split(scheme, "test")
    return np.sort(every[numpy_generator(seed, "examples", "test").permutation(len(every))[:count]])

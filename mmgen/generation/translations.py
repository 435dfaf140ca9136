"""Translations between image modalities: examples to start from, pairs of source and target, and drawn pictures."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset, read_header
from mmgen.core.errors import ArtifactError, UsageError, format_unknown_name
from mmgen.generation.decode import (
    check_target,
    decode_means,
    decode_means_and_draws,
    drawable_pictures,
    resolve_targets,
)
from mmgen.generation.descriptions import description_batch, parse_descriptions
from mmgen.generation.draws import Draws
from mmgen.generation.encode import infer_posterior, picture_sources
from mmgen.generation.examples import random_test_rows, read_file_images, read_pictures
from mmgen.generation.inputs import Pictures, check_draw_memory
from mmgen.generation.latents import draw_example_latents, random_stream
from mmgen.posteriors import latents_from

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel


Route = tuple[tuple[str, ...], tuple[str, ...]]
"""Modalities to start from together, and modalities to draw."""

_UNINFORMATIVE = "mask"
"""Modality that default routes do not start from, since one mask fits many pictures (as in WG)."""


@dataclass(frozen=True)
class PairedExamples:
    """Examples, each with a picture of every one of several modalities.

    Attributes:
        rows: Rows in the dataset, int [n].
        pictures: Pictures float32 [n, C, H, W] in [0, 1] by modality.
        names: Name of each example.
        notice: Explanation of conversions of a picture; "" without any.
    """

    rows: np.ndarray
    pictures: Mapping[str, np.ndarray]
    names: Sequence[str]
    notice: str = ""

    def __len__(self) -> int:
        return len(self.rows)


def convert_examples_to_pictures(loaded: "TrainedModel", examples: PairedExamples) -> PairedExamples:
    """Convert examples of data such as sounds or graphs to pictures, for figures; images stay unchanged.

    Raises:
        UsageError: A kind of data has no picture.
    """
    pictures = {name: loaded.observed[name].picture(values) for name, values in examples.pictures.items()}
    return replace(examples, pictures=pictures)


@dataclass(frozen=True)
class TranslationStart:
    """The modalities that a translation starts from, and the file of their pictures.

    Attributes:
        sources: Names of image modalities.
        file: File of the pictures; None for the test split of the model's dataset.
    """

    sources: tuple[str, ...]
    file: Path | None = None


@dataclass(frozen=True)
class Translation:
    """Pictures that a model draws from pictures of other modalities.

    Attributes:
        sources: Modalities that z is inferred from.
        drawn: Means of p(target | z) at the mean of q(z | sources), float32 [n, C, H, W] by target.
    """

    sources: tuple[str, ...]
    drawn: Mapping[str, np.ndarray]

    @property
    def name(self) -> str:
        """Names of the source modalities, joined: "edges", "edges + mask"."""
        return " + ".join(self.sources)


def read_paired_examples(
    loaded: "TrainedModel", dataset: Path, count: int, seed: int, rows: Sequence[int] = ()
) -> PairedExamples:
    """Read examples with all modalities from ``rows`` of a dataset, by default from random rows of the test split.

    Raises:
        UsageError: The test split is empty, or the dataset lacks a row.
    """
    with Dataset.open(dataset) as data:
        chosen = np.asarray(rows, np.int64) if rows else random_test_rows(data, loaded.settings.data.split, count, seed)
        if not len(chosen):
            raise UsageError(
                f"{dataset} has no test examples to show, expected at least one; "
                f"choose rows of another split with --dataset-row"
            )
        return PairedExamples(
            chosen, read_pictures(data, chosen, list(loaded.observed)), [f"{dataset.name} row {row}" for row in chosen]
        )


def parse_translation_start(loaded: "TrainedModel", text: str) -> TranslationStart:
    """Parse the option ``--from``: modalities ("edges+mask"), a file, or a modality and its file ("edges=x.png").

    A file without a modality is of the main one. A file with the name of a modality is written as ``./edges``.

    Raises:
        UsageError: The model has no images, or not this modality.
    """
    if loaded.observation is None:
        raise UsageError(f"{loaded.path} has only words, so it has no pictures to start from; use a model of pictures")
    names = tuple(text.split("+"))
    if all(name in loaded.observed for name in names):
        return TranslationStart(names)
    name, equals, file = text.partition("=")
    if equals and name in loaded.observed:
        return TranslationStart((name,), Path(file))
    if not os.path.exists(text) and not Path(text).suffix:  # a word rather than a file
        unknown = next(name for name in names if name not in loaded.observed)
        raise UsageError(format_unknown_name("modality", unknown, list(loaded.observed)))
    return TranslationStart((loaded.observation.name,), Path(text))


def read_start_pictures(
    loaded: "TrainedModel", start: TranslationStart, count: int, seed: int, rows: Sequence[int] = ()
) -> PairedExamples:
    """Read the pictures that a translation starts from: those of its file, or of test examples.

    A picture is resized in the same way as those of the model's dataset.

    Raises:
        UsageError: An HDF5 file has images of another size, or lacks one of ``rows``.
        ArtifactError: The file cannot be read.
    """
    if start.file is None:
        return read_paired_examples(loaded, loaded.dataset_path(), count, seed, rows)
    name = start.sources[0]
    described = loaded.observed[name]
    shape = described.event_shape
    if name not in loaded.images and start.file.suffix.lower() not in (".h5", ".hdf5"):
        values, notice = described.read_file(start.file)
        chosen = list(rows) or list(range(len(values)))
        if max(chosen) >= len(values):
            raise UsageError(f"{start.file} has lines 0 to {len(values) - 1}, got {max(chosen)}; choose one of them")
        names = [f"{start.file.name} line {row}" for row in chosen]
        return PairedExamples(np.array(chosen), {name: values[chosen]}, names, notice)
    images, names, notice = read_file_images(start.file, shape, rows, name, recipe_settings(loaded))
    if described.classifier_reads_samples and ((images > 0) & (images < 1)).any():
        rounding = f"{start.file.name}: grey levels became black or white at a half, as in the model's data"
        images, notice = (images > 0.5).astype(np.float32), f"{notice}; {rounding}" if notice else rounding
    return PairedExamples(np.arange(len(images)), {name: images}, names, notice)


def recipe_settings(loaded: "TrainedModel") -> Mapping[str, Any]:
    """Return the recipe settings of the model's dataset; {} if the file is missing."""
    try:
        return read_header(loaded.dataset_path()).settings
    except ArtifactError:
        return {}


def default_routes(loaded: "TrainedModel") -> list[Route]:
    """Return default pairs (sources, targets): the main modality to all others, and each other to it (WG Fig. 4)."""
    drawn, sources = drawable_pictures(loaded), picture_sources(loaded)
    main = drawn[0]
    routes: list[Route] = [((main,), tuple(drawn))] if main in sources else []
    others = [name for name in sources if name != main]
    informative = [name for name in others if name != _UNINFORMATIVE] or others
    return routes + [((name,), (main,)) for name in informative]


def select_routes(loaded: "TrainedModel", sources: Sequence[str], targets: Sequence[str]) -> list[Route]:
    """Return pairs (sources, targets): each of ``sources`` with all ``targets``; by default, all modalities.

    Args:
        loaded: The model.
        sources: Modalities to start from, several at once as "edges+mask"; by default all except a single target.
        targets: Modalities to draw; by default all.
    """
    if not sources and not targets:
        return default_routes(loaded)
    starts: list[tuple[str, ...]] = [tuple(source.split("+")) for source in sources]
    if not starts:
        alone = picture_sources(loaded)
        starts = [(name,) for name in alone if [name] != list(targets)] or [(name,) for name in alone]
    return [(start, tuple(targets) or tuple(drawable_pictures(loaded))) for start in starts]


def translate(
    loaded: "TrainedModel", examples: PairedExamples, sources: Sequence[str], targets: Sequence[str]
) -> Translation:
    """Translate pictures of the sources: decode the mean of q(z | sources) to pictures of the targets.

    Raises:
        UsageError: The model does not draw a target, or cannot infer z from the sources.
    """
    for target in targets:
        check_target(loaded, target)
    z = infer_posterior(loaded, _source_pictures(examples, sources)).mean
    return Translation(tuple(sources), {target: decode_means(loaded, target, z).cpu().numpy() for target in targets})


def _source_pictures(examples: PairedExamples, sources: Sequence[str]) -> dict[str, np.ndarray]:
    for name in sources:
        if name not in examples.pictures:
            raise UsageError(format_unknown_name("modality", name, list(examples.pictures)))
    return {name: examples.pictures[name] for name in sources}


@torch.no_grad()
def draw_translations(
    loaded: "TrainedModel",
    examples: PairedExamples,
    sources: Sequence[str],
    targets: Sequence[str],
    count: int,
    seed: int = 0,
    description: str = "",
) -> Draws:
    """Translate pictures of the sources: draw z from q(z | sources, description), and decode each draw to the targets.

    Args:
        loaded: The model.
        examples: The n examples; in the result they take the place of descriptions.
        sources: Modalities to start from.
        targets: Image modalities to draw.
        count: Draws for each example.
        seed: Seed of the draws.
        description: One description for all examples.

    Raises:
        UsageError: The model does not draw a target, cannot infer z from the sources, or lacks a word.
    """
    names = resolve_targets(loaded, targets)
    descriptions = parse_descriptions(loaded, [description])
    device = str(loaded.device)
    condition = descriptions.batch(loaded, 0) if loaded.attributes is not None else None
    words = []
    pictures: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in names}
    posterior = infer_posterior(loaded, _source_pictures(examples, sources), description)
    z = draw_example_latents(loaded, posterior, sources, examples.rows.tolist(), count, seed)
    for row, latents in zip(examples.rows.tolist(), z, strict=True):
        for name in names:
            generator = random_stream(seed, "pixels", (name, row), device=device)
            decoded = decode_means_and_draws(loaded, name, latents, condition, generator)
            pictures[name].append((decoded[0].cpu().numpy(), decoded[1].cpu().numpy()))
        if loaded.text is not None and loaded.text.name in loaded.model.generates:
            generator = random_stream(seed, "words", (row,), device=device)
            words.append(loaded.model.sample(loaded.text.name, latents, generator).cpu().numpy())
    drawn = {
        name: (np.stack([mean for mean, _ in decoded]), np.stack([sample for _, sample in decoded]))
        for name, decoded in pictures.items()
    }
    return Draws(
        posterior=f"q(z | {', '.join((*sources, *([description] if description else [])))})",
        seed=seed,
        descriptions=descriptions.repeat(len(examples)),
        images=drawn,
        z=z.float().cpu().numpy(),
        words=np.stack(words) if words else None,
    )


def decode(loaded: "TrainedModel", target: str, z: Tensor, description: str | Mapping[str, str] = "") -> Tensor:
    """Decode z [..., D] to mean pictures E[target | z] [..., C, H, W] in [0, 1], in parts of bounded size."""
    check_target(loaded, target)
    z = latents_from(z, loaded.model.latent_size).to(loaded.device)
    condition = description_batch(loaded, description) if loaded.model.conditional_on else None
    return decode_means(loaded, target, z, condition)


def translate_pictures(
    loaded: "TrainedModel",
    pictures: Mapping[str, Pictures],
    target: str,
    draws: int = 0,
    seed: int = 0,
    description: str | Mapping[str, str] = "",
    rows: Sequence[int] | None = None,
) -> Tensor:
    """Draw pictures of ``target`` from other modalities; see :meth:`mmgen.generation.TrainedModel.translate`."""
    check_target(loaded, target)
    posterior = infer_posterior(loaded, pictures, description)
    if not draws:
        return decode(loaded, target, posterior.mean, description)
    size = len(posterior.mean)
    if rows is not None and len(rows) != size:
        raise UsageError(
            f"rows got {len(rows)} numbers for {size} pictures, expected one for each picture; give {size}"
        )
    check_draw_memory([loaded.observed[target]], draws, size, "pictures")
    z = draw_example_latents(loaded, posterior, tuple(pictures), range(size) if rows is None else rows, draws, seed)
    return decode(loaded, target, z.transpose(0, 1), description)

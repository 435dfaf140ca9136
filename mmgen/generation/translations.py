"""Translating between image modalities: examples, routes and pictures."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mmgen.artifacts import Dataset, read_header
from mmgen.core.errors import ArtifactError, UsageError
from mmgen.generation.decode import check_target, drawable_pictures, means, means_and_draws, resolve_targets
from mmgen.generation.descriptions import parse
from mmgen.generation.draws import Draws
from mmgen.generation.encode import infer, source_images
from mmgen.generation.images import images_of_file, read_pictures, rows_to_show
from mmgen.generation.latents import draw_encoded, stream
from mmgen.settings.registry import unknown_name

if TYPE_CHECKING:
    from mmgen.generation.trained_model import TrainedModel

__all__ = [
    "Paired",
    "Start",
    "Translation",
    "as_pictures_of",
    "draw_translations",
    "paired",
    "parse_start",
    "read_start",
    "translate",
    "default_routes",
    "select_routes",
]

Route = tuple[tuple[str, ...], tuple[str, ...]]
"""Modalities to start from together, and modalities to draw."""

_SAYS_LITTLE = "mask"
"""WG draw no picture from a mask: it fits too many."""


@dataclass(frozen=True)
class Paired:
    """Examples with the pictures of all their modalities.

    Attributes:
        rows: Where they are in the dataset, int [n].
        pictures: float32 [n, C, H, W] in [0, 1] by modality.
        names: What to call each.
        notice: What was done to a picture of another size or kind; "" where nothing was.
    """

    rows: np.ndarray
    pictures: Mapping[str, np.ndarray]
    names: Sequence[str]
    notice: str = ""

    def __len__(self) -> int:
        return len(self.rows)


def as_pictures_of(loaded: "TrainedModel", examples: Paired) -> Paired:
    """Convert examples of any kind of data to pictures, for figures.

    Raises:
        UsageError: A kind has no picture.
    """
    pictures = {name: loaded.observed[name].picture(values) for name, values in examples.pictures.items()}
    return replace(examples, pictures=pictures)


@dataclass(frozen=True)
class Start:
    """The modalities, or the file, that a translation starts from.

    Attributes:
        sources: Image modalities, by name.
        file: Where their pictures are; None for the test part of the model's dataset.
    """

    sources: tuple[str, ...]
    file: Path | None = None


@dataclass(frozen=True)
class Translation:
    """Pictures that a model draws from pictures of other modalities.

    Attributes:
        sources: Modalities that z was inferred from.
        drawn: Means of p(target | z), z the mean of q(z | sources), float32 [n, C, H, W] by target.
    """

    sources: tuple[str, ...]
    drawn: Mapping[str, np.ndarray]

    @property
    def name(self) -> str:
        """Source modalities in words: "edges", "edges + mask"."""
        return " + ".join(self.sources)


def paired(loaded: "TrainedModel", dataset: Path, count: int, seed: int, rows: Sequence[int] = ()) -> Paired:
    """Read random examples of the test part with all their modalities, or certain rows.

    Raises:
        UsageError: The test part is empty, or a row is not there.
    """
    with Dataset.open(dataset) as data:
        chosen = np.asarray(rows, np.int64) if rows else rows_to_show(data, loaded.settings.data.split, count, seed)
        if not len(chosen):
            raise UsageError(f"{dataset} has no test examples to show; choose rows with --dataset-row")
        return Paired(
            chosen, read_pictures(data, chosen, list(loaded.observed)), [f"{dataset.name} row {row}" for row in chosen]
        )


def parse_start(loaded: "TrainedModel", text: str) -> Start:
    """Parse ``--from``: modalities ("edges", "edges+mask"), a file of the main one, or of another ("edges=x.png").

    A file that is called like a modality is meant by ``./edges``.

    Raises:
        UsageError: The model has no images.
    """
    if loaded.observation is None:
        raise UsageError(f"{loaded.path} has words alone, so it has no pictures to start from; use a model of pictures")
    names = tuple(text.split("+"))
    if all(name in loaded.observed for name in names):
        return Start(names)
    name, equals, file = text.partition("=")
    if equals and name in loaded.observed:
        return Start((name,), Path(file))
    if not os.path.exists(text) and not Path(text).suffix:  # a word, and no file
        unknown = next(name for name in names if name not in loaded.observed)
        raise UsageError(unknown_name("modality", unknown, list(loaded.observed)))
    return Start((loaded.observation.name,), Path(text))


def read_start(loaded: "TrainedModel", start: Start, count: int, seed: int, rows: Sequence[int] = ()) -> Paired:
    """Read the pictures to start from: test examples with all their modalities, or a file.

    A picture is brought to the size of the model's images as those of its dataset were.

    Raises:
        UsageError: An HDF5 file has images of another size, or rows that are asked for are not there.
        ArtifactError: It cannot be read.
    """
    if start.file is None:
        return paired(loaded, loaded.dataset_path(), count, seed, rows)
    name = start.sources[0]
    described = loaded.observed[name]
    shape = described.event_shape
    if name not in loaded.images and start.file.suffix.lower() not in (".h5", ".hdf5"):
        raise UsageError(f"{start.file} got a file for {name}, a {described.kind}; expected a dataset or samples (.h5)")
    images, names, notice = images_of_file(start.file, shape, rows, name, _recipe_settings(loaded))
    if described.classifier_sees_samples and ((images > 0) & (images < 1)).any():
        made = f"{start.file.name}: grey levels became black or white at a half, as the model knows no others"
        images, notice = (images > 0.5).astype(np.float32), f"{notice}; {made}" if notice else made
    return Paired(np.arange(len(images)), {name: images}, names, notice)


def _recipe_settings(loaded: "TrainedModel") -> Mapping[str, Any]:
    """Return the settings of the model's dataset; {} if it is gone."""
    try:
        return read_header(loaded.dataset_path()).settings
    except ArtifactError:
        return {}


def default_routes(loaded: "TrainedModel") -> list[Route]:
    """Return the default translations: from the main picture to all, from all others back to it (WG Fig. 4)."""
    drawn, sources = drawable_pictures(loaded), source_images(loaded)
    main = drawn[0]
    routes: list[Route] = [((main,), tuple(drawn))] if main in sources else []
    others = [name for name in sources if name != main]
    informative = [name for name in others if name != _SAYS_LITTLE] or others
    return routes + [((name,), (main,)) for name in informative]


def select_routes(loaded: "TrainedModel", sources: Sequence[str], targets: Sequence[str]) -> list[Route]:
    """Return the translations from every source to every target.

    Args:
        loaded: The model.
        sources: Modalities to start from, several at once as "edges+mask"; without any, all but the only target.
        targets: Modalities to draw; without any, all.
    """
    if not sources and not targets:
        return default_routes(loaded)
    starts: list[tuple[str, ...]] = [tuple(source.split("+")) for source in sources]
    if not starts:
        alone = source_images(loaded)
        starts = [(name,) for name in alone if [name] != list(targets)] or [(name,) for name in alone]
    return [(start, tuple(targets) or tuple(drawable_pictures(loaded))) for start in starts]


def translate(loaded: "TrainedModel", examples: Paired, sources: Sequence[str], targets: Sequence[str]) -> Translation:
    """Decode pictures of the targets at the mean of q(z | sources).

    Raises:
        UsageError: The model does not draw a target or infers no z from the sources.
    """
    for target in targets:
        check_target(loaded, target)
    z = infer(loaded, _given(examples, sources)).mean
    return Translation(tuple(sources), {target: means(loaded, target, z).cpu().numpy() for target in targets})


def _given(examples: Paired, sources: Sequence[str]) -> dict[str, np.ndarray]:
    for name in sources:
        if name not in examples.pictures:
            raise UsageError(unknown_name("modality", name, list(examples.pictures)))
    return {name: examples.pictures[name] for name in sources}


@torch.no_grad()
def draw_translations(
    loaded: "TrainedModel",
    examples: Paired,
    sources: Sequence[str],
    targets: Sequence[str],
    count: int,
    seed: int = 0,
    description: str = "",
) -> Draws:
    """Draw z from q(z | sources), or q(z | sources, description), and decode each draw.

    Args:
        loaded: The model.
        examples: Examples, which take the place of the descriptions in what comes back.
        sources: Modalities to start from.
        targets: Image modalities to draw.
        count: Draws for each example, n.
        seed: Seed.
        description: One that holds for all examples.

    Raises:
        UsageError: The model does not draw a target, infers no z from the sources or does not know the words.
    """
    names = resolve_targets(loaded, targets)
    descriptions = parse(loaded, [description])
    device = str(loaded.device)
    condition = descriptions.batch(loaded, 0) if loaded.attributes is not None else None
    words = []
    pictures: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in names}
    posterior = infer(loaded, _given(examples, sources), description)
    z = draw_encoded(loaded, posterior, sources, examples.rows.tolist(), count, seed)
    for row, latents in zip(examples.rows.tolist(), z, strict=True):
        for name in names:
            generator = stream(seed, "pixels", (name, row), device=device)
            decoded = means_and_draws(loaded, name, latents, condition, generator)
            pictures[name].append((decoded[0].cpu().numpy(), decoded[1].cpu().numpy()))
        if loaded.text is not None and loaded.text.name in loaded.model.generates:
            generator = stream(seed, "words", (row,), device=device)
            words.append(loaded.model.sample(loaded.text.name, latents, generator).cpu().numpy())
    drawn = {
        name: (np.stack([mean for mean, _ in decoded]), np.stack([sample for _, sample in decoded]))
        for name, decoded in pictures.items()
    }
    means, sampled = drawn.pop(names[0])
    return Draws(
        posterior=f"q(z | {', '.join((*sources, *([description] if description else [])))})",
        seed=seed,
        descriptions=descriptions.repeat(len(examples)),
        means=means,
        sampled=sampled,
        z=z.float().cpu().numpy(),
        words=np.stack(words) if words else None,
        image=names[0],
        further=drawn,
    )

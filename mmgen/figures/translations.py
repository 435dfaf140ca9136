"""Examples of several image modalities, and what a model makes of each from the others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.errors import UsageError
from mmgen.registry import unknown_name
from mmgen.seeding import numpy_generator

if TYPE_CHECKING:
    from mmgen.loading import Loaded

__all__ = ["Paired", "Translation", "paired", "read_pictures", "rows_to_show", "translated", "usual", "wanted"]

Route = tuple[tuple[str, ...], tuple[str, ...]]
"""Modalities to start from together, and modalities to draw."""

_SAYS_LITTLE = "mask"
"""WG draw no picture from a mask: it fits too many."""


@dataclass(frozen=True)
class Paired:
    """Examples with all their pictures.

    Attributes:
        rows: Where they are in the dataset, int [n].
        pictures: float32 [n, C, H, W] in [0, 1] by modality.
    """

    rows: np.ndarray
    pictures: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Translation:
    """What a model draws for some kinds of pictures.

    Attributes:
        sources: Modalities that z was inferred from.
        drawn: Means of p(target | z), z the mean of q(z | sources), float32 [n, C, H, W] by target.
    """

    sources: tuple[str, ...]
    drawn: Mapping[str, np.ndarray]

    @property
    def name(self) -> str:
        """What it started from: "edges", "edges + mask"."""
        return " + ".join(self.sources)


def read_pictures(data: Dataset, rows: np.ndarray, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Images float32 [n, C, H, W] in [0, 1] of rows of an open dataset, by modality; by default of all of them.

    The modality "image" comes first, the others in the file's order.
    """
    wanted = list(names) or sorted(data.images, key=lambda name: name != "image")
    return {name: data.read_image(name, rows).astype(np.float32) / data.images[name].scale for name in wanted}


def rows_to_show(data: Dataset, scheme: str, count: int, seed: int) -> np.ndarray:
    """Some rows of the test part, at random, increasing."""
    every = data.split(scheme, "test")
    return np.sort(every[numpy_generator(seed, "examples", "test").permutation(len(every))[:count]])


def paired(loaded: "Loaded", dataset: Path, count: int, seed: int, rows: Sequence[int] = ()) -> Paired:
    """Examples of the test part, at random, with all their pictures; or the rows that are asked for.

    Raises:
        UsageError: The test part is empty, or a row is not there.
    """
    with Dataset.open(dataset) as data:
        chosen = np.asarray(rows, np.int64) if rows else rows_to_show(data, loaded.settings.data.split, count, seed)
        if not len(chosen):
            raise UsageError(f"{dataset} has no test examples to show; choose rows with --dataset-row")
        return Paired(chosen, read_pictures(data, chosen, list(loaded.images)))


def usual(loaded: "Loaded") -> list[Route]:
    """Which translations to show unless told: from the main picture to all, from all others back to it (WG Fig. 4)."""
    from mmgen.translation import drawn_images, source_images

    drawn, sources = drawn_images(loaded), source_images(loaded)
    main = drawn[0]
    found: list[Route] = [((main,), tuple(drawn))] if main in sources else []
    others = [name for name in sources if name != main]
    informative = [name for name in others if name != _SAYS_LITTLE] or others
    return found + [((name,), (main,)) for name in informative]


def wanted(loaded: "Loaded", sources: Sequence[str], targets: Sequence[str]) -> list[Route]:
    """Which translations a person asks for: every source to every target.

    Args:
        loaded: The model.
        sources: Modalities to start from, several at once as "edges+mask"; without any, all but the only target.
        targets: Modalities to draw; without any, all.
    """
    from mmgen.translation import drawn_images, source_images

    if not sources and not targets:
        return usual(loaded)
    starts: list[tuple[str, ...]] = [tuple(source.split("+")) for source in sources]
    if not starts:
        alone = source_images(loaded)
        starts = [(name,) for name in alone if [name] != list(targets)] or [(name,) for name in alone]
    return [(start, tuple(targets) or tuple(drawn_images(loaded))) for start in starts]


def translated(loaded: "Loaded", shown: Paired, sources: Sequence[str], targets: Sequence[str]) -> Translation:
    """Pictures of the targets at the mean of q(z | sources).

    Raises:
        UsageError: The model does not draw a target or infers no z from the sources.
    """
    from mmgen.translation import check_target, decode, infer

    for target in targets:
        check_target(loaded, target)
    for name in sources:
        if name not in shown.pictures:
            raise UsageError(unknown_name("image modality", name, list(shown.pictures)))
    z = infer(loaded, {name: shown.pictures[name] for name in sources}).mean
    return Translation(tuple(sources), {target: decode(loaded, target, z).cpu().numpy() for target in targets})

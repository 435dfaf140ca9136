"""The latent space on a page: what each dimension changes, where the encodings lie, what is decoded between them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.figures.explore.density import Chart
from mmgen.figures.explore.sprites import tiles
from mmgen.figures.session import Session
from mmgen.generation import decode
from mmgen.generation.classifiers import classifier_sees_samples, classify_images
from mmgen.generation.descriptions import Descriptions, empty_description
from mmgen.generation.encodings import Encodings, Ranking, encode_split, principal_plane, project_onto_axes, rank_axes
from mmgen.generation.examples import Examples, read_examples
from mmgen.generation.traversals import traversal_values, traverse
from mmgen.latent import Axis

if TYPE_CHECKING:
    from mmgen.core.batch import Batch

__all__ = [
    "STEPS",
    "Decoded",
    "Landscape",
    "Neighbours",
    "Traversals",
    "decode_pictures",
    "landscape",
    "neighbours",
    "over_map",
    "traversals",
]

STEPS = 11
"""Values that each dimension takes."""
_FARTHEST = 3.0
"""Standard deviations to either side: 99.7 % of N(0, 1)."""
_POINTS = 1500
"""Encodings on the map."""
_EDGE = 0.995
"""Part of the encodings that the map is to show."""


@dataclass(frozen=True)
class Decoded:
    """Pictures decoded from z.

    Attributes:
        pictures: Means, uint8 [n, H, W, C].
        judged: What the judge sees, uint8 [n, A]; None without one.
    """

    pictures: np.ndarray
    judged: np.ndarray | None

    def first(self, count: int) -> "Decoded":
        return Decoded(self.pictures[:count], None if self.judged is None else self.judged[:count])


@torch.no_grad()
def decode_pictures(session: Session, z: Tensor, description: Descriptions, purpose: str, number: int = 0) -> Decoded:
    """Decode z [n, D], with a classifier's answers; a conditional decoder gets one description for all.

    Args:
        session: The model and its judge.
        z: Latents.
        description: One description.
        purpose: What the stream of pixels is known by, together with ``number``.
        number: See ``purpose``.
    """
    loaded, main = session.model, session.model.observation
    assert main is not None
    condition: Batch | None = description.batch(loaded, 0) if loaded.model.conditional_on else None
    generator = torch_generator(session.seed, purpose, number, device=loaded.device)
    means, drawn = decode.decode_means_and_draws(loaded, main.name, z.to(loaded.device), condition, generator)
    judged = None
    if session.judge is not None:
        seen = (drawn if classifier_sees_samples(loaded) else means).cpu().numpy()
        judged = classify_images(session.judge, seen, np.repeat(description.codes, len(seen), axis=0))
    return Decoded(tiles(main.picture(means.cpu().numpy())), judged)


@dataclass(frozen=True)
class Landscape:
    """Encodings of test examples on a map.

    Attributes:
        encodings: q(z|x) of them.
        ranking: Dimensions of z by how much they say.
        chart: The map.
        places: Where they are on it, [n, 2], -1 to 1.
        codes: Their attributes, uint8 [n, A]; None where the data have none.
        shares: Part of the variance that each axis holds.
    """

    encodings: Encodings
    ranking: Ranking
    chart: Chart
    places: np.ndarray
    codes: np.ndarray | None
    shares: tuple[float, float]


def landscape(session: Session) -> Landscape | None:
    """Make the map of a model; None without its dataset."""
    dataset, loaded = session.group.dataset, session.model
    if dataset is None:
        return None
    encodings = encode_split(loaded, dataset, "test", _POINTS, session.seed)
    projection = principal_plane(encodings.mean)
    plane = projection(encodings.mean)
    exact = loaded.model.latent_size <= 2
    reach = 1.05 * float(plane.abs().amax(1).quantile(_EDGE))
    chart = Chart(projection, max(reach, _FARTHEST if exact else 1e-6), exact and loaded.model.latent_size == 2)
    codes = None
    if loaded.attributes is not None:
        with Dataset.open(dataset) as data:
            codes = data.read_attributes(loaded.attributes.name, encodings.rows)
    ranked = rank_axes(loaded, encodings)
    return Landscape(encodings, ranked, chart, chart.places(encodings.mean), codes, projection.shares)


def over_map(session: Session, chart: Chart, cells: int) -> Decoded | None:
    """Decode every cell of the map, row by row from the bottom; None if decoders need a description."""
    if session.model.model.conditional_on:
        return None
    return decode_pictures(session, chart.centres(cells), empty_description(session.model), "map")


@dataclass(frozen=True)
class Neighbours:
    """Pictures decoded from the encodings of some of the examples on the map.

    Attributes:
        points: Which of the map's points, int [m].
        decoded: Their pictures.
    """

    points: np.ndarray
    decoded: Decoded


def neighbours(session: Session, land: Landscape, count: int) -> Neighbours | None:
    """Decode examples to show beside the pointer; None if z is the plane, or if decoders need a description."""
    if land.chart.exact or session.model.model.conditional_on:
        return None
    points = np.unique(np.linspace(0, len(land.places) - 1, count).round().astype(int))
    z = land.encodings.mean[torch.from_numpy(points)]
    return Neighbours(points, decode_pictures(session, z, empty_description(session.model), "encodings"))


@dataclass(frozen=True)
class Traversals:
    """Pictures with one dimension of z changed at a time.

    Attributes:
        examples: P examples.
        dimensions: d axes of z.
        values: What each takes, [d, STEPS].
        reach: What these values are, in words.
        originals: The examples' own pictures, uint8 [P, H, W, C].
        means: The value that each dimension has in q(z|x), [P, d].
        pictures: For each example first what is decoded where nothing is moved, then dimension by dimension.
        fixed_labels: Labels that are part of z, which stay the likeliest of each example; "" where none is.
    """

    examples: Examples
    dimensions: list[Axis]
    values: list[list[float]]
    reach: str
    originals: np.ndarray
    means: np.ndarray
    pictures: list[Decoded]
    fixed_labels: str = ""


def traversals(session: Session, land: Landscape, examples: int, dimensions: int) -> Traversals:
    """Decode traversals of some test examples, most informative dimensions first.

    Args:
        session: The model.
        land: Its encodings.
        examples: P at most.
        dimensions: d at most.
    """
    loaded, dataset, encodings = session.model, session.group.dataset, land.encodings
    assert dataset is not None and loaded.observation is not None
    order = numpy_generator(session.seed, "traversals").permutation(len(encodings.rows))
    chosen = np.sort(order[:examples])
    with Dataset.open(dataset) as data:
        shown = read_examples(loaded, data, encodings.rows[chosen])
    ranked = land.ranking.dimensions[:dimensions]
    values, reach = traversal_values(encodings, ranked, _FARTHEST, STEPS)
    means = encodings.mean[torch.from_numpy(chosen)]
    moved = traverse(means, ranked, values)  # [P, d, STEPS, D]
    width = len(loaded.attributes.names) if loaded.attributes is not None else 0
    pictures = []
    for place, z in enumerate(moved):
        codes = shown.codes[place : place + 1] if shown.codes is not None else np.full((1, width), UNKNOWN, np.uint8)
        tokens = None if shown.tokens is None else shown.tokens[place : place + 1]
        every = torch.cat([means[place : place + 1], z.flatten(0, 1)])
        pictures.append(
            decode_pictures(session, every, Descriptions(codes, tokens), "traversal", int(shown.rows[place]))
        )
    held = " and ".join(loaded.model.latent_modalities)
    originals, own = tiles(loaded.observation.picture(shown.images)), project_onto_axes(means, ranked).numpy()
    return Traversals(shown, ranked, values.tolist(), reach, originals, own, pictures, held)

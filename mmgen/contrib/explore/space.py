"""The latent space on a page that decodes pictures itself: sliders for z, and a map of encodings."""

from dataclasses import dataclass

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.contrib.explore.density import MapSquare
from mmgen.contrib.explore.sprites import picture_bytes
from mmgen.core.seeding import numpy_generator
from mmgen.figures.session import Session
from mmgen.generation import decode
from mmgen.generation.encodings import (
    Encodings,
    Ranking,
    encode_split,
    principal_plane,
    project_onto_axes,
    rank_axes,
    traversal_values,
    traverse,
)
from mmgen.generation.examples import Examples, read_examples
from mmgen.latent import Axis

STEPS = 11
"""Number of values of each dimension in a traversal."""
_FARTHEST = 3.0
"""Reach of traversals in standard deviations to either side."""
_POINTS = 1500
"""Number of encodings on the map."""
_EDGE = 0.995
"""Share of the encodings inside the map."""
_CHANGE = 0.5
"""Smallest change of a value's share along a dimension that is named."""


@dataclass(frozen=True)
class EncodingMap:
    """Map of the encodings of test examples: their positions in a plane of z.

    Attributes:
        encodings: q(z|x) of the examples.
        ranking: Dimensions of z by information.
        chart: The square of the map.
        places: Positions of the encodings on the map, [n, 2], -1 to 1.
        codes: Attribute codes of the examples, uint8 [n, A]; None without attributes.
        shares: Share of the variance along each axis of the map.
    """

    encodings: Encodings
    ranking: Ranking
    chart: MapSquare
    places: np.ndarray
    codes: np.ndarray | None
    shares: tuple[float, float]


def make_encoding_map(session: Session) -> EncodingMap | None:
    """Encode test examples and compute their map; return None without the model's dataset."""
    dataset, loaded = session.group.dataset, session.model
    if dataset is None:
        return None
    encodings = encode_split(loaded, dataset, "test", _POINTS, session.seed)
    projection = principal_plane(encodings.mean)
    plane = projection(encodings.mean)
    exact = loaded.model.latent_size <= 2
    reach = 1.05 * float(plane.abs().amax(1).quantile(_EDGE))
    chart = MapSquare(projection, max(reach, _FARTHEST if exact else 1e-6))
    codes = None
    if loaded.attributes is not None:
        with Dataset.open(dataset) as data:
            codes = data.read_attributes(loaded.attributes.name, encodings.rows)
    ranked = rank_axes(loaded, encodings)
    return EncodingMap(encodings, ranked, chart, chart.project(encodings.mean), codes, projection.shares)


@dataclass(frozen=True)
class Neighbours:
    """Some of the encodings on the map, whose pictures the page shows near the pointer.

    Attributes:
        points: Positions of these examples among the encodings, int [m].
        z: Their encodings, float32 [m, D].
    """

    points: np.ndarray
    z: np.ndarray


def choose_neighbours(encoding_map: EncodingMap, count: int) -> Neighbours:
    """Choose ``count`` encodings on the map, evenly."""
    points = np.unique(np.linspace(0, len(encoding_map.places) - 1, count).round().astype(int))
    return Neighbours(points, encoding_map.encodings.mean[torch.from_numpy(points)].float().numpy())


@dataclass(frozen=True)
class Traversals:
    """Values that the dimensions of z take on the sliders, and several examples to begin from.

    Attributes:
        examples: P examples.
        dimensions: d axes of z.
        values: Values of each dimension, [d, STEPS].
        reach: Explanation of these values.
        originals: The examples' own pictures, uint8 [P, H, W, C].
        z: Means of q(z|x), float32 [P, D].
        means: Value of each dimension in them, [P, d].
        fixed_labels: Names of labels that are part of z and keep their likeliest values; "" without any.
    """

    examples: Examples
    dimensions: list[Axis]
    values: list[list[float]]
    reach: str
    originals: np.ndarray
    z: np.ndarray
    means: np.ndarray
    fixed_labels: str = ""


def choose_traversals(session: Session, encoding_map: EncodingMap, examples: int, dimensions: int) -> Traversals:
    """Choose test examples and the values of the dimensions of z, the most informative dimensions first.

    Args:
        session: The model.
        encoding_map: The map of its encodings.
        examples: Largest number of examples, P.
        dimensions: Largest number of dimensions, d.
    """
    loaded, dataset, encodings = session.model, session.group.dataset, encoding_map.encodings
    assert dataset is not None and loaded.observation is not None
    order = numpy_generator(session.seed, "traversals").permutation(len(encodings.rows))
    chosen = np.sort(order[:examples])
    with Dataset.open(dataset) as data:
        shown = read_examples(loaded, data, encodings.rows[chosen])
    ranked = encoding_map.ranking.dimensions[:dimensions]
    values, reach = traversal_values(encodings, ranked, _FARTHEST, STEPS)
    means = encodings.mean[torch.from_numpy(chosen)]
    held = " and ".join(loaded.model.latent_modalities)
    originals, own = picture_bytes(loaded.observation.picture(shown.images)), project_onto_axes(means, ranked).numpy()
    return Traversals(shown, ranked, values.tolist(), reach, originals, means.float().numpy(), own, held)


@torch.no_grad()
def name_changes(session: Session, traversals: Traversals) -> list[str]:
    """Name for each dimension the attributes that the model's own words' decoder sees change along it; "" for none.

    An attribute changes if the most and the least likely shares of one of its values along the dimension differ by a
    half or more, on average over the examples.
    """
    loaded = session.model
    info = loaded.attributes
    if info is None or info.name not in loaded.model.generates or loaded.model.conditional_on:
        return [""] * len(traversals.dimensions)
    z = traverse(torch.from_numpy(traversals.z), traversals.dimensions, torch.tensor(traversals.values))
    shares = decode.decode_means(loaded, info.name, z)  # [P, d, STEPS, A, values]
    spans = (shares.amax(2) - shares.amin(2)).amax(-1).mean(0)  # [d, A]
    found = []
    for row in spans.tolist():
        changed = sorted((-span, place) for place, span in enumerate(row) if span >= _CHANGE)
        found.append(", ".join(info.names[place] for _, place in changed[:2]))
    return found

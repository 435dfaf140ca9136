"""The latent space on a page: traversals of z, a map of encodings, and pictures decoded at places of the map."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.contrib.explore.density import MapSquare
from mmgen.contrib.explore.sprites import picture_bytes
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.figures.session import Session
from mmgen.generation import decode
from mmgen.generation.classifiers import classifier_reads_samples, classify_images
from mmgen.generation.descriptions import Descriptions, empty_description
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

if TYPE_CHECKING:
    from mmgen.core.batch import Batch


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
class ClassifiedPictures:
    """Pictures decoded from n values of z, with the attributes that the classifier predicts of them.

    Attributes:
        pictures: Means, uint8 [n, H, W, C].
        predicted: Attribute codes, uint8 [n, A]; None without a classifier.
    """

    pictures: np.ndarray
    predicted: np.ndarray | None

    def first(self, count: int) -> "ClassifiedPictures":
        return ClassifiedPictures(self.pictures[:count], None if self.predicted is None else self.predicted[:count])


@torch.no_grad()
def decode_and_classify(
    session: Session, z: Tensor, description: Descriptions, purpose: str, number: int = 0
) -> ClassifiedPictures:
    """Decode z [n, D] to pictures and let the attribute classifier predict their attributes.

    Args:
        session: The model and its classifier.
        z: Latents.
        description: One description of all pictures, for conditional decoders.
        purpose: Key of the random stream of pixels, together with ``number``.
        number: Second part of the key.
    """
    loaded, main = session.model, session.model.observation
    assert main is not None
    condition: Batch | None = description.batch(loaded, 0) if loaded.model.conditional_on else None
    generator = torch_generator(session.seed, purpose, number, device=loaded.device)
    means, drawn = decode.decode_means_and_draws(loaded, main.name, z.to(loaded.device), condition, generator)
    judged = None
    if session.judge is not None:
        seen = (drawn if classifier_reads_samples(loaded) else means).cpu().numpy()
        judged = classify_images(session.judge, seen, np.repeat(description.codes, len(seen), axis=0))
    return ClassifiedPictures(picture_bytes(main.picture(means.cpu().numpy())), judged)


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


def decode_map(session: Session, chart: MapSquare, cells: int) -> ClassifiedPictures | None:
    """Decode z at each cell of the map to a picture, row by row from the bottom; None for conditional decoders."""
    if session.model.model.conditional_on:
        return None
    return decode_and_classify(session, chart.cell_centres(cells), empty_description(session.model), "map")


@dataclass(frozen=True)
class Neighbours:
    """Pictures decoded from some of the encodings on the map, for display near the pointer.

    Attributes:
        points: Positions of these examples among the encodings, int [m].
        z: Their encodings, float32 [m, D].
        decoded: Their pictures; None if the page decodes them itself.
    """

    points: np.ndarray
    z: np.ndarray
    decoded: ClassifiedPictures | None


def decode_neighbours(session: Session, encoding_map: EncodingMap, count: int, live: bool = False) -> Neighbours | None:
    """Choose ``count`` encodings on the map and decode them to pictures, unless the page does so itself.

    Without ``live`` there are none if the map is all of z, or for conditional decoders.
    """
    if not live and (encoding_map.chart.exact or session.model.model.conditional_on):
        return None
    points = np.unique(np.linspace(0, len(encoding_map.places) - 1, count).round().astype(int))
    z = encoding_map.encodings.mean[torch.from_numpy(points)]
    decoded = None if live else decode_and_classify(session, z, empty_description(session.model), "encodings")
    return Neighbours(points, z.float().numpy(), decoded)


@dataclass(frozen=True)
class Traversals:
    """Pictures decoded while one dimension of z at a time is changed, from several examples.

    Attributes:
        examples: P examples.
        dimensions: d axes of z.
        values: Values of each dimension, [d, STEPS].
        reach: Explanation of these values.
        originals: The examples' own pictures, uint8 [P, H, W, C].
        z: Means of q(z|x), float32 [P, D].
        means: Value of each dimension in them, [P, d].
        pictures: For each example its reconstruction, then the pictures of each dimension; empty if the page decodes
            them itself.
        fixed_labels: Names of labels that are part of z and keep their likeliest values; "" without any.
    """

    examples: Examples
    dimensions: list[Axis]
    values: list[list[float]]
    reach: str
    originals: np.ndarray
    z: np.ndarray
    means: np.ndarray
    pictures: list[ClassifiedPictures]
    fixed_labels: str = ""


def decode_traversals(
    session: Session, encoding_map: EncodingMap, examples: int, dimensions: int, live: bool = False
) -> Traversals:
    """Decode traversals of z from test examples, the most informative dimensions first.

    Args:
        session: The model.
        encoding_map: The map of its encodings.
        examples: Largest number of examples, P.
        dimensions: Largest number of dimensions, d.
        live: Whether the page decodes the pictures itself.
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
    moved = traverse(means, ranked, values)  # [P, d, STEPS, D]
    width = len(loaded.attributes.names) if loaded.attributes is not None else 0
    pictures = []
    for place, z in enumerate(() if live else moved):
        codes = shown.codes[place : place + 1] if shown.codes is not None else np.full((1, width), UNKNOWN, np.uint8)
        tokens = None if shown.tokens is None else shown.tokens[place : place + 1]
        every = torch.cat([means[place : place + 1], z.flatten(0, 1)])
        pictures.append(
            decode_and_classify(session, every, Descriptions(codes, tokens), "traversal", int(shown.rows[place]))
        )
    held = " and ".join(loaded.model.latent_modalities)
    originals, own = picture_bytes(loaded.observation.picture(shown.images)), project_onto_axes(means, ranked).numpy()
    return Traversals(shown, ranked, values.tolist(), reach, originals, means.float().numpy(), own, pictures, held)


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

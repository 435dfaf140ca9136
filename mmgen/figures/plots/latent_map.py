"""A map of a latent space of two dimensions: images decoded at its points, coloured by p(y|z) (VE Fig. 7).

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 7
"""

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.descriptions import Vocabulary
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.planes import Plane, draw_latent_map as map_figure
from mmgen.figures.plots._base import PlotOptions, accepts
from mmgen.figures.session import Session
from mmgen.generation import decode
from mmgen.generation.descriptions import complete_descriptions
from mmgen.generation.encode import encode_examples
from mmgen.generation.examples import read_examples

if TYPE_CHECKING:
    import torch

__all__ = ["latent_map"]

_TILES = Plane(cells=20)
_MOST_IMAGES = 2000
_MOST_COLOURS = 8


def _plane_points(session: Session, plane: Plane) -> "torch.Tensor":
    import torch

    return torch.from_numpy(plane.points.reshape(-1, 2)).to(session.model.device)


def _join_few(info: Vocabulary, table: np.ndarray) -> list[tuple[str, list[str], np.ndarray]]:
    """Return (title, values, shares [M, V]) for all attributes jointly if combinations are few, else for each one.

    Args:
        info: The attributes.
        table: Share of each value of each attribute [M, A, V].
    """
    sizes = [len(words) for words in info.values]
    if int(np.prod(sizes, dtype=np.float64)) <= _MOST_COLOURS:
        combinations = list(product(*(range(size) for size in sizes)))
        joint = np.stack(
            [np.prod([table[:, a, code] for a, code in enumerate(codes)], axis=0) for codes in combinations], 1
        )
        names = [", ".join(info.values[a][code] for a, code in enumerate(codes)) for codes in combinations]
        return [(" and ".join(info.names), names, joint)]
    return [(name, list(info.values[a]), table[:, a, : sizes[a]]) for a, name in enumerate(info.names)]


def _probabilities_by_text(session: Session, z: "torch.Tensor") -> list[tuple[str, list[str], np.ndarray]]:
    """Return (title, texts, p(y|z) [M, V]) for the texts of the dataset; [] if there are many."""
    text, dataset = session.model.text, session.group.dataset
    if text is None or text.name not in session.model.model.generates or dataset is None:
        return []
    with Dataset.open(dataset) as data:
        rows = data.split(session.model.settings.data.split, "train")[:_MOST_IMAGES]
        tokens = np.unique(data.read_text(text.name, rows), axis=0)
    if len(tokens) > _MOST_COLOURS:
        return []
    # In the order of the report's descriptions, so that a text has the same colour here and among the contours.
    known = [] if session.concepts.tokens is None else session.concepts.tokens.tolist()
    places = [known.index(row) if row in known else len(known) for row in tokens.tolist()]
    tokens = tokens[np.argsort(places, kind="stable")]
    descriptions_of = complete_descriptions(session.model, tokens=tokens)
    likelihoods = [
        session.model.model.log_likelihood(text.name, z[:, None], descriptions_of.batch(session.model, row))[:, 0].exp()
        for row in range(len(tokens))
    ]
    table = np.stack([each.float().cpu().numpy() for each in likelihoods], -1)
    return [("texts", descriptions_of.format_texts(session.model), table)]


def _nearest_labels(session: Session, z: np.ndarray) -> tuple[list[tuple[str, list[str], np.ndarray]], int]:
    """Label each z by the attributes of the training image encoded nearest to it (VE Fig. 7a); count the images."""
    info, main = session.model.attributes, session.model.observation
    if info is None or main is None or session.group.dataset is None:
        return [], 0
    with Dataset.open(session.group.dataset) as data:
        rows = data.split(session.model.settings.data.split, "train")[:_MOST_IMAGES]
        shown = read_examples(session.model, data, rows)
    assert shown.codes is not None
    codes = shown.codes
    means = encode_examples(session.model, shown).mean.cpu().numpy()
    closest = np.argmin(((z[:, None] - means[None]) ** 2).sum(-1), axis=1)
    most = max(map(len, info.values))
    hot = np.eye(most + 1)[np.minimum(codes[closest], most)][..., :most]  # nothing where unknown
    return _join_few(info, hot), len(rows)


def draw_latent_maps(session: Session) -> list[Picture]:
    """Draw maps of a two-dimensional z: decoded images, coloured by attributes or texts (VE Fig. 7)."""
    model, main = session.model.model, session.model.observation
    if main is None or main.picture_shape is None or model.conditional_on or model.discrete_layers:
        return []
    z = _plane_points(session, _TILES)
    images = main.pictures(decode.decode_means(session.model, main.name, z).cpu().numpy())
    side = _TILES.cells
    images = images.reshape(side, side, *images.shape[1:])
    info = session.model.attributes
    coloured, how = _probabilities_by_text(session, z), "coloured by p(y|z), black where none of these texts is likely"
    if info is not None and info.name in model.generates:
        coloured = _join_few(info, decode.decode_means(session.model, info.name, z).cpu().numpy())
        how = "coloured by p(y|z)"
    elif not coloured:
        coloured, searched = _nearest_labels(session, z.cpu().numpy())
        how = f"coloured by the nearest of {searched:,} training images, since the model has no p(y|z) of few values"
    return [
        Picture(
            f"Latent map: {title}",
            f"Mean of p({main.name}|z) at {side} x {side} points z, {how}.",
            map_figure(images, values.reshape(side, side, -1), names, _TILES),
        )
        for title, names, values in coloured
    ]


@accepts(shows="plane", lines=True)
def latent_map(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw the map of one model's z, coloured by all attributes, or by the first one if they have many combinations.

    Raises:
        UsageError: The model does not draw images from z alone.
    """
    session = sessions[0]
    with torch.inference_mode():
        found = draw_latent_maps(session)
    if not found:
        raise UsageError(
            f"{session.group.model} does not decode images from z alone, which this figure needs; use a model that does"
        )
    return found[0]

"""The latent maps of one model in a report: computes what latent_maps.py draws."""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.figures._contours import contours
from mmgen.figures._pictures import Picture, Session
from mmgen.figures.latent_maps import Plane, latent_map
from mmgen.generation.descriptions import complete

if TYPE_CHECKING:
    import torch

__all__ = ["latent_maps", "maps"]

_TILES = Plane(cells=20)
_MOST_IMAGES = 2000
_MOST_COLOURS = 8


def _points(session: Session, plane: Plane) -> "torch.Tensor":
    import torch

    return torch.from_numpy(plane.points.reshape(-1, 2)).to(session.model.device)


def _by_attribute(session: Session, z: "torch.Tensor") -> list[tuple[str, list[str], np.ndarray]]:
    """p(y|z) of all attributes together where their combinations are few, else of each: (title, values, [M, V])."""
    info = session.model.attributes
    assert info is not None
    table = session.model.model.mean(info.name, z).float().cpu().numpy()  # [M, A, V]
    sizes = [len(words) for words in info.values]
    if int(np.prod(sizes, dtype=np.float64)) <= _MOST_COLOURS:
        combinations = list(product(*(range(size) for size in sizes)))
        joint = np.stack(
            [np.prod([table[:, a, code] for a, code in enumerate(codes)], axis=0) for codes in combinations], 1
        )
        names = [", ".join(info.values[a][code] for a, code in enumerate(codes)) for codes in combinations]
        return [(" and ".join(info.names), names, joint)]
    return [(name, list(info.values[a]), table[:, a, : sizes[a]]) for a, name in enumerate(info.names)]


def _by_text(session: Session, z: "torch.Tensor") -> list[tuple[str, list[str], np.ndarray]]:
    """p(y|z) of the texts that the data have, where they are few: (title, texts, [M, V])."""
    text, dataset = session.model.text, session.group.dataset
    if text is None or text.name not in session.model.model.decoders or dataset is None:
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
    asked = complete(session.model, tokens=tokens)
    likelihoods = [
        session.model.model.log_likelihood(text.name, z[:, None], asked.batch(session.model, row))[:, 0].exp()
        for row in range(len(tokens))
    ]
    table = np.stack([each.float().cpu().numpy() for each in likelihoods], -1)
    return [("texts", asked.words(session.model), table)]


def _nearest(session: Session, z: np.ndarray) -> tuple[list[tuple[str, list[str], np.ndarray]], int]:
    """The label of the training image that maps closest to each z (VE Fig. 7a), and how many images were searched."""
    info, image = session.model.attributes, session.model.image
    if info is None or image is None or session.group.dataset is None:
        return [], 0
    with Dataset.open(session.group.dataset) as data:
        rows = data.split(session.model.settings.data.split, "train")[:_MOST_IMAGES]
        pixels = data.read_pixels(image.name, rows)
        codes = data.read_attributes(info.name, rows)
        text = session.model.text
        tokens = data.read_text(text.name, rows) if text is not None else None
    means = session.model.encode(pixels, codes, tokens).mean.float().cpu().numpy()
    closest = np.argmin(((z[:, None] - means[None]) ** 2).sum(-1), axis=1)
    found = []
    for a, name in enumerate(info.names):
        words = list(info.values[a])
        hot = np.eye(len(words) + 1)[np.minimum(codes[closest, a], len(words))][:, : len(words)]
        found.append((name, words, hot))
    return found, len(rows)


def latent_maps(session: Session) -> list[Picture]:
    """VE Fig. 7: what is decoded where, coloured by attribute."""
    model, image = session.model.model, session.model.image
    if image is None or model.conditional_on:
        return []
    z = _points(session, _TILES)
    images = model.mean(image.name, z).float().cpu().numpy()
    side = _TILES.cells
    images = images.reshape(side, side, *images.shape[1:])
    info = session.model.attributes
    coloured, how = _by_text(session, z), "coloured by p(y|z), black where none of these texts is likely"
    if info is not None and info.name in model.decoders:
        coloured, how = _by_attribute(session, z), "coloured by p(y|z)"
    elif not coloured:
        coloured, searched = _nearest(session, z.cpu().numpy())
        how = f"coloured by the nearest of {searched:,} training images, since the model has no p(y|z) of few values"
    return [
        Picture(
            f"Latent map: {title}",
            f"Mean of p(image|z) at {side} x {side} points z, {how}.",
            latent_map(images, values.reshape(side, side, -1), names, _TILES),
        )
        for title, names, values in coloured
    ]


def maps(session: Session) -> list[Picture]:
    """Maps of a model with two latent dimensions; none for others."""
    import torch

    if session.model.model.latent_size != 2:
        return []
    with torch.inference_mode():
        return latent_maps(session) + contours(session)

"""The latent maps of one model in a report: computes what latent_maps.py draws."""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.figures._pictures import Picture, Session, picture
from mmgen.figures.latent_maps import Concept, Plane, aggregate_density, latent_map, normalise, posterior_contours
from mmgen.notation import UNKNOWN
from mmgen.queries import batch_of_queries, format_query

if TYPE_CHECKING:
    import torch

__all__ = ["maps"]

_TILES = Plane(cells=20)
_CELLS = 120
_MOST_IMAGES = 2000
_MOST_COLOURS = 8
_CHUNK = 4096
_CONCEPTS = 3


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


def _nearest(session: Session, z: np.ndarray) -> tuple[list[tuple[str, list[str], np.ndarray]], int]:
    """The label of the training image that maps closest to each z (VE Fig. 7a), and how many images were searched."""
    info, image = session.model.attributes, session.model.image
    if info is None or image is None or session.group.dataset is None:
        return [], 0
    with Dataset.open(session.group.dataset) as data:
        rows = data.split(session.model.settings.data.split, "train")[:_MOST_IMAGES]
        pixels = data.read_image(image.name, rows).astype(np.float32) / data.images[image.name].scale
        codes = data.read_attributes(info.name, rows)
    means = session.model.encode(pixels).mean.float().cpu().numpy()
    closest = np.argmin(((z[:, None] - means[None]) ** 2).sum(-1), axis=1)
    found = []
    for a, name in enumerate(info.names):
        words = list(info.values[a])
        hot = np.eye(len(words) + 1)[np.minimum(codes[closest, a], len(words))][:, : len(words)]
        found.append((name, words, hot))
    return found, len(rows)


def _map_pictures(session: Session) -> list[Picture]:
    """VE Fig. 7: what is decoded where, coloured by attribute."""
    model, image = session.model.model, session.model.image
    if image is None or model.conditional_on:
        return []
    z = _points(session, _TILES)
    images = model.mean(image.name, z).float().cpu().numpy()
    side = _TILES.cells
    images = images.reshape(side, side, *images.shape[1:])
    info = session.model.attributes
    if info is not None and info.name in model.decoders:
        coloured, how = _by_attribute(session, z), "coloured by p(y|z)"
    else:
        coloured, searched = _nearest(session, z.cpu().numpy())
        how = f"coloured by the nearest of {searched:,} training images, since the model has no p(y|z)"
    return [
        picture(
            f"Latent map: {title}",
            f"Mean of p(image|z) at {side} x {side} points z, {how}.",
            latent_map(images, values.reshape(side, side, -1), names, _TILES),
        )
        for title, names, values in coloured
    ]


def _encodings(session: Session, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and log standard deviations [n, 2] of the posteriors of training images with this description."""
    info, image = session.model.attributes, session.model.image
    assert info is not None and image is not None and session.group.dataset is not None
    with Dataset.open(session.group.dataset) as data:
        rows = data.split(session.model.settings.data.split, "train")
        known = codes != UNKNOWN
        attributes = data.read_attributes(info.name, rows)
        matching = np.flatnonzero((attributes[:, known] == codes[known]).all(1))[:_MOST_IMAGES]
        pixels = data.read_image(image.name, rows[matching]).astype(np.float32) / data.images[image.name].scale
    if not len(matching):
        return np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)
    encoded = session.model.encode(pixels, attributes[matching])
    return encoded.mean.float().cpu().numpy(), encoded.log_sd.float().cpu().numpy()


def _concept(session: Session, codes: np.ndarray, mean: np.ndarray, log_sd: np.ndarray, plane: Plane) -> Concept:
    """The densities of one description on the plane."""
    import torch

    info, model = session.model.attributes, session.model.model
    assert info is not None
    condition = batch_of_queries(codes, info.name, str(session.model.device))
    z = _points(session, plane)[:, None]  # [M, 1, 2]: M samples for one description
    log_true = model.log_prior(z)[:, 0]
    if info.name in model.decoders:
        log_true = log_true + model.log_likelihood(info.name, z, condition)[:, 0]
    filled = {}
    if len(mean):
        filled["aggregate of the image posteriors"] = aggregate_density(mean, log_sd, plane)
    side = plane.cells
    for source in session.sources:
        log_prob = source.loaded.latent_log_prob(source.posterior)
        parts = [log_prob(part, condition)[:, 0] for part in torch.split(z, _CHUNK)]
        filled[source.name] = normalise(torch.cat(parts).reshape(side, side).cpu().numpy(), plane)
    true = normalise(log_true.reshape(side, side).cpu().numpy(), plane)
    return Concept(format_query(codes, info), true, filled)


def _contour_pictures(session: Session) -> list[Picture]:
    """CK Fig. 1: true posterior against the aggregate of the image posteriors, and what was fitted."""
    if session.group.dataset is None or session.model.attributes is None or not len(session.concepts):
        return []
    chosen = session.concepts[:_CONCEPTS]
    encodings = [_encodings(session, codes) for codes in chosen]
    # Large enough for nearly all images, wherever the model put them.
    outermost = [float(np.quantile(np.abs(mean).max(1), 0.98)) + 0.5 for mean, _ in encodings if len(mean)]
    plane = Plane(reach=max([3.0, *outermost]), cells=_CELLS)
    found = [_concept(session, codes, *encoded, plane) for codes, encoded in zip(chosen, encodings, strict=True)]
    counts = " and ".join(f"{len(mean):,}" for mean, _ in encodings)
    caption = (
        f"Dashed: true posterior, proportional to p(y|z) p(z), normalised on {_CELLS} x {_CELLS} points. "
        f"Filled: {', '.join(found[0].filled)}. Dark and pale hold 50 % and 90 %. The aggregates mix the posteriors "
        f"of {counts} training images."
    )
    figure = posterior_contours(found, plane)
    return [picture("Posteriors of descriptions in the latent plane", caption, figure)]


def maps(session: Session) -> list[Picture]:
    """Maps of a model with two latent dimensions; none for others."""
    import torch

    if session.model.model.latent_size != 2:
        return []
    with torch.inference_mode():
        return _map_pictures(session) + _contour_pictures(session)

"""True, aggregated and fitted posteriors in a latent space of two dimensions (CK Fig. 1).

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 1 and Section 5.5
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import torch_generator
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.drawing.planes import (
    ConceptDensities,
    Plane,
    aggregate_density,
    draw_posterior_contours,
    normalise_density,
)
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_path_of, select_descriptions
from mmgen.figures.session import Session
from mmgen.generation.descriptions import Descriptions
from mmgen.generation.encode import encode_examples
from mmgen.generation.examples import read_examples
from mmgen.posteriors import LayeredPosterior

if TYPE_CHECKING:
    import torch

__all__ = ["contours"]

_CELLS = 160
_MOST_IMAGES = 4000
_IMAGES = 256
_POINTS = 4096
_CONCEPTS = 4


@dataclass(frozen=True)
class _Encodings:
    """Posteriors q(z | x) of the training images x that match a description: means and log sd, [n, 2] each."""

    mean: np.ndarray
    log_sd: np.ndarray


def _matching_rows(session: Session, data: Dataset, descriptions: Descriptions) -> np.ndarray:
    """Return the rows of training examples that match a description, at most as many as the figure encodes."""
    model = session.model
    rows = data.split(model.settings.data.split, "train")
    if descriptions.tokens is not None and model.text is not None:
        matching = (data.read_text(model.text.name, rows) == descriptions.tokens[0]).all(1)
    else:
        assert model.attributes is not None
        known = descriptions.codes[0] != UNKNOWN
        attributes = data.read_attributes(model.attributes.name, rows)
        matching = (attributes[:, known] == descriptions.codes[0, known]).all(1)
    return np.asarray(rows[np.flatnonzero(matching)[:_MOST_IMAGES]])


def _encode_matching_images(session: Session, descriptions: Descriptions) -> _Encodings:
    model = session.model
    assert session.group.dataset is not None and model.observation is not None
    means, log_sds = [np.zeros((0, 2), np.float32)], [np.zeros((0, 2), np.float32)]
    with Dataset.open(session.group.dataset) as data:
        rows = _matching_rows(session, data, descriptions)
        for start in range(0, len(rows), _IMAGES):
            part = rows[start : start + _IMAGES]
            encoded = encode_examples(model, read_examples(model, data, part))
            if isinstance(encoded, LayeredPosterior):
                encoded = encoded.draw_lower_layers(
                    torch_generator(session.seed, "layers of contours", start, device=model.device)
                )
            means.append(encoded.mean.float().cpu().numpy())
            log_sds.append(encoded.log_sd.float().cpu().numpy())
    return _Encodings(np.concatenate(means), np.concatenate(log_sds))


def _true_posterior(session: Session, descriptions: Descriptions, z: "torch.Tensor", plane: Plane) -> np.ndarray:
    """Compute the true posterior p(z|y) of a description y on the plane: p(y|z) p(z), normalised (CK Section 5.5)."""
    import torch

    model = session.model.model
    condition = descriptions.batch(session.model, 0)
    described = session.model.text if descriptions.tokens is not None else session.model.attributes
    log_true = model.posterior(condition, ()).log_prob(z)[:, 0]
    if described is not None and described.name in model.generates:
        parts = [model.log_likelihood(described.name, part, condition)[:, 0] for part in torch.split(z, _POINTS)]
        log_true = log_true + torch.cat(parts)
    return normalise_density(log_true.reshape(plane.cells, plane.cells).float().cpu().numpy(), plane)


def _compute_densities(
    session: Session, descriptions: Descriptions, encodings: _Encodings, plane: Plane
) -> ConceptDensities:
    """Compute the true, the aggregated and the fitted posteriors of one description on the plane."""
    import torch

    z = torch.from_numpy(plane.points.reshape(-1, 1, 2)).to(session.model.device)  # [M, 1, 2]: for one description
    aggregate = aggregate_density(encodings.mean, encodings.log_sd, plane) if len(encodings.mean) else None
    fitted = {}
    for source in session.sources:
        posterior = source.loaded.posteriors[source.posterior]
        condition = descriptions.batch(source.loaded, 0)
        log_q = torch.cat([posterior.log_prob(part, condition)[:, 0] for part in torch.split(z, _POINTS)])
        fitted[source.name] = normalise_density(log_q.reshape(plane.cells, plane.cells).float().cpu().numpy(), plane)
    name = descriptions.format_texts(session.model)[0]
    return ConceptDensities(name, _true_posterior(session, descriptions, z, plane), aggregate, fitted)


def _fit_plane(encodings: list[_Encodings]) -> Plane:
    """Return a square of the latent space that covers the encodings of nearly all images."""
    outermost = [float(np.quantile(np.abs(each.mean).max(1), 0.98)) + 0.5 for each in encodings if len(each.mean)]
    return Plane(reach=max([3.0, *outermost]), cells=_CELLS)


def draw_contour_pictures(session: Session, descriptions: Descriptions | None = None) -> list[Picture]:
    """Draw contours of true, aggregated and fitted posteriors (CK Fig. 1); [] if z has not two dimensions.

    Args:
        session: A model of two latent dimensions with its fitted posteriors.
        descriptions: The descriptions; by default various ones.
    """
    import torch

    descriptions = session.concepts[:_CONCEPTS] if descriptions is None else descriptions
    model = session.model
    if (
        session.group.dataset is None
        or model.observation is None
        or model.model.latent_size != 2
        or not len(descriptions)
    ):
        return []
    with torch.inference_mode():
        each = [descriptions[row : row + 1] for row in range(len(descriptions))]
        encodings = [_encode_matching_images(session, one) for one in each]
        plane = _fit_plane(encodings)
        found = [_compute_densities(session, *pair, plane) for pair in zip(each, encodings, strict=True)]
    counts = ", ".join(f"{len(one.mean):,}" for one in encodings)
    caption = (
        f"Dashed: true posterior, proportional to p(y|z) p(z), normalised on {_CELLS} x {_CELLS} points. Filled: the "
        f"aggregate of the posteriors of {counts} training images with these words. Solid: fitted posteriors. Dark and "
        f"pale, thick and thin hold 50 % and 90 %. Holes: outside the smallest region that holds 95 % of the aggregate."
    )
    figure = draw_posterior_contours(found, plane)
    return [Picture("Posteriors of descriptions in the latent plane", caption, figure)]


@accepts("descriptions", "number", shows="plane", lines=True)
def contours(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw contours of the posteriors of a few descriptions of one model.

    Raises:
        UsageError: The model encodes no images.
    """
    session = sessions[0]
    dataset_path_of(session)
    found = draw_contour_pictures(session, select_descriptions(session, options, 4))
    if not found:
        raise UsageError(
            f"{session.group.model} encodes no images, whose posteriors this figure needs; use a model of images"
        )
    return found[0]

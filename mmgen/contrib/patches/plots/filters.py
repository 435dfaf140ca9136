"""Filters: the weights of layers next to the pixels, as small pictures.

References:
    Salakhutdinov's lecture on variational autoencoders, "Learned Filters" of a model of image patches
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import nn

from mmgen.artifacts import Dataset
from mmgen.contrib.patches.modalities.patch import PatchDescription
from mmgen.core.errors import UsageError
from mmgen.figures.drawing.picture import Picture
from mmgen.figures.plots._base import PlotOptions, accepts, dataset_path_of
from mmgen.figures.session import Session
from mmgen.modalities.image import ImageDescription
from mmgen.training.batches import DatasetRows

__all__ = ["filters"]

_SHOWN = 64
_EXAMPLES = 20_000  # that principal components are computed from
_INCHES = 3.2  # width of a block


@dataclass(frozen=True)
class _Pixels:
    """Pixels that filters read: the modality of pictures or patches, with its shape.

    Attributes:
        name: Name of the modality.
        size: Number of inputs of a network for one picture.
        shape: Height and width in pixels.
        dropped: Whether the last pixel is no input, since it is minus the sum of the others.
    """

    name: str
    size: int
    shape: tuple[int, int]
    dropped: bool

    def directions_as_pictures(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert directions of pixels [n, size] to pictures [n, H, W]; a dropped pixel is minus the others' sum."""
        if self.dropped:
            weights = np.concatenate([weights, -weights.sum(1, keepdims=True)], 1)
        return weights.reshape(-1, *self.shape)

    def weights_as_filters(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert a layer's weights [n, size] to filters [n, H, W], of mean 0 on patches with a dropped pixel."""
        if self.dropped:
            weights = np.concatenate([weights, np.zeros((len(weights), 1))], 1)
            weights = weights - weights.mean(1, keepdims=True)
        return weights.reshape(-1, *self.shape)


@accepts("number")
def filters(sessions: Sequence[Session], options: PlotOptions) -> Picture:
    """Draw weights of the encoder's first and the decoder's last layer, and principal components of the data.

    Raises:
        UsageError: The model has no fully connected layer next to grey pixels.
    """
    session, count = sessions[0], options.number or _SHOWN
    pixels = _pixel_modality(session)
    model = session.model.model
    decoder = dict(model.decoders.items()).get(pixels.name)
    inside = set(decoder.modules()) if decoder is not None else set()
    # The first one outside the decoder is the encoder's.
    readers = [m for m in model.modules() if isinstance(m, nn.Linear) and m.in_features == pixels.size]
    reader = next((layer for layer in readers if layer not in inside), None)
    outputs = [m for m in inside if isinstance(m, nn.Linear) and m.out_features % pixels.size == 0]
    writers = [m for m in (decoder.modules() if decoder is not None else ()) if m in outputs]
    if reader is None or not writers:
        raise UsageError(
            f"filters shows fully connected layers over pixels, but {session.group.model} has none over "
            f"{pixels.name}; train one with --set model.image_network.name=mlp"
        )
    components, examples = _principal_components(session, pixels, count)
    blocks = [
        ("encoder's first layer", pixels.weights_as_filters(_largest_rows(_to_numpy(reader.weight), count))),
        # Of several parameters a value, means come first.
        (
            "decoder's last layer, means",
            pixels.directions_as_pictures(_largest_rows(_to_numpy(writers[-1].weight)[: pixels.size].T, count)),
        ),
        ("principal components of the data", components),
    ]
    restored = ""
    if pixels.dropped:
        restored = "The dropped pixel, bottom right, is restored as minus the sum of the others and may be cut off. "
    caption = (
        f"The {count} units of largest weights, in that order; the {len(components)} first principal components of "
        f"{examples:,} training examples. {restored}Grey is 0, and each tile has its own scale."
    )
    return Picture("Filters", caption, _draw_figure(blocks))


def _pixel_modality(session: Session) -> _Pixels:
    described = session.model.settings.data.modalities
    for name, each in described.items():
        if isinstance(each, PatchDescription):
            return _Pixels(name, each.size, (each.side, each.side), dropped=True)
    main = session.model.image
    if isinstance(main, ImageDescription) and main.shape[0] == 1:
        return _Pixels(main.name, main.pixels, main.shape[1:], dropped=False)
    raise UsageError(
        f"filters shows weights over grey pictures or patches, but {session.group.model} has neither; use another model"
    )


def _to_numpy(weight: torch.Tensor) -> NDArray[np.float64]:
    return np.asarray(weight.detach().double().cpu().numpy())


def _largest_rows(weights: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the ``count`` rows of a matrix with the largest norms, largest first."""
    order = np.argsort(-np.square(weights).sum(1), kind="stable")
    return weights[order[:count]]


def _principal_components(session: Session, pixels: _Pixels, count: int) -> tuple[NDArray[np.float64], int]:
    """Compute principal components of training examples as pictures [n, H, W]; also return how many were read."""
    with Dataset.open(dataset_path_of(session)) as dataset:
        split = session.model.settings.data.split
        rows = DatasetRows.open_split(dataset, split, "train", torch.device("cpu"), (pixels.name,))
        examples = min(len(rows), _EXAMPLES)
        chosen = torch.linspace(0, len(rows) - 1, examples).round().long()
        parts = [rows.batch(some).values[pixels.name].flatten(1).double().numpy() for some in chosen.split(1000)]
    whole = pixels.directions_as_pictures(np.concatenate(parts)).reshape(examples, -1)
    variances, directions = np.linalg.eigh(np.cov(whole.T))
    order = np.argsort(-variances)[: min(count, pixels.size)]
    return directions[:, order].T.reshape(-1, *pixels.shape), examples


def _place_tiles(tiles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Join filters [n, H, W] to one picture, side by side, each scaled to [-1, 1], with NaN between them."""
    across = math.ceil(math.sqrt(len(tiles)))
    down = math.ceil(len(tiles) / across)
    height, width = tiles.shape[1] + 1, tiles.shape[2] + 1
    canvas = np.full((down * height - 1, across * width - 1), np.nan)
    for number, tile in enumerate(tiles):
        row, column = divmod(number, across)
        # Ignore the last pixel: a restored one may be so large that the others would look grey.
        largest = np.abs(tile.flat[:-1]).max() or 1.0
        canvas[row * height : row * height + height - 1, column * width : column * width + width - 1] = np.clip(
            tile / largest, -1, 1
        )
    return canvas


def _draw_figure(blocks: Sequence[tuple[str, NDArray[np.float64]]]) -> Figure:
    figure = Figure(figsize=(_INCHES * len(blocks), _INCHES + 0.4), layout="constrained")
    for place, (title, tiles) in enumerate(blocks, 1):
        axes = figure.add_subplot(1, len(blocks), place)
        axes.imshow(_place_tiles(tiles), cmap="gray", vmin=-1, vmax=1, interpolation="nearest")
        axes.set_title(title, fontsize=10)
        axes.set_axis_off()
    return figure

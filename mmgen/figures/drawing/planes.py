"""Maps of a latent space of two dimensions: decoded images, and densities of posteriors of descriptions.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762,
    Fig. 7
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Fig. 1 and Section 5.5
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.style import (
    INK,
    SMALL,
    category_colours,
    new_figure,
    outline_colour,
    style_axes,
    value_colours,
)

MASSES = (0.5, 0.9)
"""Contours enclose the smallest regions that hold these shares of the probability."""


_SHADES = (0.30, 0.75)
"""Opacity of the regions that hold 90 % and 50 %."""
_WIDTHS = (1.0, 1.9)
"""Widths of the lines around 90 % and 50 %."""
_PAPER = 0.68
"""Share of white in the background colours of a latent map."""


@dataclass(frozen=True)
class Plane:
    """Square of a two-dimensional latent space, centred on zero and divided into ``cells`` by ``cells`` cells.

    Attributes:
        reach: Half the side, in units of z; the standard normal prior has 99.7 % of each axis within 3.
        cells: Cells along each side.
    """

    reach: float = 3.0
    cells: int = 160

    @property
    def edges(self) -> np.ndarray:
        """Coordinates of the edges of the cells along a side [cells + 1], ascending."""
        return np.linspace(-self.reach, self.reach, self.cells + 1)

    @property
    def centres(self) -> np.ndarray:
        """Coordinates of the centres of the cells along a side [cells], ascending."""
        edges = self.edges
        return np.asarray(0.5 * (edges[1:] + edges[:-1]))

    @property
    def area(self) -> float:
        """Area of one cell of the square."""
        return (2 * self.reach / self.cells) ** 2

    @property
    def points(self) -> np.ndarray:
        """Values of z at the centres of all cells, float32 [cells, cells, 2]; z_2 ascends along the first axis."""
        first, second = np.meshgrid(self.centres, self.centres)
        return np.stack([first, second], -1).astype(np.float32)


def normalise_density(log_density: np.ndarray, plane: Plane) -> np.ndarray:
    """Convert unnormalised log densities at the cells to a density that integrates to 1 on the plane (CK Section 5.5).

    With ``log p(y|z) + log p(z)`` this is the true posterior p(z|y) on the grid.

    Args:
        log_density: Log density in nats, [cells, cells].
        plane: The plane.

    Returns:
        Density float64 [cells, cells], whose sum times the area of a cell is 1.
    """
    weights = np.exp(log_density.astype(np.float64) - np.max(log_density))
    return np.asarray(weights / (weights.sum() * plane.area))


def aggregate_density(mean: np.ndarray, log_sd: np.ndarray, plane: Plane) -> np.ndarray:
    """Compute the aggregated posterior on the plane: the mean density of the posteriors of images (CK Eq. 4).

    Each cell gets the mixture's exact mass, not its density at the centre: image posteriors are often narrower than any
    affordable cell, and would slip between the centres.

    Args:
        mean: Means of q(z|x) for the images of one description, [N, 2].
        log_sd: Natural logarithms of their standard deviations, [N, 2].
        plane: The plane.

    Returns:
        Density averaged over each cell, float64 [cells, cells]; mass outside the plane is left out.
    """
    import torch

    # [N, 2, cells]: a diagonal Gaussian's mass in a cell is the product of its masses in the two intervals.
    standard = (plane.edges - mean[..., None].astype(np.float64)) * np.exp(-log_sd[..., None].astype(np.float64))
    mass = np.diff(torch.special.ndtr(torch.from_numpy(standard)).numpy(), axis=-1)
    return np.asarray(mass[:, 1].T @ mass[:, 0]) / (len(mean) * plane.area)


def density_levels(density: np.ndarray, masses: Sequence[float] = MASSES) -> list[float]:
    """Return, ascending, the levels of a density above which the shares ``masses`` of its mass lie."""
    descending = np.sort(density.ravel())[::-1]
    cumulative = np.cumsum(descending) / descending.sum()
    return sorted(float(descending[np.searchsorted(cumulative, mass)]) for mass in masses)


def tint_images(images: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Colour grey images: their bright pixels become dark ink on paper of a pale colour.

    Args:
        images: float [..., 1 or 3, H, W] in [0, 1]; colour images keep their own colours.
        colours: float [..., 3] in [0, 1].

    Returns:
        float [..., H, W, 3].
    """
    last = np.moveaxis(np.clip(images, 0, 1), -3, -1)
    paper = _PAPER + (1 - _PAPER) * colours[..., None, None, :]
    if last.shape[-1] == 3:
        return np.asarray(last)
    return np.asarray((1 - last) * paper + last * (0.35 * colours[..., None, None, :]))


def _pale_colour(colour: str) -> tuple[float, float, float]:
    """Mix a colour with white, for the background of images on a map."""
    red, green, blue = to_rgb(colour)
    return _PAPER + (1 - _PAPER) * red, _PAPER + (1 - _PAPER) * green, _PAPER + (1 - _PAPER) * blue


def draw_latent_map(
    images: np.ndarray, probabilities: np.ndarray, names: Sequence[str], plane: Plane, title: str = ""
) -> Figure:
    """Draw a map of z: the image decoded at each cell, on a background coloured by p(y|z) (VE Fig. 7).

    Args:
        images: Images decoded at ``plane.points``, [cells, cells, C, H, W] in [0, 1].
        probabilities: p(y|z) at the same points, [cells, cells, V].
        names: The V values of y.
        plane: The plane, with one cell for each image.
        title: Title of the map.

    Raises:
        UsageError: Shapes do not match.
    """
    if probabilities.shape[:2] != images.shape[:2] or probabilities.shape[2] != len(names):
        raise UsageError(
            f"got p(y|z) {list(probabilities.shape)} for images {list(images.shape)} and {len(names)} values, "
            f"expected [{images.shape[0]}, {images.shape[1]}, {len(names)}]"
        )
    palette = value_colours(names)
    mixed = probabilities @ np.array([to_rgb(colour) for colour in palette])
    tiles = tint_images(images, mixed)
    if images.shape[2] == 3:  # photographs: the colour becomes a border of a pixel or two
        border = max(1, tiles.shape[2] // 16)
        framed = np.broadcast_to(mixed[:, :, None, None, :], tiles.shape).copy()
        framed[:, :, border:-border, border:-border] = tiles[:, :, border:-border, border:-border]
        tiles = framed
    rows, columns, height, width, _ = tiles.shape
    # z_2 ascends upwards, images read downwards.
    mosaic = tiles[::-1].transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, 3)
    figure = new_figure(5.4, 5.9)
    axes = style_axes(figure.add_subplot(), title, "$z_1$", "$z_2$")
    reach = plane.reach
    axes.imshow(mosaic, extent=(-reach, reach, -reach, reach), interpolation="antialiased")
    handles = [
        Patch(facecolor=_pale_colour(colour), edgecolor=outline_colour(colour), label=name)
        for colour, name in zip(palette, names, strict=True)
    ]
    # About 80 letters fit in a row below the map, and each entry takes eight for its patch.
    columns_of_key = max(1, min(5, 80 // (8 + max(len(name) for name in names))))
    figure.legend(handles=handles, loc="outside lower center", ncols=columns_of_key, frameon=False, fontsize=SMALL)
    return figure


@dataclass(frozen=True)
class ConceptDensities:
    """Densities of the posteriors of one description at the cells of a plane, each float [cells, cells].

    Attributes:
        name: The description.
        true: p(z|y), normalised on the grid.
        aggregate: Mixture of the posteriors of its images; None without images.
        fitted: Densities of fitted posteriors, by name.
    """

    name: str
    true: np.ndarray
    aggregate: np.ndarray | None = None
    fitted: dict[str, np.ndarray] = field(default_factory=dict)


def share_outside(density: np.ndarray, reference: np.ndarray, mass: float = 0.95) -> float:
    """Return the share of ``density`` outside the smallest region that holds the share ``mass`` of ``reference``."""
    (level,) = density_levels(reference, [mass])
    return float(density[reference < level].sum() / density.sum())


def _contour_levels(density: np.ndarray) -> list[float]:
    """Return the levels at which to draw contours of a density; [] if its mass is off the plane or in one cell."""
    if not density.sum() > 0:
        return []
    levels = density_levels(density)
    return levels if np.all(np.diff(levels) > 0) and levels[0] > 0 else []


def _fill_contours(axes: Axes, plane: Plane, density: np.ndarray, colour: str) -> None:
    levels = _contour_levels(density)
    if levels:
        layers = [*levels, float(density.max()) * 1.001]
        shades = [(*to_rgb(colour), alpha) for alpha in _SHADES]
        axes.contourf(plane.centres, plane.centres, density, levels=layers, colors=shades)


def _draw_contours(axes: Axes, plane: Plane, density: np.ndarray, colour: str, style: str) -> None:
    levels = _contour_levels(density)
    if levels:
        drawn = axes.contour(
            plane.centres, plane.centres, density, levels=levels, colors=colour, linewidths=_WIDTHS, linestyles=style
        )
        # A white edge keeps lines apart from the filled regions of their own colour.
        drawn.set_path_effects([Stroke(linewidth=3.4, foreground="white", alpha=0.7), Normal()])


def _add_legend(figure: Figure, concepts: Sequence[ConceptDensities], palette: Sequence[str]) -> None:
    def line(style: Literal["-", "--"], width: float, label: str) -> Line2D:
        return Line2D([], [], color=INK, linestyle=style, linewidth=width, label=label)

    handles: list[Line2D | Patch] = [
        Patch(color=colour, label=concept.name) for colour, concept in zip(palette, concepts, strict=True)
    ]
    handles.append(line("--", _WIDTHS[1], "true posterior p(z|y): 50 % inside; thin 90 %"))
    if any(concept.aggregate is not None for concept in concepts):
        handles.append(Patch(facecolor=INK, alpha=_SHADES[1], label="aggregate of images: 50 % inside; pale 90 %"))
    if any(concept.fitted for concept in concepts):
        handles.append(line("-", _WIDTHS[1], "fitted q(z|y): 50 % inside; thin 90 %"))
    columns = 2 if max(len(concept.name) for concept in concepts) > 30 else 3
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=SMALL)


def _format_share_outside(concepts: Sequence[ConceptDensities], title: str) -> str:
    """Format for a panel's title the share of the fitted densities that lies where hardly any image is encoded."""
    pairs = [(c.fitted[title] if title else c.true, c.aggregate) for c in concepts if not title or title in c.fitted]
    shares = [100 * share_outside(density, aggregate) for density, aggregate in pairs if aggregate is not None]
    return f"{np.mean(shares):.0f} % in holes of the aggregate" if shares else ""


def draw_posterior_contours(concepts: Sequence[ConceptDensities], plane: Plane) -> Figure:
    """Draw contours of the posteriors of descriptions (CK Fig. 1): a panel for the true, and for each fitted posterior.

    Filled regions in each panel are the aggregate of the image posteriors; dark and pale ones hold 50 % and 90 % of it.
    Lines are the true posterior (dashed) or a fitted one (solid). From white places inside the lines the posterior
    draws z that no image is encoded to.

    Args:
        concepts: Densities of one or more descriptions with the same fitted posteriors.
        plane: The plane of the densities.
    """
    palette = value_colours([concept.name for concept in concepts])
    if any(outline_colour(colour) != colour for colour in palette):  # lines on white have no rim
        palette = category_colours(len(concepts))
    titles = ["", *dict.fromkeys(title for concept in concepts for title in concept.fitted)]
    columns = min(len(titles), 3)
    rows = math.ceil(len(titles) / columns)
    figure = new_figure(3.7 * columns, 4.0 * rows + 0.9)
    for position, title in enumerate(titles):
        axes = style_axes(figure.add_subplot(rows, columns, position + 1), "", "$z_1$", "$z_2$")
        heading = title or "p(z|y): true posterior"
        axes.set_title(
            f"{heading}\n{_format_share_outside(concepts, title)}".rstrip(), loc="left", fontsize=9.5, color=INK
        )
        axes.set_aspect("equal")
        axes.set_xlim(-plane.reach, plane.reach)
        axes.set_ylim(-plane.reach, plane.reach)
        for concept, colour in zip(concepts, palette, strict=True):
            if concept.aggregate is not None:
                _fill_contours(axes, plane, concept.aggregate, colour)
        for concept, colour in zip(concepts, palette, strict=True):
            if not title:
                _draw_contours(axes, plane, concept.true, colour, "--")
            elif title in concept.fitted:
                _draw_contours(axes, plane, concept.fitted[title], colour, "-")
    _add_legend(figure, concepts, palette)
    return figure

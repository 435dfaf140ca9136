"""Values that are called by colours are drawn in these, wherever colours stand for values."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

from mmgen.figures.drawing.planes import ConceptDensities, Plane, draw_latent_map, draw_posterior_contours
from mmgen.figures.drawing.style import (
    MUTED,
    category_colours,
    hex_to_rgb,
    new_figure,
    outline_colour,
    style_axes,
    value_colours,
)
from mmgen.figures.plots.embedding import Colouring, _scatter

NAMED = {"red": "#ff0000", "black": "#000000", "white": "#ffffff", "Light Blue": "#add8e6", "dark-green": "#006400"}


def test_names_of_colours_are_their_colours() -> None:
    assert value_colours(list(NAMED)) == list(NAMED.values())
    assert value_colours([f"colour={name}" for name in NAMED]) == list(NAMED.values())
    assert value_colours(["#0F0", "#123456", "'light grey'"]) == ["#00ff00", "#123456", "#d3d3d3"]


@pytest.mark.parametrize(
    "words",
    [["red", "round"], ["red", "Red"], ["grey", "gray"], ["cyan", "aqua"], ["red", ""], ["", "#12"], ["C0", "r"]],
)
def test_what_is_no_colour_or_twice_the_same_gets_distinct_ones(words: list[str]) -> None:
    """Single letters and numbers are matplotlib's own names, and no words for colours."""
    assert value_colours(words) == category_colours(2)


def test_what_is_hardly_seen_on_white_has_a_rim() -> None:
    assert [outline_colour(colour) for colour in ("#ffffff", "#ffff00", "#fffff0")] == [MUTED] * 3
    assert all(outline_colour(colour) == colour for colour in ("#000000", "#ff0000", "#ffa500", *category_colours(10)))


def test_points_of_a_map_have_the_colours_of_their_values() -> None:
    figure = new_figure(4, 4)
    axes = style_axes(figure.add_subplot())
    codes = np.array([0, 1, 2, 1])
    _scatter(figure, axes, np.zeros((4, 2)), Colouring(codes, ("black", "white", "red")))
    points = axes.collections[0]
    assert [to_hex(colour) for colour in points.get_facecolors()] == ["#000000", "#ffffff", "#ff0000", "#ffffff"]
    assert [to_hex(colour) for colour in points.get_edgecolors()] == ["#000000", MUTED, "#ff0000", MUTED]
    assert points.get_linewidths()[0] > 0, "or white points were gone"


def test_a_map_of_pictures_is_tinted_by_the_colours_of_its_values() -> None:
    """Where p(red | z) is 1 the paper is reddest, and so for blue; a black picture would show no paper."""
    certain = np.eye(2)[None].repeat(2, 0)  # [2, 2, V]: red to the left, blue to the right
    figure = draw_latent_map(np.zeros((2, 2, 1, 4, 4)), certain, ["red", "blue"], Plane(cells=2), "colour")
    mosaic = np.asarray(figure.axes[0].images[0].get_array())
    assert mosaic[0, 0, 0] > mosaic[0, 0, 2] and mosaic[0, -1, 2] > mosaic[0, -1, 0]


def test_lines_are_in_the_colours_that_descriptions_name_unless_they_would_be_lost_on_white() -> None:
    density = np.exp(-(np.square(Plane(cells=20).points).sum(-1)))
    for names, expected in ((("red", "blue"), ["#ff0000", "#0000ff"]), (("red", "white"), category_colours(2))):
        concepts = [ConceptDensities(f"colour={name}", density, None, {}) for name in names]
        figure = draw_posterior_contours(concepts, Plane(cells=20))
        patches = [to_hex(patch.get_facecolor()) for patch in figure.legends[0].get_patches()]
        assert patches[:2] == expected and hex_to_rgb(patches[0])

"""Latent maps against closed forms, and the colours that stand for values in them and elsewhere."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from mmgen.core.errors import UsageError
from mmgen.figures.drawing.planes import (
    ConceptDensities,
    Plane,
    aggregate_density,
    density_levels,
    draw_latent_map,
    draw_posterior_contours,
    normalise_density,
    share_outside,
    tint_images,
)
from mmgen.figures.drawing.style import (
    MUTED,
    category_colours,
    hex_to_rgb,
    new_figure,
    outline_colour,
    render_figure,
    style_axes,
    value_colours,
)
from mmgen.figures.plots.embedding import Colouring, _scatter


def _gaussian(points: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    centred = points - mean
    quadratic = np.einsum("...i,ij,...j", centred, np.linalg.inv(covariance), centred)
    return np.exp(-0.5 * quadratic) / (2 * math.pi * math.sqrt(np.linalg.det(covariance)))


def _linear_gaussian() -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """z ~ N(0, I), y | z ~ N(w.z, s^2): posterior precision I + w w^T / s^2, mean C w y / s^2."""
    w, s, y = np.array([1.2, -0.7]), 0.6, 0.9
    covariance = np.linalg.inv(np.eye(2) + np.outer(w, w) / s**2)
    return covariance @ w * y / s**2, covariance, w, s, y


def test_true_posterior_is_the_closed_form_one() -> None:
    mean, covariance, w, s, y = _linear_gaussian()
    plane = Plane(reach=5.0, cells=200)
    z = plane.points.astype(np.float64)
    # As the figure computes it: log p(y|z) + log p(z), up to constants, normalised on the grid.
    density = normalise_density(-0.5 * ((y - z @ w) / s) ** 2 - 0.5 * (z**2).sum(-1) + 17.0, plane)
    assert density.sum() * plane.area == pytest.approx(1)
    np.testing.assert_allclose(density, _gaussian(z, mean, covariance), atol=2e-5)


def test_contours_enclose_their_share_of_a_gaussian() -> None:
    mean, covariance, *_ = _linear_gaussian()
    plane = Plane(reach=5.0, cells=400)
    density = _gaussian(plane.points.astype(np.float64), mean, covariance)
    # In two dimensions the region of mass m ends where the density is (1 - m) of its peak.
    peak = 1 / (2 * math.pi * math.sqrt(np.linalg.det(covariance)))
    assert density_levels(density, (0.5, 0.9)) == pytest.approx([0.1 * peak, 0.5 * peak], rel=0.02)


def test_aggregate_of_wide_posteriors_is_their_mixture() -> None:
    plane = Plane(reach=4.0, cells=200)
    mean = np.array([[1.0, 0.5], [-1.0, 0.0]])
    log_sd = np.log(np.array([[0.5, 0.8], [0.6, 0.4]]))
    points = plane.points.astype(np.float64)
    expected = sum(_gaussian(points, m, np.diag(np.exp(2 * s))) for m, s in zip(mean, log_sd, strict=True)) / 2
    np.testing.assert_allclose(aggregate_density(mean, log_sd, plane), expected, atol=2e-3)


def test_aggregate_keeps_the_mass_of_posteriors_narrower_than_a_cell() -> None:
    plane = Plane(reach=3.0, cells=30)
    # Off the edges between cells, so that each posterior lies in one cell.
    mean = np.random.default_rng(0).integers(-12, 12, (50, 2)) * 0.2 + 0.13
    density = aggregate_density(mean, np.full((50, 2), math.log(1e-3)), plane)
    assert density.sum() * plane.area == pytest.approx(1)
    counts, *_ = np.histogram2d(mean[:, 1], mean[:, 0], bins=[plane.edges, plane.edges])
    np.testing.assert_allclose(density * plane.area * 50, counts, atol=1e-6)


def test_mass_outside_the_plane_is_left_out() -> None:
    density = aggregate_density(np.array([[0.0, 0.0], [9.0, 0.0]]), np.log(np.full((2, 2), 0.1)), Plane())
    assert density.sum() * Plane().area == pytest.approx(0.5)


def test_points_run_along_z1_in_columns_and_z2_in_rows() -> None:
    plane = Plane(reach=2.0, cells=4)
    assert plane.points[0, 3].tolist() == [1.5, -1.5]
    assert plane.points[3, 0].tolist() == [-1.5, 1.5]


def test_tint_puts_full_ink_on_pale_paper() -> None:
    blue = np.array([0.0, 0.4, 0.7])
    out = tint_images(np.array([[[0.0, 1.0]]]), blue)
    assert np.allclose(out[0, 0], 0.68 + 0.32 * blue)
    assert np.allclose(out[0, 1], 0.35 * blue)
    assert np.allclose(tint_images(np.full((3, 1, 1), 0.3), blue), 0.3)


def test_map_shows_each_value_where_it_is_likely() -> None:
    plane = Plane(cells=6)
    probabilities = np.zeros((6, 6, 2))
    probabilities[..., 0] = plane.points[..., 0] < 0  # the left half is "even"
    probabilities[..., 1] = 1 - probabilities[..., 0]
    image = (
        np.asarray(render_figure(draw_latent_map(np.zeros((6, 6, 1, 8, 8)), probabilities, ["even", "odd"], plane)))
        / 255
    )
    papers = [0.68 + 0.32 * np.array(to_rgb(colour)) for colour in category_colours(2)]
    where = [np.argwhere(np.abs(image - paper).max(-1) < 0.01) for paper in papers]
    area = image.shape[0] * image.shape[1]
    assert all(len(found) > 0.2 * area for found in where)
    assert np.median(where[0][:, 1]) < np.median(where[1][:, 1])


def test_map_refuses_shapes_that_do_not_match() -> None:
    with pytest.raises(UsageError, match=r"expected \[4, 4, 3\]"):
        draw_latent_map(np.zeros((4, 4, 1, 8, 8)), np.zeros((4, 4, 2)), ["a", "b", "c"], Plane(cells=4))


def test_contours_draw_every_case() -> None:
    plane = Plane(cells=40)
    smooth = normalise_density(-(plane.points**2).sum(-1), plane)
    spike = np.zeros_like(smooth)
    spike[3, 3] = 1.0
    fitted = {"q_true": smooth, "q_agg": spike}
    with_fit = draw_posterior_contours(
        [ConceptDensities("big", smooth, spike, fitted), ConceptDensities("small", smooth)], plane
    )
    assert len(with_fit.axes) == 3
    assert len(draw_posterior_contours([ConceptDensities("big", smooth, smooth)], plane).axes) == 1
    assert len(draw_posterior_contours([ConceptDensities("big", smooth)], plane).axes) == 1
    render_figure(with_fit, 50)


def test_panels_say_how_much_lies_in_holes() -> None:
    """A true posterior N(0, I) over an aggregate that fills the right half of it: half lies where no image maps."""
    plane = Plane(reach=5.0, cells=200)
    log_prior = -0.5 * (plane.points.astype(np.float64) ** 2).sum(-1)
    true = normalise_density(log_prior, plane)
    right = np.where(plane.points[..., 0] > 0, true, 0.0)
    # The smallest region with 95 % of the half is the half disc of radius sqrt(-2 ln 0.05): it holds 47.5 % of p(z|y).
    assert share_outside(true, right) == pytest.approx(0.525, abs=0.005)
    assert share_outside(right, right) == pytest.approx(0.05, abs=0.005)
    figure = draw_posterior_contours([ConceptDensities("big", true, right, {"q_agg": right})], plane)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        "p(z|y): true posterior\n52 % in holes of the aggregate",
        "q_agg\n5 % in holes of the aggregate",
    ]


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

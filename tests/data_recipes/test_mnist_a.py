"""MNIST-A: labels, factors and pictures agree with one another and with the protocol."""

import numpy as np
import pytest
from scipy import stats

from mmgen.data_recipes._streams import stream_keys
from mmgen.data_recipes.mnist_a import MnistA

N = 6000
_SQUARE = np.zeros((28, 28), np.uint8)
_SQUARE[4:24, 4:24] = 255
_BAR = np.zeros((28, 28), np.uint8)
_BAR[4:24, 12:16] = 255


def draw(digit: np.ndarray, n: int, seed: int = 0, **settings):
    """Grey images [n, H, W], codes by attribute name, factors by name, of a synthetic digit."""
    recipe = MnistA(**settings)
    keys = stream_keys(seed, "mnist-a", np.arange(n))
    images, codes, factors = recipe.render(np.repeat(digit[None], n, 0), np.zeros(n, np.uint8), keys)
    names = {name: codes[:, column] for column, name in enumerate(recipe.vocabulary)}
    return images, names, factors


@pytest.fixture(scope="module")
def bars():
    return draw(_BAR, N)


@pytest.fixture(scope="module")
def squares():
    return draw(_SQUARE, 2000)


def value(name: str, text: str) -> int:
    return MnistA.vocabulary[name].index(text)


def test_vocabulary_is_the_protocols():
    sizes = [len(values) for values in MnistA.vocabulary.values()]
    assert list(MnistA.vocabulary) == ["digit", "scale", "orientation", "location"]
    assert sizes == [10, 2, 3, 4]
    assert int(np.prod(sizes)) == 240


def test_labels_are_uniform_and_independent(bars):
    _, codes, _ = bars
    together = np.ravel_multi_index((codes["scale"], codes["orientation"], codes["location"]), (2, 3, 4))
    assert stats.chisquare(np.bincount(together, minlength=24)).pvalue > 1e-4


@pytest.mark.parametrize(("label", "mean"), [("big", 0.9), ("small", 0.6)])
def test_scale_is_a_truncated_normal(bars, label, mean):
    _, codes, factors = bars
    scale = factors["scale"][codes["scale"] == value("scale", label)]
    exact = stats.truncnorm((0.4 - mean) / 0.1, (1.0 - mean) / 0.1, loc=mean, scale=0.1)
    assert scale.min() >= 0.4
    assert scale.max() <= 1.0
    assert stats.kstest(scale, exact.cdf).pvalue > 1e-4


def test_angle_is_exactly_zero_or_normal_about_45_degrees(bars):
    _, codes, factors = bars
    angle, turn = factors["angle"], codes["orientation"]
    assert np.all(angle[turn == value("orientation", "upright")] == 0)
    for label, mean in (("clockwise", 45), ("counterclockwise", -45)):
        some = angle[turn == value("orientation", label)]
        assert np.abs(some).max() <= 90
        assert stats.kstest(some, stats.norm(mean, 10).cdf).pvalue > 1e-4


def test_what_is_labelled_clockwise_looks_turned_clockwise(bars):
    images, codes, factors = bars
    images, codes, factors = images[::4], {k: v[::4] for k, v in codes.items()}, {k: v[::4] for k, v in factors.items()}
    y, x = np.mgrid[:64, :64].astype(float)
    mass = images / images.sum(axis=(1, 2), keepdims=True)
    dx = x - (mass * x).sum((1, 2), keepdims=True)
    dy = y - (mass * y).sum((1, 2), keepdims=True)
    xx, xy, yy = ((mass * product).sum((1, 2)) for product in (dx * dx, dx * dy, dy * dy))
    # Rows grow downwards: a bar turned clockwise, "/", has its top at the right.
    lean = np.degrees(0.5 * np.arctan2(-2 * xy, yy - xx))
    labels = np.array(MnistA.vocabulary["orientation"])[codes["orientation"]]
    certain = np.abs(factors["angle"]) < 75  # nearer to lying flat, the small bars' main axis is noisy
    assert np.all(lean[certain & (labels == "clockwise")] > 5)
    assert np.all(lean[certain & (labels == "counterclockwise")] < -5)
    assert np.abs(lean[labels == "upright"]).max() < 2
    assert np.abs(lean - factors["angle"])[certain].max() < 5


def test_centre_factors_are_the_middle_of_the_ink_which_lies_on_the_canvas(squares):
    images, _, factors = squares
    for axis, name in ((1, "centre_x"), (2, "centre_y")):
        inked = images.any(axis=axis)
        first = inked.argmax(axis=1)
        last = inked.shape[1] - inked[:, ::-1].argmax(axis=1)
        assert np.array_equal(factors[name], (first + last) / 2)


def test_no_ink_is_cut_off_at_the_edge(squares):
    images, _, factors = squares
    # Pasting beyond an edge would lose ink: a square's area is its scale's, wherever it lies and however it is turned.
    grid = np.array([[max(1, round(28 * s)) / 28] for s in factors["scale"].tolist()])[:, 0]
    upright = factors["angle"] == 0
    area = images.sum(axis=(1, 2), dtype=float) / _SQUARE.sum()
    assert np.allclose(area[upright], grid[upright] ** 2, rtol=0.02)
    assert np.allclose(area[~upright], factors["scale"][~upright] ** 2, rtol=0.15)


def test_locations_are_normal_about_the_moved_quadrant_centres(bars):
    _, codes, factors = bars
    # Upright small bars are far enough from the edges for truncation to be slight.
    chosen = (codes["orientation"] == value("orientation", "upright")) & (codes["scale"] == value("scale", "small"))
    for label, (x, y) in {
        "top-left": (12, 12),
        "top-right": (52, 12),
        "bottom-left": (12, 52),
        "bottom-right": (52, 52),
    }.items():
        some = chosen & (codes["location"] == value("location", label))
        for name, mean in (("centre_x", x), ("centre_y", y)):
            centre = factors[name][some]
            assert abs(centre.mean() - mean) < 1.0
            assert 3.2 < centre.std() < 4.5
            assert np.all((centre < 32) == (mean < 32))


def test_centres_are_truncated_where_the_ink_would_leave_the_canvas(squares):
    _, codes, factors = squares
    # 28-pixel-canvas squares turned by 45 degrees reach 14 pixels from their centre at scale 1.
    large = (factors["scale"] > 0.95) & (np.abs(np.abs(factors["angle"]) - 45) < 10)
    left = large & (codes["location"] % 2 == 0)
    assert left.sum() > 20
    assert factors["centre_x"][left].min() >= 12.5
    assert factors["centre_x"][left].max() < 32


def test_big_squares_are_larger_by_the_ratio_of_scales(squares):
    images, codes, factors = squares
    upright = factors["angle"] == 0
    side = np.sqrt(images.sum(axis=(1, 2), dtype=float) / 255)
    big, small = (side[upright & (codes["scale"] == value("scale", label))].mean() for label in ("big", "small"))
    exact = [stats.truncnorm((0.4 - m) / 0.1, (1 - m) / 0.1, loc=m, scale=0.1).mean() for m in (0.9, 0.6)]
    assert big / small == pytest.approx(exact[0] / exact[1], rel=0.03)


def test_another_canvas_is_a_scaled_copy():
    _, codes, factors = draw(_BAR, 500)
    images, smaller_codes, smaller = draw(_BAR, 500, size=32)
    assert images.shape == (500, 32, 32)
    assert all(np.array_equal(codes[name], smaller_codes[name]) for name in codes)
    assert np.array_equal(factors["scale"], smaller["scale"])
    assert np.array_equal(factors["angle"], smaller["angle"])
    for name in ("centre_x", "centre_y"):  # the same draws, to the nearest pixel of the smaller canvas
        assert np.abs(factors[name] / 2 - smaller[name]).max() < 1.5


def test_grey_and_binary_images_share_labels_and_shapes(small_mnist):
    settings = {"mnist": small_mnist, "number": 40}
    digits = np.repeat(_BAR[None], 40, 0)
    arguments = (digits, np.zeros(40, np.uint8), {}, np.arange(40), 0)
    binary, grey = MnistA(**settings).make_rows(*arguments), MnistA(**settings, binarise=False).make_rows(*arguments)
    assert binary.columns["image"].shape == (40, 64 * 64 // 8)
    assert grey.columns["image"].shape == (40, 1, 64, 64)
    assert np.array_equal(binary.columns["attributes"], grey.columns["attributes"])
    on = np.unpackbits(binary.columns["image"], axis=1).reshape(40, 1, 64, 64)
    assert np.all(grey.columns["image"][on == 1] > 0)
    assert np.all(on[grey.columns["image"] == 255] == 1)

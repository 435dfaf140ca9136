"""Rendering: what is turned clockwise looks turned clockwise, and pixels are drawn with their intensity."""

import numpy as np
import pytest

from mmgen.data_recipes._digits import binarise, pack_bits, transform_digits
from mmgen.data_recipes._streams import stream_keys

BAR = np.zeros((28, 28), np.uint8)
BAR[4:24, 12:16] = 255  # upright, about the centre

# An L's foot points right, so a turned L also tells mirroring from turning.
ELL = np.zeros((28, 28), np.uint8)
ELL[4:24, 8:11] = 255
ELL[21:24, 8:20] = 255


def turned(digit: np.ndarray, angle: float, factor: float = 1.0) -> np.ndarray:
    (patch,) = transform_digits(digit[None], np.array([factor]), np.array([angle], np.float32))
    return np.asarray(patch, np.float64)


def lean(image: np.ndarray) -> float:
    """Angle of the main axis in degrees, clockwise from upright, by second moments (rows grow downwards)."""
    y, x = np.mgrid[: image.shape[0], : image.shape[1]].astype(float)
    mass = image / image.sum()
    x, y = x - (mass * x).sum(), y - (mass * y).sum()
    covariance = [(mass * x * x).sum(), (mass * x * y).sum(), (mass * y * y).sum()]
    # Upwards is -y; leaning clockwise moves the top to the right: x grows as y falls.
    return float(np.degrees(0.5 * np.arctan2(-2 * covariance[1], covariance[2] - covariance[0])))


@pytest.mark.parametrize("angle", [0.0, 20.0, 45.0, 70.0, -20.0, -45.0, -70.0])
def test_a_bar_leans_by_its_angle_clockwise(angle):
    assert lean(turned(BAR, angle)) == pytest.approx(angle, abs=0.7)


@pytest.mark.parametrize("factor", [0.4, 0.6, 0.9, 1.0, 2.0])
def test_size_follows_the_factor(factor):
    # Each side to the next pixel, and bicubic smoothing adds at most two on each side.
    height, width = turned(BAR, 0.0, factor).shape
    assert 20 * factor - 1 <= height <= 20 * factor + 4
    assert 4 * factor - 1 <= width <= 4 * factor + 4
    # Ink grows with the square of the factor, up to the rounding of the whole grid to pixels.
    grid = round(28 * factor) / 28
    assert turned(BAR, 0.0, factor).sum() == pytest.approx(BAR.sum() * grid**2, rel=0.02)


def test_rotation_cuts_nothing_off():
    corner = np.zeros((28, 28), np.uint8)
    corner[1:6, 1:6] = 255  # one pixel from the edge: bicubic interpolation blends an edge itself with nothing
    corner[22:27, 22:27] = 255
    for angle in (17.0, 45.0, -60.0):
        assert turned(corner, angle).sum() == pytest.approx(corner.sum(), rel=0.02)


def test_binarisation_draws_each_pixel_with_its_intensity():
    levels = np.array([0, 1, 64, 128, 254, 255], np.uint8)
    images = np.broadcast_to(levels, (60_000, 1, 6)).copy()
    on = binarise(images, stream_keys(0, "b", np.arange(len(images))))
    assert set(np.unique(on)) == {0, 1}
    share, expected = on.mean(axis=(0, 1)), levels / 255
    assert share[0] == 0
    assert share[-1] == 1
    assert np.all(np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / len(images)))
    # Pixels of one image are drawn independently.
    assert abs(np.corrcoef(on[:, 0, 2], on[:, 0, 3])[0, 1]) < 5 / np.sqrt(len(images))


def test_binarisation_does_not_depend_on_the_company():
    images = np.random.default_rng(0).integers(0, 256, (20, 5, 7), np.uint8)
    keys = stream_keys(0, "b", np.arange(20))
    together = binarise(images, keys)
    assert np.array_equal(
        np.concatenate([binarise(images[3:9], keys[3:9]), binarise(images[9:], keys[9:])]), together[3:]
    )


def test_packing_is_row_by_row_first_pixel_in_the_highest_bit():
    image = np.zeros((1, 3, 3), np.uint8)
    image[0, 0, 0] = image[0, 2, 2] = 1
    assert pack_bits(image).tolist() == [[0b10000000, 0b10000000]]

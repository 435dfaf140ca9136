"""The share of copies among pictures that equal training pictures, nearly equal them, or are new."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mmgen.evaluation.training_pictures import (
    NEIGHBOURS,
    Block,
    CopyShare,
    compare_with_held_out,
    find_nearest,
    pool_pixels,
    share_interval,
)
from mmgen.metrics.copies import _explain_floor

Points = NDArray[np.float32]

SIZE = 8


def normal(count: int, seed: int, size: int = SIZE) -> Points:
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)


def blocks(points: Points, sources: NDArray[np.int64] | None = None) -> Iterator[Block]:
    """Training pictures in blocks of 500; their rows are 10,000 and up."""
    of = np.arange(len(points)) if sources is None else sources
    for start in range(0, len(points), 500):
        part = slice(start, start + 500)
        yield 10_000 + np.arange(len(points))[part], of[part], points[part]


def compare(drawn: Points, training: Points, held_out: Points, per_description: int = 1) -> CopyShare:
    near = find_nearest(np.concatenate([drawn, held_out]), blocks(training))
    count = len(drawn)
    descriptions = np.arange(count) // per_description
    return compare_with_held_out(
        near[:count], descriptions, np.ones(count), near[count:], np.arange(len(held_out)), seed=0
    )


def test_nearest_training_pictures_are_those_of_a_full_search() -> None:
    points, training = normal(40, 0), normal(1300, 1)
    near = find_nearest(points, blocks(training))
    table = np.linalg.norm(points[:, None].astype(np.float64) - training, axis=2)
    np.testing.assert_array_equal(near.rows, 10_000 + table.argmin(1))
    np.testing.assert_allclose(near.distances, table.min(1), rtol=1e-5)
    np.testing.assert_allclose(near.scales, np.sort(table, axis=1)[:, 1:NEIGHBOURS].mean(1), rtol=1e-4)


def test_a_copy_has_distance_zero_far_from_the_origin() -> None:
    training = 1000 + normal(600, 0)
    near = find_nearest(training[:5].copy(), blocks(training))
    np.testing.assert_array_equal(near.distances, np.zeros(5))
    np.testing.assert_array_equal(near.relative, np.zeros(5))


def test_renderings_of_one_source_are_one_neighbour() -> None:
    centres = normal(100, 0)
    training = np.repeat(centres, 5, axis=0)
    near = find_nearest(normal(10, 1), blocks(training, np.repeat(np.arange(100), 5)))
    alone = find_nearest(normal(10, 1), blocks(centres))
    np.testing.assert_allclose(near.scales, alone.scales, rtol=1e-5)


def test_a_single_training_picture_has_no_scale() -> None:
    near = find_nearest(normal(3, 0), blocks(normal(1, 1)))
    np.testing.assert_allclose(near.relative, 1.0)


@pytest.mark.parametrize("jitter", [0.0, 0.05])
def test_returned_training_pictures_are_copies(jitter: float) -> None:
    training, held_out = normal(2000, 0), normal(500, 1)
    drawn = training[:300] + jitter * normal(300, 2)
    found = compare(drawn, training, held_out)
    assert found.value == pytest.approx(100, abs=0.5)
    assert found.low > 97
    assert found.nearer == pytest.approx(100, abs=0.5)


@pytest.mark.slow
def test_new_pictures_are_copies_in_one_percent() -> None:
    """Drawn and held-out pictures are exchangeable: the expected share is k / (m + 1), here 5 / 501, exactly."""
    training = normal(2000, 0)
    shares, inside, nearer = [], [], []
    for seed in range(40):
        found = compare(normal(500, 100 + seed), training, normal(500, 200 + seed))
        shares.append(found.value)
        inside.append(found.low <= 500 / 501 <= found.high)
        nearer.append(abs(found.nearer - 50) < 2 * (found.nearer_stderr or 0))
        assert found.floor == pytest.approx(500 / 501)
    assert np.mean(shares) == pytest.approx(500 / 501, abs=3 * np.std(shares) / np.sqrt(40))
    assert sum(inside) >= 36
    assert sum(nearer) >= 34


def test_a_mixture_of_copies_and_new_pictures() -> None:
    training, held_out = normal(2000, 0), normal(1000, 1)
    found = compare(np.concatenate([training[:60], normal(540, 2)]), training, held_out)
    assert found.low < 10 + 0.9 < found.high
    assert found.value == pytest.approx(10.9, abs=1.5)


def test_twins_in_the_data_are_the_floor_and_hide_no_copies() -> None:
    training, held_out = normal(2000, 0), normal(500, 1)
    held_out[:50] = training[:50] + 0.001 * normal(50, 2)
    found = compare(training[100:300] + 0.03 * normal(200, 3), training, held_out)
    assert found.floor == pytest.approx(10, abs=0.5)
    assert found.value > 99
    assert compare(normal(500, 4), training, held_out).value < 2


def test_blurred_pictures_are_nearer_but_hardly_copies() -> None:
    """Pictures without the noise of real ones lie nearer to all of them, and not much to one in particular."""

    def pictures(count: int, seed: int, noise: float) -> Points:
        shape = normal(count, seed, 4) @ normal(4, 99, 256)
        return shape + noise * normal(count, seed + 1, 256)

    training, held_out = pictures(2000, 0, 1.0), pictures(500, 10, 1.0)
    found = compare(pictures(500, 20, 0.0), training, held_out)
    assert found.nearer > 95
    assert found.value < 12


def test_pictures_of_one_description_are_one_answer() -> None:
    training, held_out = normal(2000, 0), normal(500, 1)
    drawn = np.concatenate([training[:40], normal(360, 2)])
    alone, together = (compare(drawn, training, held_out, per) for per in (1, 40))
    assert alone.value == together.value
    assert together.stderr > 2 * alone.stderr
    assert together.high > alone.high


def test_ends_of_intervals() -> None:
    assert share_interval(100.0, 0.0, 100) == pytest.approx((96.38, 100.0), abs=0.01)
    wide, narrow = share_interval(2.0, 2.0, 1000), share_interval(2.0, 0.5, 1000)
    assert wide[0] < narrow[0] < 2 < narrow[1] < wide[1]


def test_pixels_are_pooled_to_small_sides() -> None:
    images = torch.arange(2 * 3 * 64 * 48, dtype=torch.float32).reshape(2, 3, 64, 48)
    pooled = pool_pixels(images)
    assert pooled.shape == (2, 3 * 16 * 12)
    assert pooled[0, 0] == images[0, 0, :4, :4].mean()
    assert pool_pixels(torch.ones(2, 1, 16, 16)).shape == (2, 256)
    assert pool_pixels(torch.ones(2, 7)).shape == (2, 7)


def test_a_high_floor_is_explained() -> None:
    assert _explain_floor(1.0, 500) == ()
    assert _explain_floor(14.3, 6) == (
        "only 6 held-out pictures set the threshold, so a perfect model has 14.3 % copies",
    )
    assert "the data hold pictures almost twice" in _explain_floor(14.3, 500)[0]

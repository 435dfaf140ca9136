"""Camera, random points and materials: against closed forms and numerical integrals."""

import numpy as np
import pytest
from scipy import stats

from mmgen.data_recipes._clevr import _lamps
from mmgen.data_recipes._clevr._bodies import (
    FIELD_OF_VIEW,
    camera_axes,
    primary_ray,
    project_point,
)
from mmgen.data_recipes._clevr._lamps import (
    fresnel,
    ggx,
    ggx_sample,
    rubber_body,
    rubber_coat,
    rubber_layers,
    rubber_sample,
)
from mmgen.data_recipes._clevr._vectors import (
    OPTIONS,
    PURPOSES,
    circle_point,
    compile_later,
    fill_pixel_offsets,
    filter_table,
    hash64,
    interpolate_table,
    sample_point,
)

UP = np.array([0.0, 0.0, 1.0])

# --- camera ---------------------------------------------------------------------------------------------------------


@compile_later(**OPTIONS)
def there_and_back(camera, x, y, size, depth):
    axes = camera_axes(camera)
    w = primary_ray(axes, x, y, size)
    p = (camera[0] + depth * w[0], camera[1] + depth * w[1], camera[2] + depth * w[2])
    return w, p, project_point(camera, axes, p, size)


@pytest.mark.slow
def test_a_point_on_a_pixels_ray_is_projected_to_that_pixel():
    random = np.random.default_rng(0)
    for _ in range(50):
        camera = tuple(random.uniform((5, -8, 3), (9, -5, 7)))
        x, y = random.uniform(0, 112, 2)
        w, _, (u, v, depth) = there_and_back(camera, x, y, 112, random.uniform(1, 20))
        assert (u, v) == pytest.approx((x, y))
        assert depth > 0
        assert np.linalg.norm(w) == pytest.approx(1.0)


def test_the_camera_looks_at_the_origin_upright_with_the_published_field_of_view():
    camera = (0.0, -5.0, 5.0)
    middle, _, _ = there_and_back(camera, 56.0, 56.0, 112, 1.0)
    assert np.allclose(middle, np.array([0.0, 5.0, -5.0]) / np.sqrt(50))
    edge, _, _ = there_and_back(camera, 112.0, 56.0, 112, 1.0)
    assert np.degrees(np.arccos(np.dot(middle, edge))) == pytest.approx(FIELD_OF_VIEW / 2)
    assert edge[0] > 0.4  # x points to the right for this camera
    top, _, _ = there_and_back(camera, 56.0, 0.0, 112, 1.0)
    assert np.degrees(np.arccos(np.dot(middle, top))) == pytest.approx(FIELD_OF_VIEW / 2)
    assert top[2] > middle[2]


# --- sampling -------------------------------------------------------------------------------------------------------


@compile_later(**OPTIONS)
def hashes(key, result):
    for i in range(len(result)):
        result[i] = hash64(key, np.uint64(i))


@compile_later(**OPTIONS)
def points(key, pixel, offsets, result):
    fill_pixel_offsets(key, pixel, offsets)
    for sample in range(result.shape[0]):
        for purpose in range(result.shape[1]):
            result[sample, purpose, 0], result[sample, purpose, 1] = sample_point(sample, purpose, offsets)


def drawn(key: int, pixel: int, samples: int) -> np.ndarray:
    result = np.empty((samples, PURPOSES, 2))
    points(np.uint64(key), pixel, np.empty((PURPOSES, 3), np.int64), result)
    return result


def test_hashes_are_splitmix64s():
    result = np.empty(3, np.uint64)
    hashes(np.uint64(0), result)
    # The first outputs of SplitMix64 from state 0, as published with the Java and C versions.
    assert [hex(int(value)) for value in result] == ["0xe220a8397b1dcdaf", "0x6e789e6aa1b965f4", "0x6c45d188009454f"]


def test_hashes_are_uniform_and_neighbours_independent():
    result = np.empty(200_000, np.uint64)
    hashes(np.uint64(7), result)
    for shift in (0, 20, 56):
        cells = np.bincount((result >> np.uint64(shift)).astype(np.int64) & 255, minlength=256)
        assert stats.chisquare(cells).pvalue > 1e-4
    u = result.astype(np.float64) * 2.0**-64
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 4 / np.sqrt(len(u))


def test_points_of_a_pixel_cover_the_square_evenly_for_each_purpose():
    for pixel in range(20):
        few = drawn(3, pixel, 64)
        assert few.min() >= 0
        assert few.max() < 1
        for purpose in range(PURPOSES):
            # 16 cells of a 4 x 4 grid get 4 points each when even; random ones would often leave one empty.
            cells = np.histogram2d(*few[:, purpose].T, bins=4, range=[[0, 1], [0, 1]])[0]
            assert cells.min() >= 2
            assert cells.max() <= 6
            first = few[:4, purpose]
            apart = np.abs(first[:, None] - first[None])
            apart = np.minimum(apart, 1 - apart).max(axis=2)[np.triu_indices(4, 1)]
            assert apart.min() > 0.2


def test_points_differ_between_purposes_pixels_and_images_and_average_out():
    many = np.stack([drawn(key, pixel, 4) for key in range(10) for pixel in range(100)])
    flat = many[:, 0].reshape(len(many), -1)
    assert len(np.unique(flat[:, 0])) == len(flat)
    correlation = np.corrcoef(flat.T) - np.eye(2 * PURPOSES)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(flat))
    assert many.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / flat.size))
    # A step from one purpose to the next within a sample must not be a function of the sample.
    different = []
    for pixel in range(30):
        more = drawn(1, pixel, 64)
        different.append(len(np.unique(((more[:, 1] - more[:, 0]) % 1.0).round(6), axis=0)))
    assert np.mean(different) > 10


def test_the_filter_draws_from_the_blackman_harris_window():
    table = filter_table(3.0)
    x = np.interp(np.random.default_rng(0).random(100_000), np.linspace(0, 1, len(table)), table)
    grid = np.linspace(-1.5, 1.5, 2001)
    window = np.interp(grid, np.linspace(-1.5, 1.5, 4097), _blackman_harris(4097))
    cumulative = np.cumsum(window) / window.sum()
    assert stats.kstest(x, lambda q: np.interp(q, grid, cumulative)).statistic < 0.006
    assert table[0] == pytest.approx(-1.5)
    assert table[-1] == pytest.approx(1.5)
    assert np.allclose(table, -table[::-1], atol=1e-9)

    @compile_later(**OPTIONS)
    def value(table, u):
        return interpolate_table(table, u)

    assert value(table, 0.3) == pytest.approx(np.interp(0.3, np.linspace(0, 1, len(table)), table))


def _blackman_harris(n: int) -> np.ndarray:
    from scipy.signal.windows import blackmanharris

    return blackmanharris(n)


def test_the_circle_is_round():
    @compile_later(**OPTIONS)
    def at(v):
        return circle_point(v)

    for v in (0.0, 0.125, 0.25, 0.999):
        assert at(v) == pytest.approx((np.cos(2 * np.pi * v), np.sin(2 * np.pi * v)), abs=0.0062)
        assert np.hypot(*at(v)) == pytest.approx(1.0)


# --- materials ------------------------------------------------------------------------------------------------------


@compile_later(**OPTIONS)
def evaluate(wo, wis, alpha, results):
    layers = rubber_layers(wo[2])
    for i in range(len(wis)):
        wi = (wis[i, 0], wis[i, 1], wis[i, 2])
        results[i, 0] = ggx(wo, wi, alpha)
        results[i, 1] = rubber_body(layers, wo, wi)
        results[i, 2] = rubber_coat(layers, wo, wi)
    return layers


@compile_later(**OPTIONS)
def draw(wo, numbers, alpha, weights):
    layers = rubber_layers(wo[2])
    for i in range(len(numbers)):
        u, v, choice = numbers[i, 0], numbers[i, 1], numbers[i, 2]
        weights[i, 0] = ggx_sample(wo, alpha, u, v)[1]
        weights[i, 1] = rubber_sample(layers, (1.0, 0.0, 0.0), wo, u, v, choice)[1][0]
        weights[i, 2] = rubber_sample(layers, (1.0, 0.0, 0.0), wo, u, v, choice)[1][1]


@compile_later(**OPTIONS)
def reflected(cosine, index):
    return fresnel(cosine, index)


def viewer(cosine: float) -> tuple[float, float, float]:
    return float(np.sqrt(1 - cosine**2)), 0.0, cosine


def integrals(cosine: float, alpha: float = 0.2, n: int = 1200) -> np.ndarray:
    """Integrals of f cos(wi) over the hemisphere: white GGX, rubber's body (white) and rubber's coat."""
    z, phi = np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(2 * n) + 0.5) * np.pi / n, indexing="ij")
    r = np.sqrt(1 - z**2)
    wi = np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=-1).reshape(-1, 3)
    results = np.empty((len(wi), 3))
    evaluate(viewer(cosine), wi, alpha, results)
    return results.mean(axis=0) * 2 * np.pi


def weights(cosine: float, alpha: float = 0.2, n: int = 200_000) -> np.ndarray:
    numbers, results = np.random.default_rng(0).random((n, 3)), np.empty((n, 3))
    draw(viewer(cosine), numbers, alpha, results)
    return results.mean(axis=0)


def test_fresnel_has_its_known_values():
    assert reflected(1.0, 1.4) == pytest.approx((0.4 / 2.4) ** 2)
    assert reflected(1e-9, 1.2) == pytest.approx(1.0, abs=1e-6)
    # Snell and the two polarisations, written out at 60 degrees.
    inside = np.sqrt(1 - 0.75 / 1.4**2)
    s = (0.5 - 1.4 * inside) / (0.5 + 1.4 * inside)
    p = (inside - 1.4 * 0.5) / (inside + 1.4 * 0.5)
    assert reflected(0.5, 1.4) == pytest.approx((s * s + p * p) / 2)


@pytest.mark.slow_cases("0.95")
@pytest.mark.parametrize("cosine", [0.95, 0.5, 0.2])
def test_materials_return_no_more_light_than_they_get(cosine):
    white, body, coat = integrals(cosine)
    assert 0.8 < white <= 1.0
    assert 0 < coat < reflected(cosine, 1.2)
    assert 0.3 < body + coat < 1.0


@pytest.mark.slow_cases("0.95")
@pytest.mark.parametrize("cosine", [0.95, 0.5, 0.2])
def test_drawn_directions_have_the_weights_that_the_integrals_ask_for(cosine):
    white, body, coat = integrals(cosine)
    drawn_white, drawn_all, drawn_coat = weights(cosine)
    assert drawn_white == pytest.approx(white, rel=0.01)
    assert drawn_all - drawn_coat == pytest.approx(body, rel=0.02)
    # The coat's directions are drawn as GGX's, which are a little wider than Beckmann's.
    assert drawn_coat == pytest.approx(coat, rel=0.25)


def test_mirrors_are_reciprocal():
    a, b = viewer(0.3), (-0.2, 0.5, float(np.sqrt(1 - 0.29)))
    results = np.empty((1, 3))
    evaluate(a, np.array([b]), 0.2, results)
    there = results[0, 0] / b[2]
    evaluate(b, np.array([a]), 0.2, results)
    assert results[0, 0] / a[2] == pytest.approx(there)
    # The peak is where light and viewer mirror each other, and is D / (4 cos^2) without shadowing, near enough.
    evaluate(viewer(1.0), np.array([viewer(1.0)]), 0.01, results)
    assert results[0, 0] == pytest.approx(1 / (4 * np.pi * 0.01**2))


def test_rubber_seen_flat_is_all_coat():
    layers = evaluate(viewer(1e-4), np.array([viewer(0.5)]), 0.2, np.empty((1, 3)))
    assert layers[2] > 0.99
    assert sum(layers[:3]) == pytest.approx(1.0)
    assert sum(evaluate(viewer(0.7), np.array([viewer(0.5)]), 0.2, np.empty((1, 3)))[:3]) == pytest.approx(1.0)
    assert pytest.approx(1.0) == _lamps.GLOSSY_SHARE + _lamps.MIRROR_SHARE

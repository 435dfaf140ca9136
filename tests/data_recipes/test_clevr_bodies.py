"""Where rays meet the bodies, against plain sphere tracing in numpy with many small steps."""

import numpy as np
import pytest

from mmgen.data_recipes._clevr import _bodies as bodies_module
from mmgen.data_recipes._clevr._bodies import (
    COLUMNS,
    COS,
    CUBE,
    CYLINDER,
    NOTHING,
    RIM,
    SHAPE,
    SIN,
    SIZE,
    SPHERE,
    X,
    Y,
    body_normal,
    covered_share,
    distance_to_body,
    is_shadowed,
    nearest_body,
    ray_body_distance,
)  # fmt: skip
from mmgen.data_recipes._clevr._vectors import OPTIONS, compile_later

SHAPES = (SPHERE, CYLINDER, CUBE)
RAYS = 4000


@compile_later(**OPTIONS)
def probe(bodies, origins, directions, t, any_t, distances, normals, first, dark):
    """All functions for all rays, so that they are compiled only once."""
    for i in range(len(origins)):
        p = (origins[i, 0], origins[i, 1], origins[i, 2])
        w = (directions[i, 0], directions[i, 1], directions[i, 2])
        t[i] = ray_body_distance(bodies, 0, p, w, False)
        any_t[i] = ray_body_distance(bodies, 0, p, w, True)
        distances[i] = distance_to_body(bodies, 0, p)
        if t[i] < NOTHING:
            q = (p[0] + t[i] * w[0], p[1] + t[i] * w[1], p[2] + t[i] * w[2])
            n = body_normal(bodies, 0, q)
            normals[i, 0], normals[i, 1], normals[i, 2] = n[0], n[1], n[2]
        first[i] = nearest_body(bodies, p, w, -1)[1]
        dark[i] = is_shadowed(bodies, p, w, -1)


def body(shape: int, *, size: float = 0.7, x: float = 0.4, y: float = -1.1, rotation: float = 0.7) -> np.ndarray:
    row = np.zeros(COLUMNS)
    row[[SHAPE, SIZE, X, Y, COS, SIN]] = shape, size, x, y, np.cos(rotation), np.sin(rotation)
    return row


def distance(row: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Signed distance of points [n, 3] to a body, from its definition: a core, thickened by the rim."""
    s = row[SIZE]
    x, y = p[:, 0] - row[X], p[:, 1] - row[Y]
    local = np.stack([row[COS] * x + row[SIN] * y, row[COS] * y - row[SIN] * x, p[:, 2] - s], axis=1) / s
    shape = int(row[SHAPE])
    if shape == SPHERE:
        return s * (np.linalg.norm(local, axis=1) - 1.0)
    core = 1.0 - RIM[shape]
    if shape == CUBE:
        beyond = np.abs(local) - core
    else:
        beyond = np.stack([np.hypot(local[:, 0], local[:, 1]), np.abs(local[:, 2])], axis=1) - core
    outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
    return s * (outside + np.minimum(beyond.max(axis=1), 0.0) - RIM[shape])


def rays(row: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """From points around the body (some close to it) to points in a ball that is larger than it."""
    random = np.random.default_rng(seed)
    s = row[SIZE]
    centre = np.array([row[X], row[Y], s])

    def on_spheres(radius):
        v = random.normal(size=(RAYS, 3))
        return centre + radius[:, None] * v / np.linalg.norm(v, axis=1, keepdims=True)

    origins = on_spheres(s * random.uniform(1.75, 12.0, RAYS))
    w = on_spheres(s * random.uniform(0.0, 1.8, RAYS)) - origins
    return origins, w / np.linalg.norm(w, axis=1, keepdims=True)


def traced(row: np.ndarray, origins: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance to the surface along each ray (inf where it misses), and how clearly it hits or misses.

    That is the ray's least distance to the body, negative (how deep it goes) where it hits.
    """
    t, least = np.zeros(RAYS), np.full(RAYS, np.inf)
    for _ in range(400):
        d = distance(row, origins + t[:, None] * w)
        least = np.minimum(least, d)
        t += np.where(d > 1e-9, d, 0.0)
    hit = least < 1e-6
    inside = [distance(row, origins + (t + step)[:, None] * w) for step in np.linspace(0.0, 3.5 * row[SIZE], 150)]
    return np.where(hit, t, np.inf), np.where(hit, np.min(inside, axis=0), least)


class Probed:
    def __init__(self, rows: np.ndarray, origins: np.ndarray, w: np.ndarray) -> None:
        n = len(origins)
        self.t, self.any_t, self.distances = np.empty(n), np.empty(n), np.empty(n)
        self.normals = np.zeros((n, 3))
        self.first, self.dark = np.empty(n, np.int64), np.empty(n, np.bool_)
        results = (self.t, self.any_t, self.distances, self.normals, self.first, self.dark)
        probe(rows, origins, w, *results)


@pytest.mark.slow_cases("0.35-0")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [0.35, 0.7])
def test_rays_meet_the_body_where_sphere_tracing_says(shape, size):
    row = body(shape, size=size)
    origins, w = rays(row, seed=shape)
    expected, clearance = traced(row, origins, w)
    found = Probed(row[None], origins, w)
    hit = np.isfinite(expected)
    assert 0.2 < hit.mean() < 0.95
    clear = np.abs(clearance) > 0.004 * size
    assert clear.mean() > 0.98
    assert np.array_equal((found.t < NOTHING)[clear], hit[clear])
    assert np.array_equal((found.any_t < NOTHING)[clear], hit[clear])
    assert np.array_equal(found.dark[clear], hit[clear])
    error = np.abs(found.t - expected)[hit & clear]
    assert error.max() < 0.01 * size
    assert error.mean() < 1e-4 * size
    assert np.allclose(found.distances, distance(row, origins), atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_normals_are_the_gradient_of_the_distance(shape):
    row = body(shape)
    origins, w = rays(row, seed=10 + shape)
    found = Probed(row[None], origins, w)
    hit = found.t < NOTHING
    p = (origins + found.t[:, None] * w)[hit]
    h = 1e-6
    slope = np.stack([(distance(row, p + h * e) - distance(row, p - h * e)) / (2 * h) for e in np.eye(3)], axis=1)
    assert np.allclose(np.linalg.norm(found.normals[hit], axis=1), 1.0)
    # On the seam of a flat side with a rim the second derivative jumps; elsewhere they agree to rounding.
    assert np.median(np.abs(found.normals[hit] - slope).max(axis=1)) < 1e-6
    assert np.abs(found.normals[hit] - slope).max() < 2e-2


def test_a_ray_through_the_middle_of_each_body_has_a_closed_form():
    origins, w = np.array([[5.0, -1.1, 0.7], [0.4, -1.1, 4.0]]), np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    for shape in SHAPES:
        found = Probed(body(shape, rotation=0.0)[None], origins, w)
        assert np.allclose(found.t, [5.0 - 0.4 - 0.7, 4.0 - 1.4])
        assert np.allclose(found.normals, -w)
    # Turned by an eighth, a cube shows its rounded edge: sqrt(2) (1 - b) + b half extents from the middle.
    found = Probed(body(CUBE, rotation=np.pi / 4)[None], origins[:1], w[:1])
    assert found.t[0] == pytest.approx(4.6 - 0.7 * (np.sqrt(2) * (1 - RIM[CUBE]) + RIM[CUBE]), abs=1e-3)


def test_every_shape_fits_into_the_sphere_that_is_tested_first():
    for shape, factor in ((CYLINDER, 2), (CUBE, 3)):
        least = np.sqrt(factor) * (1 - RIM[shape]) + RIM[shape]
        assert least <= bodies_module._REACH[shape] < least + 0.02


def test_the_nearer_of_two_bodies_is_met():
    rows = np.stack([body(CUBE, x=0.0, y=0.0), body(SPHERE, x=3.0, y=0.0)])
    origins = np.array([[9.0, 0.0, 0.6], [-9.0, 0.0, 0.6], [0.0, 9.0, 0.6], [6.0, 9.0, 0.6]])
    w = np.array([[-1.0, 0, 0], [1.0, 0, 0], [0, -1.0, 0], [0, -1.0, 0]])
    found = Probed(rows, origins, w)
    assert found.first.tolist() == [1, 0, 0, -1]
    assert found.dark.tolist() == [True, True, True, False]


def test_the_share_of_light_that_a_sphere_covers_is_that_of_cosine_distributed_rays():
    @compile_later(**OPTIONS)
    def share(bodies, i):
        return covered_share(bodies, i, (0.0, 0.0, 0.0), (0.0, 0.0, 1.0))

    rows = body(SPHERE, x=0.6, y=-0.5)[None]
    random = np.random.default_rng(0)
    u, v = random.random((2, 400_000))
    w = np.stack([np.sqrt(u) * np.cos(2 * np.pi * v), np.sqrt(u) * np.sin(2 * np.pi * v), np.sqrt(1 - u)], axis=1)
    centre = np.array([0.6, -0.5, 0.7])
    along = w @ centre
    covered = ((centre @ centre - along**2) < 0.7**2) & (along > 0)
    assert share(rows, 0) == pytest.approx(covered.mean(), abs=4 * np.sqrt(0.25 / len(u)))

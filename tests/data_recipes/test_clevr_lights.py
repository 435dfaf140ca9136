"""Lamps, sun and backdrop: against closed forms and numerical integrals."""

import numpy as np
import pytest

from mmgen.data_recipes._clevr import _bodies
from mmgen.data_recipes._clevr._bodies import (
    NOTHING,
    backdrop_distance,
    backdrop_normal,
)
from mmgen.data_recipes._clevr._lamps import (
    LAMPS,
    SUN_ANGLE,
    SUN_DIRECTION,
    SUN_STRENGTH,
    lamp_rows,
    sample_light,
    visible_light,
)
from mmgen.data_recipes._clevr._vectors import (
    OPTIONS,
    compile_later,
)

UP = np.array([0.0, 0.0, 1.0])

# --- lights ---------------------------------------------------------------------------------------------------------


@compile_later(**OPTIONS)
def lit(lamps, k, p, numbers, w, e, seen):
    for i in range(len(numbers)):
        d, light = sample_light(lamps, k, p, numbers[i, 0], numbers[i, 1])
        radiance = visible_light(lamps, p, d)
        for axis in range(3):
            w[i, axis], e[i, axis], seen[i, axis] = d[axis], light[axis], radiance[axis]


def lights(k: int, p: tuple[float, float, float], places: dict[str, tuple[float, float, float]]):
    lamps = lamp_rows({name: np.array([place]) for name, place in places.items()})[0]
    numbers = (np.stack(np.meshgrid(np.arange(40), np.arange(40)), axis=-1).reshape(-1, 2) + 0.5) / 40
    w, e, seen = np.empty((3, len(numbers), 3))
    lit(lamps, k, p, numbers, w, e, seen)
    return w, e, seen


ABOVE = {"key": (0.0, 1e-6, 50.0), "fill": (0.0, -40.0, 2.0), "back": (3.0, 3.0, 6.0)}


@pytest.mark.slow
def test_a_far_lamp_obeys_the_inverse_square_law():
    w, e, _ = lights(0, (0.0, 0.0, 0.0), ABOVE)
    watts, colour = LAMPS[0][2], LAMPS[0][3]
    assert np.allclose(w, UP, atol=0.01)
    # A square that radiates W watts through Lambert's cosine has intensity W / pi along its normal.
    assert np.allclose(e.mean(axis=0), np.array(colour) * watts / np.pi / 50**2, rtol=1e-3)


@pytest.mark.slow
def test_a_near_lamp_gives_what_its_solid_angle_does():
    """Irradiance is the integral of radiance times cosine over the directions in which the lamp is seen."""
    p = (2.0, 2.5, 4.5)
    w, e, seen = lights(2, p, ABOVE)
    assert np.allclose(seen, LAMPS[2][2] / np.pi / LAMPS[2][1] ** 2)
    place = np.array(ABOVE["back"])
    toward = (place - p) / np.linalg.norm(place - p)
    random = np.random.default_rng(0)
    u, phi = random.uniform(0.5, 1.0, 200_000), random.uniform(0, 2 * np.pi, 200_000)
    side = np.cross(toward, UP)
    side /= np.linalg.norm(side)
    other = np.cross(side, toward)
    r = np.sqrt(1 - u**2)[:, None]
    directions = u[:, None] * toward + r * (np.cos(phi)[:, None] * side + np.sin(phi)[:, None] * other)
    lamps = lamp_rows({name: np.array([at]) for name, at in ABOVE.items()})[0]
    result = np.empty((len(directions), 3))

    @compile_later(**OPTIONS)
    def look(lamps, p, directions, result):
        for i in range(len(directions)):
            light = visible_light(lamps, p, (directions[i, 0], directions[i, 1], directions[i, 2]))
            result[i, 0], result[i, 1], result[i, 2] = light[0], light[1], light[2]

    look(lamps, p, directions, result)
    facing = (result[:, 1] * u).mean() * 2 * np.pi * 0.5
    facing -= SUN_STRENGTH * np.dot(toward, SUN_DIRECTION)  # which is seen beside the lamp
    assert facing == pytest.approx((e[:, 1] * (w @ toward)).mean(), rel=0.03)


def test_lamps_shine_to_one_side_only():
    _, e, _ = lights(0, (0.0, 0.0, 60.0), ABOVE)
    assert not e.any()


def test_the_sun_shines_alike_everywhere():
    for p in ((0.0, 0.0, 0.0), (3.0, -2.0, 1.0)):
        w, e, seen = lights(3, p, ABOVE)
        assert np.allclose(e, SUN_STRENGTH)
        angles = np.arccos(np.clip(w @ np.array(SUN_DIRECTION), -1, 1))
        assert angles.max() < SUN_ANGLE / 2
        assert angles.max() > SUN_ANGLE / 2 - 0.003
        # Radiance times solid angle is irradiance.
        assert np.median(seen) * np.pi * np.tan(SUN_ANGLE / 2) ** 2 == pytest.approx(SUN_STRENGTH)


# --- backdrop -------------------------------------------------------------------------------------------------------


@compile_later(**OPTIONS)
def backdrop(p, w):
    t = backdrop_distance(p, w)
    return t, backdrop_normal((p[0] + t * w[0], p[1] + t * w[1], p[2] + t * w[2]))


@pytest.mark.slow
def test_rays_end_on_the_floor_the_cylinder_or_the_wall_and_normals_point_back():
    random = np.random.default_rng(0)
    back = np.array([*_bodies.BACK, 0.0])
    assert np.linalg.norm(back) == pytest.approx(1.0, abs=1e-4)
    parts = set()
    for _ in range(2000):
        p = random.uniform((-3, -3, 0.1), (8, 3, 6))
        w = random.normal(size=3)
        w /= np.linalg.norm(w)
        t, n = backdrop(tuple(p), tuple(w))
        if t >= NOTHING:
            continue
        q = p + t * w
        r = q @ back - _bodies.START
        assert t > 0
        assert np.dot(n, w) < 0
        assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-3)
        if r <= 1e-9:
            parts.add("floor")
            assert q[2] == pytest.approx(0.0, abs=1e-9)
            assert n == pytest.approx((0, 0, 1))
        elif q[2] < _bodies.RADIUS:
            parts.add("cylinder")
            assert np.hypot(r, q[2] - _bodies.RADIUS) == pytest.approx(_bodies.RADIUS, abs=1e-3)
        else:
            parts.add("wall")
            assert r == pytest.approx(_bodies.RADIUS, abs=1e-3)
    assert parts == {"floor", "cylinder", "wall"}


def test_the_backdrop_ends_at_its_sides_and_above_the_floors_open_end():
    aside = (_bodies.BACK[1], -_bodies.BACK[0], -0.01)
    assert backdrop((0.0, 0.0, 5.0), aside)[0] == NOTHING
    assert backdrop((0.0, 0.0, 5.0), (-_bodies.BACK[0], -_bodies.BACK[1], 0.1))[0] == NOTHING

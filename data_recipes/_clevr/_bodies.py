"""The three bodies: their intersections with rays, and their normals.

A body is a row of an array: its looks, place and size (columns below). Rays are moved into its own frame, where the
sphere has radius 1, the cylinder radius 1 and half height 1, and the cube half extent 1, all about the origin; there
the meeting point is a closed form. The edges of cylinder and cube are rounded: where the closed form ends on such an
edge, the ray goes on in steps of the distance to the rounded body (sphere tracing), at most 24 of them.

References:
    Sphere Tracing: A Geometric Method for the Antialiased Ray Tracing of Implicit Surfaces (Hart, 1996), The Visual
    Computer 12(10), https://doi.org/10.1007/s003710050084

The grey floor, which rises behind the scene in a quarter cylinder to a wall; everything else is black.

CLEVR publishes its floor as a mesh. The numbers here describe it by a cylinder; they, and the light that its parts send
to each other, are fitted to the empty parts of eight pictures that Blender rendered with that mesh. (Start and radius
of the cylinder can be traded against each other; the wall is where the mesh has it, 16 behind the origin.)
"""

from math import pi, sqrt, tan

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._clevr._vectors import (
    Axes,
    Vector,
    cross,
    device,
    dot,
    normalise,
    point_on_ray,
    scale,
    subtract,
)

X, Y, SIZE, COS, SIN, SHAPE, METAL, RED, GREEN, BLUE = range(10)
COLUMNS = 10
SPHERE, CYLINDER, CUBE = 0, 1, 2

RIM = (0.0, 0.08, 0.19)
"""Radius of the rounded edges of each shape, in half extents."""

_REACH = (1.0, *(sqrt(axes) * (1.0 - rim) + rim for axes, rim in zip((2, 3), RIM[1:], strict=True)))
"""Radius of the sphere about its centre that just holds the shape."""

_BREADTH = (1.0, 1.45, 1.87)
"""How much more of the floor's sky each shape covers than a sphere of the same size. Fitted: see ``covered_share``."""

_STEPS, _CLOSE, _GRAZING = 24, 1e-4, 3e-3

NOTHING = 1e30
"""Distance to where a ray meets nothing."""

Bodies = NDArray[np.float64]


@device
def _to_body_frame(bodies: Bodies, i: int, p: Vector, w: Vector) -> tuple[Vector, Vector]:
    """Return a point and a direction in the coordinates of a body; distances along the ray do not change."""
    s = 1.0 / bodies[i, SIZE]
    c, n = bodies[i, COS], bodies[i, SIN]
    x, y = (p[0] - bodies[i, X]) * s, (p[1] - bodies[i, Y]) * s
    u, v = w[0] * s, w[1] * s
    return (c * x + n * y, c * y - n * x, p[2] * s - 1.0), (c * u + n * v, c * v - n * u, w[2] * s)


@device
def _core_excess(shape: int, p: Vector) -> Vector:
    """Return the distances along x, y and z, 0 or more, of p from the body's core, which has no rounded rim."""
    # A point with this vector q is at distance |q| - rim of the surface, if it is not inside the core. Where only one
    # component is not 0, the surface is flat (or a cylinder's plain side).
    if shape == CUBE:
        core = 1.0 - RIM[CUBE]
        return max(abs(p[0]) - core, 0.0), max(abs(p[1]) - core, 0.0), max(abs(p[2]) - core, 0.0)
    core = 1.0 - RIM[CYLINDER]
    radius = sqrt(p[0] * p[0] + p[1] * p[1])
    return max(radius - core, 0.0), 0.0, max(abs(p[2]) - core, 0.0)


@device
def _is_on_flat_face(q: Vector) -> bool:
    return (q[0] == 0.0) + (q[1] == 0.0) + (q[2] == 0.0) >= 2


@device
def _surface_distance(shape: int, p: Vector) -> float:
    """Return the distance of p from the surface in half extents, for points outside the core."""
    if shape == SPHERE:
        return sqrt(dot(p, p)) - 1.0
    q = _core_excess(shape, p)
    return sqrt(dot(q, q)) - RIM[shape]


@device
def _slab_range(o: float, d: float) -> tuple[float, float]:
    """Return the range of t in which a ray's coordinate o + t d is between -1 and 1."""
    if abs(d) < 1e-12:
        d = 1e-12
    a, b = (-1.0 - o) / d, (1.0 - o) / d
    return min(a, b), max(a, b)


@device
def _shape_range(shape: int, o: Vector, d: Vector) -> tuple[float, float]:
    """Return the range of t in which the ray o + t d is inside the shape with sharp edges; (NOTHING, -NOTHING) if it
    misses.
    """
    near, far = _slab_range(o[2], d[2])
    if shape == CUBE:
        for k in range(2):
            a, b = _slab_range(o[k], d[k])
            near, far = max(near, a), min(far, b)
    else:
        a = max(d[0] * d[0] + d[1] * d[1], 1e-12)
        b = o[0] * d[0] + o[1] * d[1]
        c = o[0] * o[0] + o[1] * o[1] - 1.0
        discriminant = b * b - a * c
        if discriminant <= 0.0:
            return NOTHING, -NOTHING
        root = sqrt(discriminant)
        near, far = max(near, (-b - root) / a), min(far, (-b + root) / a)
    if near >= far:
        return NOTHING, -NOTHING
    return near, far


@device
def ray_body_distance(bodies: Bodies, i: int, p: Vector, w: Vector, any_point: bool) -> float:
    """Return the distance of the body along the ray, in lengths of w; NOTHING if the ray from p misses the body."""
    shape = int(bodies[i, SHAPE])
    s = bodies[i, SIZE]
    x, y, z = p[0] - bodies[i, X], p[1] - bodies[i, Y], p[2] - s
    b = x * w[0] + y * w[1] + z * w[2]
    reach = _REACH[shape] * s
    c = x * x + y * y + z * z - reach * reach
    if c > 0.0 and (b >= 0.0 or b * b <= c):
        return NOTHING  # outside the sphere round the shape, and passing by
    if shape == SPHERE:
        return -b - sqrt(b * b - c)
    o, d = _to_body_frame(bodies, i, p, w)
    t, far = _shape_range(shape, o, d)
    if far <= 0.0:
        return NOTHING
    t = max(t, 0.0)
    if _is_on_flat_face(_core_excess(shape, point_on_ray(o, t, d))):
        return t
    if any_point and _is_on_flat_face(_core_excess(shape, point_on_ray(o, far, d))):
        return far
    step = 1.0 / sqrt(dot(d, d))
    distance = NOTHING
    for _ in range(_STEPS):
        distance = _surface_distance(shape, point_on_ray(o, t, d))
        if distance < _CLOSE:
            return t
        t += distance * step
        if t >= far:
            return NOTHING
    return t if distance < _GRAZING else NOTHING


@device
def distance_to_body(bodies: Bodies, i: int, p: Vector) -> float:
    """Return the distance from a point outside the body to its surface."""
    o, _ = _to_body_frame(bodies, i, p, (0.0, 0.0, 0.0))
    return _surface_distance(int(bodies[i, SHAPE]), o) * bodies[i, SIZE]


@device
def body_normal(bodies: Bodies, i: int, p: Vector) -> Vector:
    """Return the unit normal at a point of the body's surface."""
    shape = int(bodies[i, SHAPE])
    if shape == SPHERE:
        return normalise((p[0] - bodies[i, X], p[1] - bodies[i, Y], p[2] - bodies[i, SIZE]))
    o, _ = _to_body_frame(bodies, i, p, (0.0, 0.0, 0.0))
    q = _core_excess(shape, o)
    z = q[2] if o[2] > 0.0 else -q[2]
    if shape == CUBE:
        x = q[0] if o[0] > 0.0 else -q[0]
        y = q[1] if o[1] > 0.0 else -q[1]
    else:
        radius = max(sqrt(o[0] * o[0] + o[1] * o[1]), 1e-12)
        x, y = q[0] * o[0] / radius, q[0] * o[1] / radius
    c, n = bodies[i, COS], bodies[i, SIN]
    return normalise((c * x - n * y, n * x + c * y, z))


@device
def body_colour(bodies: Bodies, i: int) -> Vector:
    """Return the reflectance of body i as linear red, green and blue."""
    return bodies[i, RED], bodies[i, GREEN], bodies[i, BLUE]


@device
def nearest_body(bodies: Bodies, p: Vector, w: Vector, skip: int) -> tuple[float, int]:
    """Return the distance to the first body that the ray meets, and its number; (NOTHING, -1) without any."""
    first, which = NOTHING, -1
    for i in range(len(bodies)):
        if i != skip:
            t = ray_body_distance(bodies, i, p, w, False)
            if t < first:
                first, which = t, i
    return first, which


@device
def is_shadowed(bodies: Bodies, p: Vector, w: Vector, skip: int) -> bool:
    """Return whether a body lies between p and p + t w for any t > 0; lamps are farther away than all bodies."""
    for i in range(len(bodies)):  # noqa: SIM110 - numba knows no any()
        if i != skip and ray_body_distance(bodies, i, p, w, True) < NOTHING:
            return True
    return False


@device
def covered_share(bodies: Bodies, i: int, p: Vector, n: Vector) -> float:
    """Return the share of the light from all sides of p that comes from the direction of body i."""
    # Exact for a sphere above the horizon: cos(theta) sin^2(half angle). Cylinders and cubes count as larger spheres.
    s = bodies[i, SIZE]
    v = bodies[i, X] - p[0], bodies[i, Y] - p[1], s - p[2]
    nearness = 1.0 / sqrt(dot(v, v))
    share = max(0.0, dot(v, n)) * nearness * (s * nearness) * (s * nearness)
    return min(1.0, share * _BREADTH[int(bodies[i, SHAPE])])


ALBEDO = 0.8

BACK = (-0.9235, 0.3836)
"""Horizontal direction in which the floor rises, a unit vector."""

START = 8.0
"""Where it begins to, from the origin."""

RADIUS = 8.0
"""Radius of the quarter cylinder, which ends in the wall."""

HALF_WIDTH = 22.0
"""Extent of floor and wall to either side of the origin; mirrored in metal, their ends can be seen."""

_AMBIENT = np.array([0.0055, 0.0067, 0.0092, 0.0130, 0.0209, 0.0231, 0.0164, 0.0187])
"""Radiance that the backdrop sends back of light which came over its other parts, every 4 units from 12 before the
origin to 16 behind. It is brightest where the floor begins to face the wall."""

_AMBIENT_START, _AMBIENT_STEP = -12.0, 4.0


@device
def backdrop_distance(p: Vector, w: Vector) -> float:
    """Return the distance from p along the ray w to the backdrop; NOTHING if it misses."""
    r, dr = p[0] * BACK[0] + p[1] * BACK[1] - START, w[0] * BACK[0] + w[1] * BACK[1]
    h, dh = p[2] - RADIUS, w[2]
    t = NOTHING
    if dh < 0.0 and r - p[2] / dh * dr <= 0.0:
        t = -p[2] / dh  # the floor
    else:
        # In the plane across the cylinder: (r + t dr)^2 + (h + t dh)^2 = radius^2, the farther solution.
        a, b, c = dr * dr + dh * dh, r * dr + h * dh, r * r + h * h - RADIUS * RADIUS
        discriminant = b * b - a * c
        if discriminant > 0.0:
            round_t = (-b + sqrt(discriminant)) / a
            if r + round_t * dr >= 0.0 and h + round_t * dh <= 0.0:
                t = round_t
        if t == NOTHING and dr > 0.0 and h + (RADIUS - r) / dr * dh > 0.0:
            t = (RADIUS - r) / dr  # the wall
    aside = (p[0] + t * w[0]) * BACK[1] - (p[1] + t * w[1]) * BACK[0]
    return t if abs(aside) < HALF_WIDTH else NOTHING


@device
def backdrop_normal(p: Vector) -> Vector:
    """Return the unit normal at a point of the backdrop."""
    r = p[0] * BACK[0] + p[1] * BACK[1] - START
    if r <= 0.0:
        return 0.0, 0.0, 1.0
    h = p[2] - RADIUS
    if h >= 0.0:
        return -BACK[0], -BACK[1], 0.0
    length = sqrt(r * r + h * h)
    return -r * BACK[0] / length, -r * BACK[1] / length, -h / length


@device
def ambient_radiance(p: Vector) -> float:
    """Return the radiance at a point p of the backdrop that comes from light of the other parts of the backdrop."""
    place = (p[0] * BACK[0] + p[1] * BACK[1] - _AMBIENT_START) / _AMBIENT_STEP
    place = min(max(place, 0.0), len(_AMBIENT) - 1.001)
    cell = int(place)
    return _AMBIENT[cell] + (place - cell) * (_AMBIENT[cell + 1] - _AMBIENT[cell])


FIELD_OF_VIEW = 49.134
"""Degrees, of the whole (square) image."""

FILTER_WIDTH = 3.0
"""Pixels across the whole Blackman-Harris window that pixels are filtered with."""

_HALF = tan(FIELD_OF_VIEW / 2.0 * pi / 180.0)


@device
def camera_axes(position: Vector) -> Axes:
    """Return unit vectors right, up and forward of an upright camera that looks at the origin from a side."""
    forward = normalise(scale(position, -1.0))
    right = normalise(cross(forward, (0.0, 0.0, 1.0)))
    return right, cross(right, forward), forward


@device
def primary_ray(axes: Axes, x: float, y: float, size: int) -> Vector:
    """Return the unit direction through the point (x, y) of the image, in pixels from its upper left corner."""
    right, up, forward = axes
    a = (2.0 * x / size - 1.0) * _HALF
    b = (1.0 - 2.0 * y / size) * _HALF
    return normalise(
        (
            forward[0] + a * right[0] + b * up[0],
            forward[1] + a * right[1] + b * up[1],
            forward[2] + a * right[2] + b * up[2],
        )
    )


@device
def project_point(position: Vector, axes: Axes, p: Vector, size: int) -> tuple[float, float, float]:
    """Return the image coordinates of a point in pixels, and its depth (positive in front of the camera)."""
    right, up, forward = axes
    v = subtract(p, position)
    depth = dot(v, forward)
    x = dot(v, right) / (depth * _HALF)
    y = dot(v, up) / (depth * _HALF)
    return (x + 1.0) * 0.5 * size, (1.0 - y) * 0.5 * size, depth

"""The path tracer of one scene: from the camera through each sample, over the bodies, to the backdrop.

At every point that the path meets, the four lights are sampled and their shadows cast. From a body the path goes on: in
a cosine-distributed direction from rubber, in a mirror-like one from metal. It ends on the backdrop. What light the
backdrop gets from the rest of itself and from the bodies is not traced but looked up: it is smooth.

References:
    The Rendering Equation (Kajiya, SIGGRAPH 1986), https://doi.org/10.1145/15922.15902
"""

from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._clevr._bodies import (
    ALBEDO,
    CUBE,
    METAL,
    NOTHING,
    SHAPE,
    SIZE,
    X,
    Y,
    ambient_radiance,
    backdrop_distance,
    backdrop_normal,
    body_colour,
    body_normal,
    camera_axes,
    covered_share,
    is_shadowed,
    nearest_body,
    primary_ray,
    project_point,
)
from mmgen.data_recipes._clevr._lamps import (
    GLOSSY,
    GLOSSY_SHARE,
    MIRROR,
    MIRROR_SHARE,
    NO_LAYERS,
    Layers,
    ggx,
    ggx_sample,
    rubber_body,
    rubber_coat,
    rubber_layers,
    rubber_sample,
    sample_light,
    visible_light,
)  # fmt: skip
from mmgen.data_recipes._clevr._vectors import (
    Axes,
    Offsets,
    Vector,
    add,
    device,
    dot,
    fill_pixel_offsets,
    from_frame,
    interpolate_table,
    multiply,
    normalise,
    orthonormal_frame,
    point_on_ray,
    sample_point,
    scale,
    to_frame,
)

FEW = 4
"""Samples of a pixel that shows neither a body nor a shadow. The others get those that are asked for, but ..."""

_SHADOW_SHARE, _RUBBER_SHARE, _GLINT_TIMES = 0.25, 0.5, 4
"""... these shares where there is only a shadow or rubber to see, and so many times more where metal mirrors a lamp, a
small spot a hundred times as bright as all else."""

_PLAIN, _SHADOW, _RUBBER, _METAL, _GLINT = range(5)

_VERTICES = 3
"""Most bodies that a path visits."""

_RETURNED = 0.55
"""What a body sends to the floor beside it, as a share of what that floor would send back unshadowed, times the body's
colour. Fitted to the floor round the bodies of the reference pictures."""

# What a sample needs random points for: its place in the pixel, and then at each vertex of its path ...
_PLACE, _FIRST_VERTEX, _PER_VERTEX = 0, 1, 6
# ... a place on each light, a direction, and the choice between metal's two reflections.
_DIRECTION, _CHOICE = 4, 5

_BLACK = (0.0, 0.0, 0.0)

Floats = NDArray[np.float64]


@device
def _backdrop_light(
    bodies: Floats, lamps: Floats, p: Vector, purpose: int, sample: int, offsets: Offsets
) -> tuple[Vector, bool]:
    """Return the radiance of the backdrop at p, and whether a body's shadow falls there."""
    n = backdrop_normal(p)
    lit, unshadowed, dark = _BLACK, _BLACK, False
    for k in range(len(lamps) + 1):
        u, v = sample_point(sample, purpose + k, offsets)
        w, e = sample_light(lamps, k, p, u, v)
        c = dot(w, n) * (ALBEDO / pi)
        if c > 0.0 and e[1] > 0.0:
            unshadowed = point_on_ray(unshadowed, c, e)
            if is_shadowed(bodies, p, w, -1):
                dark = True
            else:
                lit = point_on_ray(lit, c, e)
    around = 1.0
    for i in range(len(bodies)):
        share = covered_share(bodies, i, p, n)
        around -= share
        lit = add(lit, scale(multiply(unshadowed, body_colour(bodies, i)), share * _RETURNED))
    rest = ambient_radiance(p) * max(around, 0.0)
    return add(lit, (rest, rest, rest)), dark


@device
def _body_light(
    bodies: Floats,
    lamps: Floats,
    i: int,
    p: Vector,
    axes: Axes,
    wo: Vector,
    layers: Layers,
    purpose: int,
    sample: int,
    offsets: Offsets,
) -> Vector:
    """Return the radiance that body i reflects at p towards wo, of direct light; wo is in the frame ``axes``."""
    total = _BLACK
    for k in range(len(lamps) + 1):
        u, v = sample_point(sample, purpose + k, offsets)
        w, e = sample_light(lamps, k, p, u, v)
        wi = to_frame(w, axes)
        if wi[2] > 0.0 and e[1] > 0.0 and not is_shadowed(bodies, p, w, i):
            if bodies[i, METAL] > 0.0:
                f = scale(body_colour(bodies, i), GLOSSY_SHARE * ggx(wo, wi, GLOSSY))
            else:
                coat = rubber_coat(layers, wo, wi)
                f = point_on_ray((coat, coat, coat), rubber_body(layers, wo, wi), body_colour(bodies, i))
            total = add(total, multiply(f, e))
    return total


@device
def _path_radiance(
    bodies: Floats, lamps: Floats, p: Vector, w: Vector, sample: int, offsets: Offsets
) -> tuple[Vector, int]:
    """Trace a path from p along w; return the radiance that comes back along it, and the rarest material it meets."""
    total, through = _BLACK, (1.0, 1.0, 1.0)
    last, met, mirrored = -1, _PLAIN, True
    for vertex in range(_VERTICES):
        purpose = _FIRST_VERTEX + vertex * _PER_VERTEX
        t, i = nearest_body(bodies, p, w, last)
        if i < 0:
            t = backdrop_distance(p, w)
            if t < NOTHING:
                light, dark = _backdrop_light(bodies, lamps, point_on_ray(p, t, w), purpose, sample, offsets)
                total = add(total, multiply(through, light))
                if dark:
                    met = max(met, _SHADOW)
            return total, met
        p = point_on_ray(p, t, w)
        axes = orthonormal_frame(body_normal(bodies, i, p))
        wo = to_frame(scale(w, -1.0), axes)
        wo = normalise((wo[0], wo[1], max(wo[2], 1e-4)))
        metal = bodies[i, METAL] > 0.0
        met = max(met, _METAL if metal else _RUBBER)
        layers = NO_LAYERS if metal else rubber_layers(wo[2])
        light = _body_light(bodies, lamps, i, p, axes, wo, layers, purpose, sample, offsets)
        total = add(total, multiply(through, light))
        u, v = sample_point(sample, purpose + _DIRECTION, offsets)
        choice = sample_point(sample, purpose + _CHOICE, offsets)[0]
        if metal:
            through = multiply(through, body_colour(bodies, i))
            wi, weight = ggx_sample(wo, MIRROR, u, v)
            w = from_frame(wi, axes)
            # Lamps are not looked for after rubber: a few paths would find them, and leave specks.
            light = visible_light(lamps, p, w) if mirrored else _BLACK
            if light[1] > 0.0 and weight > 0.0 and not is_shadowed(bodies, p, w, i):
                met = _GLINT
                total = point_on_ray(total, weight * MIRROR_SHARE, multiply(through, light))
            if choice < GLOSSY_SHARE:
                wi, weight = ggx_sample(wo, GLOSSY, u, v)
            through = scale(through, weight)
        else:
            mirrored = False
            wi, weights = rubber_sample(layers, body_colour(bodies, i), wo, u, v, choice)
            through = multiply(through, weights)
        if through == _BLACK:
            return total, met
        w = from_frame(wi, axes)
        last = i
    return total, met


@device
def _srgb_byte(x: float) -> int:
    """Convert light to a byte: clipped to white, with the sRGB curve."""
    x = min(max(x, 0.0), 1.0)
    y = 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1.0 / 2.4) - 0.055
    return int(255.0 * y + 0.5)


@device
def _sample_count(rarest_material: int, samples: int) -> int:
    """Return the number of samples for a pixel by the rarest material that its paths have met."""
    if rarest_material == _GLINT:
        return samples * _GLINT_TIMES
    share = _SHADOW_SHARE if rarest_material == _SHADOW else _RUBBER_SHARE if rarest_material == _RUBBER else 1.0
    return max(min(FEW, samples), int(samples * share))


def render_scene(
    bodies: Floats,
    lamps: Floats,
    camera: Floats,
    key: Any,
    samples: int,
    table: Floats,
    offsets: Offsets,
    image: NDArray[np.uint8],
) -> None:
    """Render a scene into ``image``, uint8 [3, S, S]; ``offsets``, int64 [PURPOSES, 3], is memory to work in."""
    size = image.shape[1]
    position = (camera[0], camera[1], camera[2])
    axes = camera_axes(position)
    for row in range(size):
        for column in range(size):
            fill_pixel_offsets(key, row * size + column, offsets)
            total, met = _BLACK, _PLAIN
            taken, needed = 0, min(FEW, samples)
            while taken < needed:
                u, v = sample_point(taken, _PLACE, offsets)
                x, y = column + 0.5 + interpolate_table(table, u), row + 0.5 + interpolate_table(table, v)
                light, now = _path_radiance(bodies, lamps, position, primary_ray(axes, x, y, size), taken, offsets)
                total = add(total, light)
                taken += 1
                if now > met:
                    met = now
                    needed = _sample_count(met, samples)
            for channel in range(3):
                image[channel, row, column] = _srgb_byte(total[channel] / taken)


@device
def _screen_box(bodies: Floats, i: int, position: Vector, axes: Any, size: int) -> tuple[int, int, int, int]:
    """Return rows and columns (first, end, first, end) outside which no pixel shows the body."""
    half = bodies[i, SIZE]
    # Half width of an upright box with any rotation about the vertical.
    wide = half * sqrt(2.0) if bodies[i, SHAPE] == CUBE else half
    top, bottom, left, right = 1e9, -1e9, 1e9, -1e9
    for corner in range(8):
        p = (
            bodies[i, X] + (wide if corner & 1 else -wide),
            bodies[i, Y] + (wide if corner & 2 else -wide),
            half + (half if corner & 4 else -half),
        )
        x, y, depth = project_point(position, axes, p, size)
        if depth < 1e-3:
            return 0, size, 0, size  # the body reaches beside or behind the camera
        top, bottom, left, right = min(top, y), max(bottom, y), min(left, x), max(right, x)
    return (
        max(int(top), 0),
        max(min(int(bottom) + 1, size), 0),
        max(int(left), 0),
        max(min(int(right) + 1, size), 0),
    )


def mark_bodies(bodies: Floats, cameras: Floats, size: int, counts: NDArray[Any], masks: NDArray[Any]) -> None:
    """Count the pixels that show each body into ``counts`` [n, objects]; set ``masks`` [n, S, S] to i + 1 at body i.

    One ray is cast per pixel of each body's screen box. ``masks`` of shape [0, 0, 0] are not filled.
    """
    for scene in range(len(bodies)):
        position = (cameras[scene, 0], cameras[scene, 1], cameras[scene, 2])
        axes = camera_axes(position)
        for i in range(bodies.shape[1]):
            top, bottom, left, right = _screen_box(bodies[scene], i, position, axes, size)
            for row in range(top, bottom):
                for column in range(left, right):
                    w = primary_ray(axes, column + 0.5, row + 0.5, size)
                    if nearest_body(bodies[scene], position, w, -1)[1] == i:
                        counts[scene, i] += 1
                        if len(masks):
                            masks[scene, row, column] = i + 1

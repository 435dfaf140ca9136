"""The picture of one scene: a path from the camera through each sample, over the bodies, to the backdrop.

At every point that the path meets, the four lights are sampled and their shadows cast. From a body the path goes on: in
a cosine-distributed direction from rubber, in a mirror-like one from metal. It ends on the backdrop, where what came
over more than one reflection is taken to be a constant, less where bodies stand in the way.

Four samples are enough for a pixel that shows neither a body nor a shadow; the others get all.
"""

from math import pi
from typing import Any

import numpy as np
from numpy.typing import NDArray

from data_recipes._clevr._backdrop import ALBEDO, backdrop_normal, meet_backdrop
from data_recipes._clevr._bodies import (
    BLUE,
    GREEN,
    METAL,
    NOTHING,
    RED,
    SIZE,
    X,
    Y,
    body_normal,
    nearest_body,
    shadowed,
)  # fmt: skip
from data_recipes._clevr._camera import camera_axes, primary_ray
from data_recipes._clevr._jit import device
from data_recipes._clevr._lamps import light_from, light_seen
from data_recipes._clevr._materials import (
    GLOSSY,
    GLOSSY_SHARE,
    MIRROR,
    MIRROR_SHARE,
    ggx,
    ggx_sample,
    rubber,
    rubber_layers,
)  # fmt: skip
from data_recipes._clevr._sampling import cosine_direction, point, prepare_pixel, table_value
from data_recipes._clevr._vectors import Vector, add, along, dot, frame, from_frame, mul, scale, sub, unit

__all__ = ["FEW", "render_scene"]

PLAIN, SHADOW, BODY = 0, 1, 2
FEW = 4
"""Samples of a plain pixel."""

_AMBIENT = 0.0127
"""Radiance that the backdrop sends back of light that came over other surfaces."""

_VERTICES = 3
"""Most bodies that a path visits."""

_PER_VERTEX = 6  # points of the square: three lamps, sun, next direction, choice of metal's reflection
_BLACK = (0.0, 0.0, 0.0)

Floats = NDArray[np.float64]


@device
def _backdrop_light(
    bodies: Floats, lamps: Floats, p: Vector, skip: int, s: int, purpose: int, shifts: Floats, orders: Any
) -> tuple[Vector, bool]:
    """Radiance of the backdrop at p, and whether a body's shadow falls there."""
    n = backdrop_normal(p)
    total, dark = _BLACK, False
    for k in range(len(lamps) + 1):
        u, v = point(s, purpose + k, shifts, orders)
        w, e = light_from(lamps, k, p, u, v)
        c = dot(w, n)
        if c > 0.0 and e[1] > 0.0:
            if shadowed(bodies, p, w, -1):
                dark = True
            else:
                total = along(total, c * ALBEDO / pi, e)
    open_share = 1.0
    for i in range(len(bodies)):
        size = bodies[i, SIZE]
        v3 = sub((bodies[i, X], bodies[i, Y], size), p)
        square = dot(v3, v3)
        open_share -= max(0.0, dot(v3, n)) * size * size / (square * np.sqrt(square))
    ambient = _AMBIENT * max(open_share, 0.0)
    return add(total, (ambient, ambient, ambient)), dark


@device
def _path(
    bodies: Floats, lamps: Floats, p: Vector, w: Vector, s: int, shifts: Floats, orders: Any
) -> tuple[Vector, int]:
    """Radiance that arrives at p against w, and what the path met: PLAIN, SHADOW or BODY."""
    total, through = _BLACK, (1.0, 1.0, 1.0)
    last, met = -1, PLAIN
    for vertex in range(_VERTICES):
        purpose = 1 + vertex * _PER_VERTEX
        t, which = nearest_body(bodies, p, w, last)
        if which < 0:
            t = meet_backdrop(p, w)
            if t < NOTHING:
                light, dark = _backdrop_light(bodies, lamps, along(p, t, w), last, s, purpose, shifts, orders)
                total = add(total, mul(through, light))
                if dark and met == PLAIN:
                    met = SHADOW
            return total, met
        met = BODY
        p = along(p, t, w)
        n = body_normal(bodies, which, p)
        colour = (bodies[which, RED], bodies[which, GREEN], bodies[which, BLUE])
        tangent, bitangent = frame(n)
        wo = (-dot(w, tangent), -dot(w, bitangent), max(-dot(w, n), 1e-4))
        wo = unit(wo)
        metal = bodies[which, METAL] > 0.0
        layers = rubber_layers(wo[2])
        for k in range(len(lamps) + 1):
            u, v = point(s, purpose + k, shifts, orders)
            d, e = light_from(lamps, k, p, u, v)
            wi = (dot(d, tangent), dot(d, bitangent), dot(d, n))
            if wi[2] > 0.0 and e[1] > 0.0 and not shadowed(bodies, p, d, which):
                if metal:
                    f = scale(colour, GLOSSY_SHARE * ggx(wo, wi, GLOSSY))
                else:
                    f = rubber(layers, colour, wo, wi)
                total = add(total, mul(through, mul(f, e)))
        u, v = point(s, purpose + 4, shifts, orders)
        if metal:
            choice, _ = point(s, purpose + 5, shifts, orders)
            wi, weight = ggx_sample(wo, MIRROR, u, v)
            if weight > 0.0:
                # The sharp reflection of a lamp is seen, not sampled.
                d = from_frame(wi, tangent, bitangent, n)
                seen = light_seen(lamps, p, d)
                if seen[1] > 0.0 and not shadowed(bodies, p, d, which):
                    total = add(total, mul(through, scale(mul(colour, seen), MIRROR_SHARE * weight)))
            if choice < GLOSSY_SHARE:
                wi, weight = ggx_sample(wo, GLOSSY, u, v)
            if weight == 0.0:
                return total, met
            through = scale(mul(through, colour), weight)
        else:
            wi = cosine_direction(u, v)
            through = mul(through, scale(rubber(layers, colour, wo, wi), pi / max(wi[2], 1e-4)))
        w = from_frame(wi, tangent, bitangent, n)
        last = which
    return total, met


@device
def _srgb_byte(x: float) -> int:
    """Light to a byte: clipped to white, with the sRGB curve."""
    x = min(max(x, 0.0), 1.0)
    y = 12.92 * x if x <= 0.0031308 else 1.055 * x ** (1.0 / 2.4) - 0.055
    return int(255.0 * y + 0.5)


def render_scene(
    bodies: Floats,
    lamps: Floats,
    camera: Floats,
    key: Any,
    samples: int,
    table: Floats,
    shifts: Floats,
    orders: Any,
    image: NDArray[Any],
) -> None:
    """Render into ``image``.

    Args:
        bodies: Rows of :mod:`data_recipes._clevr._bodies`.
        lamps: Rows of :mod:`data_recipes._clevr._lamps`.
        camera: Its position [3].
        key: The image's noise, uint64.
        samples: Paths of a pixel that shows a body or a shadow.
        table: The pixel filter's inverse distribution function.
        shifts: [PURPOSES, 2], room to work in.
        orders: int64 [PURPOSES], likewise.
        image: uint8 [3, S, S], filled.
    """
    size = image.shape[1]
    position = (camera[0], camera[1], camera[2])
    axes = camera_axes(position)
    few = min(FEW, samples)
    for row in range(size):
        for column in range(size):
            prepare_pixel(key, row * size + column, shifts, orders)
            total = (0.0, 0.0, 0.0)
            taken, wanted = 0, few
            while taken < wanted:
                u, v = point(taken, 0, shifts, orders)
                x = column + 0.5 + table_value(table, u)
                y = row + 0.5 + table_value(table, v)
                light, met = _path(bodies, lamps, position, primary_ray(axes, x, y, size), taken, shifts, orders)
                total = add(total, light)
                taken += 1
                if met == BODY:
                    wanted = samples
                elif met == SHADOW:
                    wanted = max(wanted, samples // 4)
            for channel in range(3):
                image[channel, row, column] = _srgb_byte(total[channel] / taken)

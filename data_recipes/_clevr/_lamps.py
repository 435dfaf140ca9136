"""Light: three square lamps and a sun, and the two materials that reflect it.

The lights: three square lamps and the sun.

A lamp is a row of an array: where it is, its two sides as vectors, the direction in which it shines, and its intensity
(columns below). Lamps are one-sided and aim at the origin; what is seen of them is their light and its reflection.

Rubber and metal: how they reflect light.

All functions work in a frame about the surface's normal (the third coordinate is the cosine) and with unit vectors that
point away from the surface: ``wo`` to the viewer, ``wi`` to the light. Values are f(wo, wi) cos(wi), the share of the
light that arrives from wi which leaves towards wo, per steradian.

References:
    Microfacet Models for Refraction through Rough Surfaces (Walter, Marschner, Li, Torrance, EGSR 2007), "W"
    Distribution-based BRDFs (Ashikhmin, Premoze, 2007), "A"
    Sampling Visible GGX Normals with Spherical Caps (Dupuy, Benyoub, 2023), arXiv:2306.05044, "D"
"""

from math import exp, pi, sqrt, tan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmgen.data_recipes._clevr._vectors import (
    Vector,
    add,
    circle_point,
    cosine_direction,
    device,
    disc_point,
    dot,
    normalise,
    orthonormal_frame,
    point_on_ray,
    scale,
    subtract,
)

LAMP_COLUMNS = 15
_PLACE, _SIDE_A, _SIDE_B, _AIM, _INTENSITY = range(0, LAMP_COLUMNS, 3)  # three columns each

LAMPS = (
    ("key", 0.5, 78.54, (1.0, 0.9323, 0.8167)),
    ("fill", 0.5, 23.56, (0.7617, 0.8177, 1.0)),
    ("back", 1.0, 39.27, (1.0, 1.0, 1.0)),
)
"""Name, side, power in watts and colour. A square lamp of power W has radiance W / (pi side^2)."""


def _normalise(v: Vector) -> Vector:
    length = sqrt(v[0] ** 2 + v[1] ** 2 + v[2] ** 2)
    return v[0] / length, v[1] / length, v[2] / length


SUN_DIRECTION = _normalise((0.4145, -0.1946, 0.8890))
"""Towards the sun, which shines on all scenes alike."""

SUN_STRENGTH = 0.45
"""Irradiance of a surface that faces it."""

SUN_ANGLE = 0.1993
"""Its diameter, radians."""

_SUN_RADIUS = tan(SUN_ANGLE / 2.0)  # of its disc at distance 1
_SUN_RADIANCE = SUN_STRENGTH / (pi * _SUN_RADIUS**2)
_SUN_AXES = orthonormal_frame(SUN_DIRECTION)


def lamp_rows(positions: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """Return lamps [n, 3, LAMP_COLUMNS] of n scenes from their positions [n, 3] by name."""

    def normalise(v: NDArray[np.float64]) -> NDArray[np.float64]:
        x, y, z = v[..., 0], v[..., 1], v[..., 2]
        return v / np.sqrt(x * x + y * y + z * z)[..., None]

    rows = []
    for name, side, watts, colour in LAMPS:
        place = np.asarray(positions[name], np.float64)
        aim = normalise(-place)
        a = normalise(np.cross([0.0, 0.0, 1.0], aim))
        intensity = np.broadcast_to(np.array(colour) * watts / np.pi, place.shape)
        rows.append(np.concatenate([place, side * a, side * np.cross(aim, a), aim, intensity], axis=-1))
    return np.stack(rows, axis=-2)


@device
def _lamp_vector(lamps: NDArray[np.float64], k: int, column: int) -> Vector:
    return lamps[k, column], lamps[k, column + 1], lamps[k, column + 2]


@device
def sample_light(lamps: NDArray[np.float64], k: int, p: Vector, u: float, v: float) -> tuple[Vector, Vector]:
    """Return direction and irradiance of the light that reaches p from the point (u, v) of lamp k, or of the sun."""
    if k == len(lamps):
        x, y = disc_point(u, v)
        w = point_on_ray(point_on_ray(SUN_DIRECTION, x * _SUN_RADIUS, _SUN_AXES[0]), y * _SUN_RADIUS, _SUN_AXES[1])
        shrink = 1.0 / sqrt(1.0 + (x * x + y * y) * (_SUN_RADIUS * _SUN_RADIUS))
        return scale(w, shrink), (SUN_STRENGTH, SUN_STRENGTH, SUN_STRENGTH)
    place = _lamp_vector(lamps, k, _PLACE)
    place = point_on_ray(
        point_on_ray(place, u - 0.5, _lamp_vector(lamps, k, _SIDE_A)), v - 0.5, _lamp_vector(lamps, k, _SIDE_B)
    )
    w = subtract(place, p)
    nearness = 1.0 / sqrt(dot(w, w))
    w = scale(w, nearness)
    falling = max(0.0, -dot(w, _lamp_vector(lamps, k, _AIM)))
    return w, scale(_lamp_vector(lamps, k, _INTENSITY), falling * nearness * nearness)


@device
def visible_light(lamps: NDArray[np.float64], p: Vector, w: Vector) -> Vector:
    """Return the radiance of all lights that the unobstructed ray from p in the unit direction w meets."""
    total = (0.0, 0.0, 0.0)
    for k in range(len(lamps)):
        aim = _lamp_vector(lamps, k, _AIM)
        to_lamp = subtract(_lamp_vector(lamps, k, _PLACE), p)
        falling, ahead = -dot(w, aim), -dot(to_lamp, aim)
        if falling > 0.0 and ahead > 0.0:
            # The ray meets the lamp's plane at w ahead / falling; q is "falling" times what lies between there and
            # the lamp's middle.
            q = subtract(scale(w, ahead), scale(to_lamp, falling))
            a, b = _lamp_vector(lamps, k, _SIDE_A), _lamp_vector(lamps, k, _SIDE_B)
            area = dot(a, a)
            if max(abs(dot(q, a)), abs(dot(q, b))) < 0.5 * area * falling:
                total = point_on_ray(total, 1.0 / area, _lamp_vector(lamps, k, _INTENSITY))
    c = dot(w, SUN_DIRECTION)
    if c > 0.0 and 1.0 - c * c < (_SUN_RADIUS * c) ** 2:  # tan(angle) < radius
        total = point_on_ray(total, _SUN_RADIANCE, (1.0, 1.0, 1.0))
    return total


# Rubber: a glossy coat (refractive index 1.2) on a layer of velvet (1.4) on a diffuse one.
OUTER_INDEX, INNER_INDEX = 1.2, 1.4
VELVET_SIGMA = 0.6
_VELVET = VELVET_SIGMA**-2
COAT, COAT_ROUGHNESS = 0.8, 0.35
"""Reflectance and roughness alpha of rubber's coat."""

_BECKMANN = COAT_ROUGHNESS**-2

GLOSSY, GLOSSY_SHARE = 0.2, 0.4
"""Roughness alpha and share of metal's blurred reflection."""

MIRROR, MIRROR_SHARE = 0.01, 0.6
"""Roughness alpha and share of metal's sharp reflection."""


Layers = tuple[float, float, float, float]
"""Shares of rubber's diffuse, velvet and glossy layers, and the glossy layer's Lambda, for one viewer."""

NO_LAYERS: Layers = (0.0, 0.0, 0.0, 0.0)


@device
def fresnel(cosine: float, index: float) -> float:
    """Return the share of unpolarised light that the boundary to a dielectric of this refractive index reflects."""
    g = sqrt(index * index - 1.0 + cosine * cosine)
    a = (g - cosine) / (g + cosine)
    b = (cosine * (g + cosine) - 1.0) / (cosine * (g - cosine) + 1.0)
    return 0.5 * a * a * (1.0 + b * b)


@device
def rubber_layers(cosine: float) -> Layers:
    """Return the shares of rubber's layers in reflected light for a viewer at this cosine, see ``Layers``."""
    outer, inner = fresnel(cosine, OUTER_INDEX), fresnel(cosine, INNER_INDEX)
    return (1.0 - outer) * (1.0 - inner), (1.0 - outer) * inner, outer, _beckmann_lambda(cosine)


@device
def _beckmann_lambda(cosine: float) -> float:
    """Return Lambda of Beckmann's shadowing, G1 = 1 / (1 + Lambda), by the rational function of W Eq. 27."""
    a2 = _BECKMANN * cosine * cosine / max(1.0 - cosine * cosine, 1e-12)
    if a2 >= 1.6 * 1.6:
        return 0.0
    a = sqrt(a2)
    return (1.0 - 1.259 * a + 0.396 * a2) / (3.535 * a + 2.181 * a2)


@device
def _halfway(wo: Vector, wi: Vector) -> tuple[float, float]:
    """Return the squared cosine of the direction halfway between the two, and (wo + wi)_z / (1 + wo . wi)."""
    height = wo[2] + wi[2]
    ratio = height / max(1.0 + dot(wo, wi), 1e-9)
    return min(0.5 * height * ratio, 1.0 - 1e-9), ratio


@device
def rubber_body(layers: Layers, wo: Vector, wi: Vector) -> float:
    """Return f cos(wi) of rubber's diffuse and velvet layers, which the object's colour tints."""
    # The velvet is A's, whose microscopic normals avoid the surface's own: their density is proportional to exp(-cot^2
    # / sigma^2) / sin^4.
    cos2, ratio = _halfway(wo, wi)
    over_sin2 = 1.0 / (1.0 - cos2)
    velvet = exp(cos2 * over_sin2 * -_VELVET) * _VELVET / pi * over_sin2 * over_sin2
    velvet *= 0.25 / wo[2] * min(1.0, 2.0 * ratio * min(wo[2], wi[2]))
    return layers[0] * wi[2] / pi + layers[1] * velvet


@device
def rubber_coat(layers: Layers, wo: Vector, wi: Vector) -> float:
    """Return f cos(wi) of rubber's glossy coat, W Eq. 20 with the density of Eq. 25."""
    cos2, _ = _halfway(wo, wi)
    over_cos2 = 1.0 / cos2
    glossy = exp((cos2 - 1.0) * over_cos2 * _BECKMANN) * _BECKMANN / pi * over_cos2 * over_cos2
    return layers[2] * COAT * 0.25 * glossy / (wo[2] * (1.0 + layers[3] + _beckmann_lambda(wi[2])))


@device
def rubber_sample(
    layers: Layers, colour: Vector, wo: Vector, u: float, v: float, choice: float
) -> tuple[Vector, Vector]:
    """Draw the direction of light that rubber reflects to wo, and return it with f cos(wi) / density."""
    # Seen flat, rubber is all coat, and a cosine-distributed direction would seldom find what the coat reflects: so one
    # of the two is chosen. What the coat reflects is drawn with GGX's microscopic normals, for which this is easy,
    # instead of Beckmann's.
    if choice < layers[2]:
        wi, weight = ggx_sample(wo, COAT_ROUGHNESS, u, v)
        return wi, (COAT * weight, COAT * weight, COAT * weight)
    wi = cosine_direction(u, v)
    weight = rubber_body(layers, wo, wi) * pi / (max(wi[2], 1e-4) * (1.0 - layers[2]))
    return wi, scale(colour, weight)


@device
def _ggx_lambda(cosine: float, alpha: float) -> float:
    c2 = cosine * cosine
    return 0.5 * (sqrt(1.0 + alpha * alpha * (1.0 - c2) / c2) - 1.0)


@device
def ggx(wo: Vector, wi: Vector, alpha: float) -> float:
    """Return W Eq. 20 and 33 with height-correlated shadowing: f cos(wi) of a white mirror of this roughness."""
    height = wo[2] + wi[2]
    a2 = alpha * alpha
    d = 1.0 + (a2 - 1.0) * 0.5 * height * height / (1.0 + dot(wo, wi))
    # The shadowing 1 / (1 + Lambda(wo) + Lambda(wi)), with one division for all.
    so, si = sqrt(a2 + (1.0 - a2) * wo[2] * wo[2]), sqrt(a2 + (1.0 - a2) * wi[2] * wi[2])
    return a2 * wi[2] / (2.0 * pi * d * d * (wi[2] * so + wo[2] * si))


@device
def ggx_sample(wo: Vector, alpha: float, u: float, v: float) -> tuple[Vector, float]:
    """Draw a visible microscopic normal (D) and reflect on it: the direction, and f cos(wi) / density."""
    # Stretch, so that the roughness becomes 1, draw from the visible half of the sphere, and stretch back.
    w = normalise((alpha * wo[0], alpha * wo[1], wo[2]))
    x, y = circle_point(u)
    z = (1.0 - v) * (1.0 + w[2]) - w[2]
    r = sqrt(max(0.0, 1.0 - z * z))
    h = add(w, (r * x, r * y, z))
    h = normalise((alpha * h[0], alpha * h[1], max(h[2], 1e-12)))
    wi = point_on_ray(scale(wo, -1.0), 2.0 * dot(wo, h), h)
    if wi[2] <= 0.0:
        return wi, 0.0
    g1 = 1.0 + _ggx_lambda(wo[2], alpha)
    return wi, g1 / (g1 + _ggx_lambda(wi[2], alpha))

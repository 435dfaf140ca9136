"""Rubber and metal: how they reflect light.

All functions work in a frame about the surface's normal (the third coordinate is the cosine) and with unit vectors that
point away from the surface: ``wo`` to the viewer, ``wi`` to the light. Values are f(wo, wi) cos(wi), the share of the
light that arrives from wi which leaves towards wo, per steradian.

References:
    Microfacet Models for Refraction through Rough Surfaces (Walter, Marschner, Li, Torrance, EGSR 2007), "W"
    Distribution-based BRDFs (Ashikhmin, Premoze, 2007), "A"
    Sampling Visible GGX Normals with Spherical Caps (Dupuy, Benyoub, 2023), arXiv:2306.05044, "D"
"""

from math import exp, pi, sqrt

from data_recipes._clevr._jit import device
from data_recipes._clevr._sampling import circle
from data_recipes._clevr._vectors import Vector, add, along, dot, scale, unit

__all__ = [
    "GLOSSY", "GLOSSY_SHARE", "MIRROR", "MIRROR_SHARE", "fresnel", "ggx", "ggx_sample", "rubber", "rubber_weights",
]  # fmt: skip

_OUTER_INDEX, _INNER_INDEX = 1.2, 1.4
_VELVET_SIGMA = 0.6
_BECKMANN_ALPHA = 0.35
_BECKMANN_COLOUR = 0.8

GLOSSY, GLOSSY_SHARE = 0.2, 0.4
"""Roughness alpha and share of metal's blurred reflection."""

MIRROR, MIRROR_SHARE = 0.01, 0.6
"""Roughness alpha and share of metal's sharp reflection."""


@device
def fresnel(cosine: float, index: float) -> float:
    """Share of unpolarised light that the boundary to a dielectric of this refractive index reflects."""
    g = sqrt(index * index - 1.0 + cosine * cosine)
    a = (g - cosine) / (g + cosine)
    b = (cosine * (g + cosine) - 1.0) / (cosine * (g - cosine) + 1.0)
    return 0.5 * a * a * (1.0 + b * b)


@device
def rubber_weights(cosine: float) -> tuple[float, float, float]:
    """Shares of rubber's diffuse, velvet and glossy layers for a viewer at this cosine."""
    outer, inner = fresnel(cosine, _OUTER_INDEX), fresnel(cosine, _INNER_INDEX)
    return (1.0 - outer) * (1.0 - inner), (1.0 - outer) * inner, outer


@device
def _velvet(wo: Vector, wi: Vector) -> float:
    """A's velvet: microscopic normals that avoid the surface's own, density exp(-cot^2 / sigma^2) / sin^4."""
    h = unit(add(wo, wi))
    sine2 = max(1.0 - h[2] * h[2], 1e-9)
    cosine_h = dot(wo, h)
    if cosine_h < 1e-9:
        return 0.0
    s = 1.0 / (_VELVET_SIGMA * _VELVET_SIGMA)
    density = exp(-h[2] * h[2] / sine2 * s) * s / (pi * sine2 * sine2)
    ratio = 2.0 * h[2] / cosine_h
    masking = min(1.0, ratio * wo[2], ratio * wi[2])
    return 0.25 * density * masking / wo[2]


@device
def _beckmann_lambda(cosine: float) -> float:
    """W Eq. 27, Beckmann's shadowing as a rational function: G1 = 1 / (1 + Lambda)."""
    a = cosine / (_BECKMANN_ALPHA * sqrt(max(1.0 - cosine * cosine, 1e-12)))
    return 0.0 if a >= 1.6 else (1.0 - 1.259 * a + 0.396 * a * a) / (3.535 * a + 2.181 * a * a)


@device
def _beckmann(wo: Vector, wi: Vector) -> float:
    """W Eq. 20 and 25."""
    h = unit(add(wo, wi))
    c2 = h[2] * h[2]
    a2 = _BECKMANN_ALPHA * _BECKMANN_ALPHA
    density = exp((c2 - 1.0) / (c2 * a2)) / (pi * a2 * c2 * c2)
    return 0.25 * density / (wo[2] * (1.0 + _beckmann_lambda(wo[2]) + _beckmann_lambda(wi[2])))


@device
def rubber(weights: Vector, colour: Vector, wo: Vector, wi: Vector) -> Vector:
    """Rubber seen under the weights of its layers: f cos(wi) for red, green and blue."""
    velvet = weights[0] * wi[2] / pi + weights[1] * _velvet(wo, wi)
    glossy = weights[2] * _BECKMANN_COLOUR * _beckmann(wo, wi)
    return colour[0] * velvet + glossy, colour[1] * velvet + glossy, colour[2] * velvet + glossy


@device
def _ggx_lambda(cosine: float, alpha: float) -> float:
    c2 = cosine * cosine
    return 0.5 * (sqrt(1.0 + alpha * alpha * (1.0 - c2) / c2) - 1.0)


@device
def ggx(wo: Vector, wi: Vector, alpha: float) -> float:
    """W Eq. 20 and 33 with height-correlated shadowing: f cos(wi) of a white mirror of this roughness."""
    h = unit(add(wo, wi))
    a2 = alpha * alpha
    d = 1.0 + (a2 - 1.0) * h[2] * h[2]
    density = a2 / (pi * d * d)
    return 0.25 * density / (wo[2] * (1.0 + _ggx_lambda(wo[2], alpha) + _ggx_lambda(wi[2], alpha)))


@device
def ggx_sample(wo: Vector, alpha: float, u: float, v: float) -> tuple[Vector, float]:
    """Draw a visible microscopic normal (D) and reflect on it: the direction, and f cos(wi) / density.

    The weight is 0 where the direction points into the surface.
    """
    # Stretch, so that the roughness becomes 1, draw from the visible half of the sphere, and stretch back.
    w = unit((alpha * wo[0], alpha * wo[1], wo[2]))
    x, y = circle(u)
    z = (1.0 - v) * (1.0 + w[2]) - w[2]
    r = sqrt(max(0.0, 1.0 - z * z))
    h = add(w, (r * x, r * y, z))
    h = unit((alpha * h[0], alpha * h[1], max(h[2], 1e-12)))
    wi = along(scale(wo, -1.0), 2.0 * dot(wo, h), h)
    if wi[2] <= 0.0:
        return wi, 0.0
    g1 = 1.0 + _ggx_lambda(wo[2], alpha)
    return wi, g1 / (g1 + _ggx_lambda(wi[2], alpha))

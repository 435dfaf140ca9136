"""Three-vectors as tuples: the compiler keeps them in registers."""

from math import sqrt

from mmgen.data_recipes._clevr._jit import device

__all__ = [
    "Axes",
    "Vector",
    "add",
    "point_on_ray",
    "cross",
    "dot",
    "orthonormal_frame",
    "from_frame",
    "multiply",
    "scale",
    "subtract",
    "to_frame",
    "normalise",
]

Vector = tuple[float, float, float]

Axes = tuple[Vector, Vector, Vector]
"""An orthonormal frame; the third is a surface's normal, or the direction in which something looks."""


@device
def add(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@device
def subtract(a: Vector, b: Vector) -> Vector:
    """Return a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@device
def multiply(a: Vector, b: Vector) -> Vector:
    """Return products of the components: light that a surface of colour ``a`` returns of light ``b``."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@device
def scale(a: Vector, s: float) -> Vector:
    """Return s a."""
    return a[0] * s, a[1] * s, a[2] * s


@device
def point_on_ray(origin: Vector, t: float, direction: Vector) -> Vector:
    """Return the origin + t direction."""
    return origin[0] + t * direction[0], origin[1] + t * direction[1], origin[2] + t * direction[2]


@device
def dot(a: Vector, b: Vector) -> float:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@device
def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@device
def normalise(a: Vector) -> Vector:
    """Return a / |a|."""
    return scale(a, 1.0 / sqrt(dot(a, a)))


@device
def orthonormal_frame(n: Vector) -> Axes:
    """Return two unit vectors that complete the unit vector ``n`` to an orthonormal frame, and ``n``.

    The construction has to change somewhere on the sphere. It does so close to the bottom, which nothing here shows: a
    change at n_z = 0 is seen as a dotted line round every object.

    References:
        Building an Orthonormal Basis from a 3D Unit Vector Without Normalization (Frisvad, 2012), Journal of Graphics
        Tools 16(3), https://doi.org/10.1080/2165347X.2012.689606
    """
    x, y, z = n
    if z > -0.9:
        a = 1.0 / (1.0 + z)
        b = -x * y * a
        return (1.0 - x * x * a, b, -x), (b, 1.0 - y * y * a, -y), n
    a = 1.0 / (1.0 - z)
    b = x * y * a
    return (1.0 - x * x * a, -b, x), (-b, 1.0 - y * y * a, y), n


@device
def to_frame(w: Vector, axes: Axes) -> Vector:
    """Return coordinates of w along the axes of a frame."""
    return dot(w, axes[0]), dot(w, axes[1]), dot(w, axes[2])


@device
def from_frame(local: Vector, axes: Axes) -> Vector:
    """Return the vector whose coordinates along the axes of a frame are ``local``."""
    return point_on_ray(point_on_ray(scale(axes[0], local[0]), local[1], axes[1]), local[2], axes[2])

"""Three-vectors as tuples: the compiler keeps them in registers."""

from math import sqrt

from data_recipes._clevr._jit import device

__all__ = ["Vector", "add", "along", "cross", "dot", "frame", "from_frame", "mul", "reflect", "scale", "sub", "unit"]

Vector = tuple[float, float, float]


@device
def add(a: Vector, b: Vector) -> Vector:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@device
def sub(a: Vector, b: Vector) -> Vector:
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@device
def mul(a: Vector, b: Vector) -> Vector:
    """Products of the components: light that a surface of colour ``a`` returns of light ``b``."""
    return a[0] * b[0], a[1] * b[1], a[2] * b[2]


@device
def scale(a: Vector, s: float) -> Vector:
    """s a."""
    return a[0] * s, a[1] * s, a[2] * s


@device
def along(origin: Vector, t: float, direction: Vector) -> Vector:
    """origin + t direction."""
    return origin[0] + t * direction[0], origin[1] + t * direction[1], origin[2] + t * direction[2]


@device
def dot(a: Vector, b: Vector) -> float:
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@device
def cross(a: Vector, b: Vector) -> Vector:
    """a x b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@device
def unit(a: Vector) -> Vector:
    """a / |a|."""
    return scale(a, 1.0 / sqrt(dot(a, a)))


@device
def reflect(w: Vector, n: Vector) -> Vector:
    """The mirror image of ``w`` about ``n``; both point away from the surface."""
    return along(scale(w, -1.0), 2.0 * dot(w, n), n)


@device
def frame(n: Vector) -> tuple[Vector, Vector]:
    """Two unit vectors that complete the unit vector ``n`` to an orthonormal frame.

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
        return (1.0 - x * x * a, b, -x), (b, 1.0 - y * y * a, -y)
    a = 1.0 / (1.0 - z)
    b = x * y * a
    return (1.0 - x * x * a, -b, x), (-b, 1.0 - y * y * a, y)


@device
def from_frame(local: Vector, t: Vector, b: Vector, n: Vector) -> Vector:
    """The vector whose coordinates along t, b and n are ``local``."""
    x, y, z = local
    return (
        x * t[0] + y * b[0] + z * n[0],
        x * t[1] + y * b[1] + z * n[1],
        x * t[2] + y * b[2] + z * n[2],
    )

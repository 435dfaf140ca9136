from ._base import (
    Density as Density,
    Family as Family,
    SteeredDensity as SteeredDensity,
    Steering as Steering,
)
from ._conditional_gaussian import ConditionalGaussian as ConditionalGaussian
from ._members import describe as describe, get as get, import_all as import_all, names as names

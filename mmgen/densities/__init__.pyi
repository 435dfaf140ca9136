from ._base import CombiningDensity as CombiningDensity, Density as Density, Family as Family
from ._conditional_gaussian import ConditionalGaussian as ConditionalGaussian
from ._members import describe as describe, get as get, import_all as import_all, names as names

from ._base import Likelihood as Likelihood, full_precision as full_precision
from ._members import describe as describe, get as get, importable as importable, names as names

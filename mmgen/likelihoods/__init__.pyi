from ._base import Likelihood as Likelihood, full_precision as full_precision
from ._members import describe as describe, get as get, import_all as import_all, names as names

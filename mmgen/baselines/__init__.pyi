from ._base import Baseline as Baseline, LabelSupply as LabelSupply
from ._members import describe as describe, get as get, importable as importable, names as names
from ._run import lines_of as lines_of, measure as measure
from ._run_density import measure_density as measure_density

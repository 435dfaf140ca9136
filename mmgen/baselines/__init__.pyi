from ._base import Baseline as Baseline, LabelSupply as LabelSupply
from ._members import describe as describe, get as get, importable as importable, names as names
from ._run import measure_density as measure_density, measure_labels as measure_labels

from ._base import Baseline as Baseline, LabelSupply as LabelSupply
from ._members import describe as describe, get as get, import_all as import_all, names as names
from ._run import measure_density as measure_density, measure_labels as measure_labels

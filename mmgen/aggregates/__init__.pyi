from ._base import Aggregate as Aggregate, Density as Density, Family as Family
from ._before import describe_fit as describe_fit, is_fit as is_fit
from ._encode import posterior_to_aggregate as posterior_to_aggregate
from ._fit import (
    FitSettings as FitSettings,
    complete_fit_settings as complete_fit_settings,
    fit_aggregate as fit_aggregate,
    load_aggregate as load_aggregate,
    load_base as load_base,
)
from ._guided import few_candidates as few_candidates
from ._members import describe as describe, get as get, importable as importable, names as names

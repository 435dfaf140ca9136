from ._base import (
    GaussianHead as GaussianHead,
    Inference as Inference,
    Inputs as Inputs,
    Parts as Parts,
    Unit as Unit,
    as_gaussian as as_gaussian,
)
from ._experts import ExpertInference as ExpertInference
from ._members import describe as describe, get as get, importable as importable, names as names

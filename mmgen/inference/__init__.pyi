from ._base import (
    GaussianHead as GaussianHead,
    Inference as Inference,
    InferenceParts as InferenceParts,
    Inputs as Inputs,
    Unit as Unit,
    gaussian_of_output as gaussian_of_output,
)
from ._experts import ExpertInference as ExpertInference
from ._members import describe as describe, get as get, import_all as import_all, names as names

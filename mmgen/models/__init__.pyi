from ._base import Demands as Demands, GaussianModel as GaussianModel, Model as Model, Unit as Unit
from ._build import build_model as build_model
from ._members import describe as describe, get as get, importable as importable, names as names
from ._settings import (
    DataSettings as DataSettings,
    ModelSettings as ModelSettings,
    MultimodalSettings as MultimodalSettings,
)

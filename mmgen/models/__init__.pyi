from ._base import (
    Demands as Demands,
    Inputs as Inputs,
    Model as Model,
)
from ._build import build_model as build_model
from ._capabilities import (
    CAPABILITIES as CAPABILITIES,
    USUAL_NEEDS as USUAL_NEEDS,
    check_capabilities as check_capabilities,
)
from ._gaussian_model import (
    GaussianModel as GaussianModel,
    Unit as Unit,
)
from ._parts import (
    Examples as Examples,
    Preparation as Preparation,
    available_modalities as available_modalities,
    make_decoders as make_decoders,
    networks_by_kind as networks_by_kind,
)
from ._prior import (
    LearnedPrior as LearnedPrior,
    PriorNetwork as PriorNetwork,
)
from ._settings import (
    DataSettings as DataSettings,
    ModelSettings as ModelSettings,
    MultimodalSettings as MultimodalSettings,
)

def describe(name: str) -> str: ...
def get(name: str) -> type[Model]: ...
def import_all() -> dict[str, type[Model]]: ...
def names() -> list[str]: ...

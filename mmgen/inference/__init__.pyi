from ._base import (
    CombinedInference as CombinedInference,
    ExpertInference as ExpertInference,
    GaussianHead as GaussianHead,
    Inference as Inference,
    InferenceParts as InferenceParts,
    Inputs as Inputs,
    ModalityPosterior as ModalityPosterior,
    Unit as Unit,
    every_subset as every_subset,
    gaussian_of_output as gaussian_of_output,
)

def describe(name: str) -> str: ...
def get(name: str) -> type[Inference]: ...
def import_all() -> dict[str, type[Inference]]: ...
def names() -> list[str]: ...

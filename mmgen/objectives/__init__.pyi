from ._base import (
    CONFIG as CONFIG,
    Batch as Batch,
    Bound as Bound,
    Demands as Demands,
    Modalities as Modalities,
    Objective as Objective,
    WeightedObjective as WeightedObjective,
    expected_log_likelihood as expected_log_likelihood,
    prior_kl as prior_kl,
    relative_weight as relative_weight,
    role as role,
    warmup_weight as warmup_weight,
)
from ._opponent import Adversarial as Adversarial, Opponent as Opponent, keep_unchanged as keep_unchanged

def describe(name: str) -> str: ...
def get(name: str) -> type[Objective]: ...
def import_all() -> dict[str, type[Objective]]: ...
def names() -> list[str]: ...

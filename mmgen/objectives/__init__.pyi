from ._base import (
    CONFIG as CONFIG,
    Bound as Bound,
    Modalities as Modalities,
    Objective as Objective,
    WeightedObjective as WeightedObjective,
    expected_log_likelihood as expected_log_likelihood,
    prior_kl as prior_kl,
    relative_weight as relative_weight,
    role as role,
    warmup_weight as warmup_weight,
)
from ._members import describe as describe, get as get, import_all as import_all, names as names
from ._opponent import Adversarial as Adversarial, Opponent as Opponent, keep_unchanged as keep_unchanged

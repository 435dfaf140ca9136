from .evaluation import Evaluation as Evaluation
from .factors import (
    LEAST as LEAST,
    Code as Code,
    Factors as Factors,
    chance_information as chance_information,
    read_factors as read_factors,
    relative_information as relative_information,
)
from .provenance import default_scores_file as default_scores_file, write_scores as write_scores
from .queries import weighted_mean as weighted_mean
from .settings import EvaluationSettings as EvaluationSettings

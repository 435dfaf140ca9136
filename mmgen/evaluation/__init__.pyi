from .evaluation import Evaluation as Evaluation
from .factors import Code as Code, Factors as Factors, read_factors as read_factors
from .mutual_information import (
    LEAST as LEAST,
    chance_information as chance_information,
    relative_information as relative_information,
)
from .queries import weighted_mean as weighted_mean
from .score_files import default_scores_file as default_scores_file, write_scores as write_scores
from .settings import EvaluationSettings as EvaluationSettings

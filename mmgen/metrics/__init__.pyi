from ._asked import (
    check_once as check_once,
    check_read as check_read,
    left_out as left_out,
    usual_metrics as usual_metrics,
)
from ._base import Metric as Metric, Score as Score
from ._code import Code as Code, Factors as Factors, read_factors as read_factors
from ._evaluate import evaluate as evaluate, evaluate_by_all as evaluate_by_all, notice as notice
from ._evaluation import Evaluation as Evaluation, EvaluationSettings as EvaluationSettings
from ._information import LEAST as LEAST, chance as chance, information as information
from ._kept import scores_beside as scores_beside, write_scores as write_scores
from ._members import describe as describe, get as get, importable as importable, names as names
from ._queries import weighted_mean as weighted_mean

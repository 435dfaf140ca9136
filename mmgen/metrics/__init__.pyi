from ._asked import (
    check_once as check_once,
    check_read as check_read,
    left_out as left_out,
    usual_metrics as usual_metrics,
)
from ._base import Metric as Metric, Score as Score
from ._evaluate import evaluate as evaluate, evaluate_by_all as evaluate_by_all, notice as notice
from ._members import describe as describe, get as get, importable as importable, names as names

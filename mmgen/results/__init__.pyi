from .comparing import compare_entries as compare_entries, compare_scores as compare_scores
from .comparison import Comparison as Comparison
from .conditions import Conditions as Conditions
from .groups import Contrast as Contrast, RunGroup as RunGroup, contrast as contrast, group_runs as group_runs
from .number import Number as Number
from .score import (
    ExampleValues as ExampleValues,
    Score as Score,
    Scores as Scores,
    classifier_names as classifier_names,
    read_scores as read_scores,
    tabulate_scores as tabulate_scores,
)
from .table import Cell as Cell, Table as Table

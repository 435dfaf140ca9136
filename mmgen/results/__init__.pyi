from .comparing import compare_entries as compare_entries, compare_scores as compare_scores
from .comparison import Comparison as Comparison
from .conditions import Conditions as Conditions
from .groups import Contrast as Contrast, Group as Group, contrast as contrast, group_of as group_of
from .number import Number as Number
from .score import Points as Points, Score as Score, judge_names as judge_names, read_scores as read_scores
from .score_table import Scores as Scores, table_of as table_of
from .table import Cell as Cell, Table as Table

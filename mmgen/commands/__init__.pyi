from ._base import (
    Drawing as Drawing,
    Stage as Stage,
    Training as Training,
    source_file_of as source_file_of,
    stage_class as stage_class,
    stage_names as stage_names,
)
from ._environment import describe_environment as describe_environment
from ._fields import StageField as StageField, fields_of as fields_of, option_names as option_names
from ._functions import make_function as make_function

from ._base import Drawing as Drawing, Stage as Stage, Training as Training
from ._environment import environment as environment
from ._fields import (
    Assignments as Assignments,
    Commas as Commas,
    Input as Input,
    MemberOf as MemberOf,
    MemberSettings as MemberSettings,
    OptionName as OptionName,
    Reads as Reads,
    Source as Source,
    StageField as StageField,
    Words as Words,
    fields_of as fields_of,
    option_names as option_names,
)
from ._folders import reported_files as reported_files
from ._functions import function as function
from ._members import source_of as source_of, stage_class as stage_class, stage_names as stage_names
from ._words import check_words as check_words

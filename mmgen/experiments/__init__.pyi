from ._comparison import compare as compare
from ._files import datasets_of as datasets_of, names as names, text_of as text_of, usual_dataset_of as usual_dataset_of
from ._page import judge_sentence as judge_sentence, markdown as markdown, tables_of as tables_of
from ._plan import (
    check_is_data as check_is_data,
    comment as comment,
    find_list as find_list,
    only as only,
    own_stages as own_stages,
    read_plan as read_plan,
    script as script,
    with_data as with_data,
)
from ._seeds import Runs as Runs, with_seed as with_seed, with_seeds as with_seeds
from ._stages import Plan as Plan, Scale as Scale, Stage as Stage, seeds_of as seeds_of
from ._states import finished_files as finished_files, is_noted as is_noted, remember as remember, state_of as state_of

from ._comparison import compare as compare
from ._files import datasets_of as datasets_of, names as names, text_of as text_of, usual_dataset_of as usual_dataset_of
from ._notes import note_of as note_of, remember as remember
from ._page import judge_sentence as judge_sentence, markdown as markdown, tables_of as tables_of
from ._plan import (
    check_is_data as check_is_data,
    comment as comment,
    find_list as find_list,
    fitting as fitting,
    only as only,
    read_plan as read_plan,
    script as script,
    state_of as state_of,
    with_data as with_data,
)
from ._seeds import Runs as Runs, with_seed as with_seed, with_seeds as with_seeds
from ._stages import Plan as Plan, Scale as Scale, Stage as Stage, seeds_of as seeds_of

from ._page import (
    classifier_accuracy_sentence as classifier_accuracy_sentence,
    comparison_tables as comparison_tables,
    page_markdown as page_markdown,
)
from ._plan import (
    check_is_dataset as check_is_dataset,
    comment_lines as comment_lines,
    datasets_of_table as datasets_of_table,
    default_dataset_of as default_dataset_of,
    experiment_names as experiment_names,
    experiment_text as experiment_text,
    find_experiment as find_experiment,
    lacking_commands as lacking_commands,
    packaged_stages as packaged_stages,
    read_plan as read_plan,
    select_rows as select_rows,
    shell_script as shell_script,
    use_dataset as use_dataset,
)
from ._seeds import (
    Runs as Runs,
    repeat_over_seeds as repeat_over_seeds,
    seed_file_name as seed_file_name,
    set_seed as set_seed,
)
from ._stages import Plan as Plan, Scale as Scale, Stage as Stage, parse_seeds as parse_seeds
from ._states import (
    find_state as find_state,
    finished_files as finished_files,
    is_artifact_name as is_artifact_name,
    matches_record as matches_record,
    record_command as record_command,
)
from ._tables import compare_table as compare_table

from ._base import (
    Metric as Metric,
    Score as Score,
    check_distinct as check_distinct,
    check_options_are_read as check_options_are_read,
    default_metrics as default_metrics,
    dropped_counts as dropped_counts,
    evaluate as evaluate,
    evaluate_with_classifiers as evaluate_with_classifiers,
    training_images_warning as training_images_warning,
)

def describe(name: str) -> str: ...
def get(name: str) -> type[Metric]: ...
def import_all() -> dict[str, type[Metric]]: ...
def names() -> list[str]: ...

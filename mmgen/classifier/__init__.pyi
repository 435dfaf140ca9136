from ._classifier import Classifier as Classifier, ClassifierNetwork as ClassifierNetwork
from ._files import (
    find_best_classifier as find_best_classifier,
    held_out_accuracy as held_out_accuracy,
    load_classifier as load_classifier,
)
from ._training import (
    Accuracy as Accuracy,
    ClassifierSettings as ClassifierSettings,
    count_confusions as count_confusions,
    default_training as default_training,
    resolve_hints as resolve_hints,
    resolve_network as resolve_network,
    train_classifier as train_classifier,
)

def describe(name: str) -> str: ...
def get(name: str) -> type[ClassifierNetwork]: ...
def import_all() -> dict[str, type[ClassifierNetwork]]: ...
def names() -> list[str]: ...

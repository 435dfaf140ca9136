from ._accuracy import Accuracy as Accuracy, count_confusions as count_confusions
from ._base import ClassifierNetwork as ClassifierNetwork
from ._classifier import Classifier as Classifier
from ._files import held_out_accuracy as held_out_accuracy, load_classifier as load_classifier
from ._find import find_best_classifier as find_best_classifier
from ._training import (
    ClassifierSettings as ClassifierSettings,
    default_training as default_training,
    resolve_hints as resolve_hints,
    resolve_network as resolve_network,
    train_classifier as train_classifier,
)

def describe(name: str) -> str: ...
def get(name: str) -> type[ClassifierNetwork]: ...
def import_all() -> dict[str, type[ClassifierNetwork]]: ...
def names() -> list[str]: ...

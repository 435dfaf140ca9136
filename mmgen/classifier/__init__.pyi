from ._accuracy import Accuracy as Accuracy, confusion as confusion
from ._base import JudgeNetwork as JudgeNetwork
from ._classifier import Classifier as Classifier
from ._files import held_out_accuracy as held_out_accuracy, load_classifier as load_classifier
from ._find import best_judge as best_judge
from ._members import describe as describe, get as get, importable as importable, names as names
from ._training import (
    ClassifierSettings as ClassifierSettings,
    default_training as default_training,
    resolve_hints as resolve_hints,
    resolve_network as resolve_network,
    train_classifier as train_classifier,
)

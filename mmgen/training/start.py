"""Training that starts from another model's weights: the same networks, another objective or schedule.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5.2: a VAE
    continued as IWAE, and the other way round
"""

from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from torch import nn

import mmgen.objectives
from mmgen.artifacts import read_checkpoint, require_kind
from mmgen.core.errors import UsageError
from mmgen.models import DataSettings
from mmgen.settings.config import merge, validate

__all__ = ["initialisation_settings", "load_start_weights", "settings_from_start"]

_NOT_INHERITED = ("name", "samples", "kl_warmup_steps", "capacity_steps", "examples")
"""Settings of an objective about estimation and annealing, which a new run does not inherit."""
_INHERITED_BY_ALL = (
    "modalities", "given", "description", "graph",
    "image_weight", "attributes_weight", "text_weight",
)  # fmt: skip
"""Settings that mean the same in every objective, in contrast to beta, gamma and alpha."""
_TRAINING_SETTINGS = ("l2_attributes_decoder",)
"""Settings of a model about its training, which a new run does not inherit."""


def settings_from_start(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a run that starts from the model at ``path``: its networks, split and modalities, unless set.

    Another objective inherits only modalities and their weights, the same one all its weights. The number of draws of
    z, annealing and training settings are not inherited.

    Args:
        path: The model.
        values: Settings of the user, which take precedence.

    Raises:
        ArtifactError: ``path`` is no model.
    """
    model_settings = require_kind(path, "model").settings
    old_objective = model_settings.get("objective", {})
    new_objective = values.get("objective", {})
    name = new_objective.get("name", old_objective.get("name")) if isinstance(new_objective, Mapping) else None
    base: dict[str, Any] = {
        "model": {
            key: value for key, value in model_settings.get("model", {}).items() if key not in _TRAINING_SETTINGS
        },
        "data": {"split": model_settings.get("data", {}).get("split", "iid")},
    }
    if isinstance(name, str) and name in mmgen.objectives.names():
        inherited = {field.name for field in fields(mmgen.objectives.get(name))} - {*_NOT_INHERITED}  # type: ignore[arg-type]  # a dataclass
        inherited &= {*_INHERITED_BY_ALL} if name != old_objective.get("name") else inherited
        base["objective"] = {"name": name, **{key: value for key, value in old_objective.items() if key in inherited}}
    return merge(base, values)


def initialisation_settings(path: Path) -> dict[str, Any]:
    """Return the settings that initialised the weights of the model at ``path``; {} if not recorded."""
    model_settings = require_kind(path, "model").settings.get("model", {})
    return {key: model_settings[key] for key in ("initial_weights", "output_bias") if key in model_settings}


def load_start_weights(
    path: Path, model: nn.Module, data_settings: DataSettings, modalities: Collection[str], dataset_id: str
) -> str:
    """Copy the weights of the model at ``path`` into ``model``; return the content id of the file.

    Args:
        path: The model to start from.
        model: The model to be trained.
        data_settings: The data of the run.
        modalities: Modalities that its objective looks at.
        dataset_id: Content id of the dataset of the run.

    Raises:
        UsageError: Its networks, data or split differ from those of this run.
    """
    header, tensors = read_checkpoint(path, "model")
    model_data = validate(DataSettings, header.settings.get("data", {}))
    is_same_dataset = any(parent.content_id == dataset_id for parent in header.parents)
    if is_same_dataset and model_data.split != data_settings.split:
        raise UsageError(
            f"--from got {path}, which was trained on split '{model_data.split}' of this dataset, but this run is on "
            f"'{data_settings.split}', whose test part it may have seen; leave --split out"
        )
    indivisible = [name for name in modalities if not data_settings.modalities[name].has_rows]
    if indivisible and not is_same_dataset:
        raise UsageError(
            f"--from got {path}, expected a model of this very dataset, since another dataset may show training the "
            f"edges of {indivisible[0]} that this one holds back; give a model of this dataset"
        )
    for name in modalities:
        old, new = model_data.modalities.get(name), data_settings.modalities[name]
        if old is None or not old.is_compatible(new):
            fields = ["kind", *type(new).model_fields]
            different = next(key for key in fields if getattr(old, key, None) != getattr(new, key))
            raise UsageError(
                f"--from got {path}, which was trained with another {name} (its {different} differs); give a "
                "dataset of the same kind"
            )
    shapes = {name: list(tensor.shape) for name, tensor in model.state_dict().items()}
    shapes_in_file = {name: list(tensor.shape) for name, tensor in tensors.items()}
    for name in [*shapes, *shapes_in_file]:
        if shapes.get(name) != shapes_in_file.get(name):
            got = [str(sizes[name]) if name in sizes else "missing" for sizes in (shapes_in_file, shapes)]
            raise UsageError(
                f"--from got {path}, whose networks are not those of this run: {name} is {got[0]} in the file and "
                f"{got[1]} in this run; leave out settings of the model, or choose an objective that needs the same "
                "networks"
            )
    model.load_state_dict(tensors)
    return header.content_id

"""Weights with which a training begins, drawn or from another model, and their running averages."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import mmgen.objectives
from mmgen.artifacts import read_checkpoint, require_kind
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import GaussianHead
from mmgen.modalities.image import Image
from mmgen.models import DataSettings, Model, ModelSettings
from mmgen.settings.config import merge, validate
from mmgen.training.batches import DatasetRows

_LAYERS = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)


def set_first_weights(model: Model, settings: ModelSettings, rows: DatasetRows) -> None:
    """Initialise the weights of a model in place, as its settings say.

    Args:
        model: A new model; draws are from torch's global generator.
        settings: ``initial_weights`` and ``output_bias`` are read.
        rows: Training examples, from whose mean image output biases follow.

    Raises:
        SettingsError: A decoder has no bias for the mean image.
    """
    if settings.initial_weights == "glorot":
        _initialise_glorot(model)
    if settings.output_bias == "mean":
        for name, modality in model.modalities.items():
            if isinstance(modality, Image):
                mean = rows.mean_image(name).float()
                _set_output_bias(name, model.output_bias(name), modality.likelihood.parameters_of_mean(mean))


@torch.no_grad()
def _initialise_glorot(model: nn.Module) -> None:
    """Draw weights of linear layers and convolutions uniformly within sqrt(6 / (inputs + outputs)); set biases to 0."""
    # The last layer of a Gaussian is two matrices side by side, mean and log sd.
    heads = {id(_weight_layers(head)[-1]) for head in model.modules() if isinstance(head, GaussianHead)}
    for layer in _weight_layers(model):
        for weight in layer.weight.chunk(2) if id(layer) in heads else [layer.weight]:
            nn.init.xavier_uniform_(weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def _weight_layers(module: nn.Module) -> list[nn.Linear | nn.Conv2d | nn.ConvTranspose2d]:
    """Return the linear layers and convolutions of a module."""
    return [part for part in module.modules() if isinstance(part, _LAYERS)]


@torch.no_grad()
def _set_output_bias(name: str, bias: Tensor | None, output: Tensor) -> None:
    """Set the bias of a decoder's output to the image ``output`` [C, H, W], or to its mean by channel."""
    if bias is None or bias.numel() not in (output.numel(), len(output)):
        raise SettingsError(
            f"model.output_bias got 'mean', but the decoder of {name} ends in no layer with a bias for "
            "each pixel or channel; leave it out"
        )
    bias.copy_((output if bias.numel() == output.numel() else output.mean((1, 2))).reshape(bias.shape))


_NOT_INHERITED = ("name", "samples", "kl_warmup_steps", "capacity_steps", "examples")
"""Settings of an objective about estimation and annealing, which a new run does not inherit."""
_INHERITED_BY_ALL = (
    "modalities", "given", "description", "graph",
    "image_weight", "attributes_weight", "text_weight", "weights",
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


class AveragedWeights:
    """Exponential moving average of the trainable parameters of a task.

    After step t the mean moves towards the weights by 1 - min(decay, (1 + t) / (10 + t)): early steps, which are far
    from the end, are forgotten fast. Buffers, such as the statistics of batch norm, are not averaged.

    Args:
        task: The task; the mean starts at its weights.
        decay: Share of the mean that a step keeps, below 1.
    """

    def __init__(self, task: nn.Module, decay: float) -> None:
        self.decay = decay
        self._parameters = {name: p for name, p in task.named_parameters() if p.requires_grad}
        self.means = {name: p.detach().clone() for name, p in self._parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Move the averages towards the weights after training step ``step``, counted from 1."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.means.values()), list(self._parameters.values()), 1 - decay)

    @contextmanager
    def apply(self) -> Iterator[None]:
        """Replace the task's weights by their averages within a block, and restore them afterwards."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def load(self, means: Mapping[str, Tensor]) -> None:
        """Restore the averages of a saved run.

        Raises:
            ValueError: A tensor is missing, has another shape or is not finite.
        """
        for name, mean in self.means.items():
            saved = means.get(name)
            if saved is None or saved.shape != mean.shape or not saved.isfinite().all():
                raise ValueError(f"the state lacks a finite average of the weights '{name}'")
            mean.copy_(saved)

    @torch.no_grad()
    def _swap(self) -> None:
        """Exchange weights and averages."""
        for name, parameter in self._parameters.items():
            own = parameter.detach().clone()
            parameter.copy_(self.means[name])
            self.means[name].copy_(own)

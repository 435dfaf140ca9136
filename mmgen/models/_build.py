"""From settings to a model; the same settings give the same structure, which is how checkpoints are loaded."""

import torch

import mmgen.models
from mmgen.models._base import Demands, Model
from mmgen.models._settings import DataSettings, ModelSettings

__all__ = ["build_model"]


def build_model(settings: ModelSettings, demands: Demands, data: DataSettings) -> Model:
    """A freshly initialised model (from torch's global generator: seed it first).

    Args:
        settings: Of the kind of model that their name says.
        demands: What the objective needs of it.
        data: The modalities that there are.

    Raises:
        SettingsError: The settings do not fit each other, the demands or the data.
        UsageError: There is no such kind of model.
    """
    model: Model = mmgen.models.get(settings.name).build(settings, demands, data)
    # Convolutions are 0 to 10 % faster with channels last, on CPUs and GPUs, and never slower.
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch stub lacks it

"""Initialisation of weights as in published papers, where it differs from torch's.

References:
    Understanding the difficulty of training deep feedforward neural networks (Glorot, Bengio, 2010)
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5, and the authors'
    published code
"""

import torch
from torch import Tensor, nn

from mmgen.core.errors import SettingsError
from mmgen.inference import GaussianHead
from mmgen.modalities.image import Image
from mmgen.models import Model, ModelSettings
from mmgen.training.batches import DatasetRows

__all__ = ["set_first_weights"]

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

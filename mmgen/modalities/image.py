"""Image: a picture [C, H, W] under a likelihood of dense data."""

import torch
from torch import Tensor

from mmgen.likelihoods._base import Likelihood
from mmgen.modalities._base import Modality

__all__ = ["Image"]


class Image(Modality):
    """Args:
    name: Name in the dataset file.
    shape: (C, H, W).
    likelihood: p(pixels | decoder output).
    """

    def __init__(self, name: str, shape: tuple[int, int, int], likelihood: Likelihood) -> None:
        self.name = name
        self.shape = shape
        self.likelihood = likelihood

    @property
    def decoder_channels(self) -> int:
        """Channels that an image decoder must output."""
        return self.shape[0] * self.likelihood.parameters_per_value

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        return self.likelihood.log_prob(parameters, value, event_dims=3).masked_fill(~present, 0.0)

    def mean(self, parameters: Tensor) -> Tensor:
        return self.likelihood.mean(parameters)

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self.likelihood.sample(parameters, generator)

"""The base of networks of attribute classifiers: data and hints in, logits of every predicted attribute out."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from mmgen.core.errors import UsageError

if TYPE_CHECKING:
    from mmgen.modalities import Description

__all__ = ["ClassifierNetwork", "append_planes"]


class ClassifierNetwork(nn.Module, ABC):
    """Base of networks that predict attributes of an example, with one output layer (head) for each attribute.

    Args:
        event_shape: Shape of every value; (C, H, W) of an image.
        sizes: Number of values V of every predicted attribute, in order.
        hint_size: Width of the one-hot attributes that are inputs besides the image; 0 for none.
    """

    def __init__(self, event_shape: tuple[int, ...], sizes: tuple[int, ...], hint_size: int = 0) -> None:
        super().__init__()
        self.event_shape = event_shape
        self.sizes = sizes
        self.hint_size = hint_size

    @classmethod
    def for_description(
        cls, described: "Description", sizes: tuple[int, ...], hint_size: int = 0
    ) -> "ClassifierNetwork":
        """Build the network for a modality with the specification ``described``; by default only for images.

        Raises:
            UsageError: The network does not read such data.
        """
        if described.picture_shape != described.event_shape:
            raise UsageError(
                f"--network got a network for images, but {described.name} is a {described.kind}; use --network encoder"
            )
        return cls(described.event_shape, sizes, hint_size)

    @abstractmethod
    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        """Return the last hidden layer [B, F], the input of the heads, after its non-linearity and before dropout.

        Args:
            images: Values [B, *event_shape], such as images [B, C, H, W] in [0, 1].
            hints: Attributes that are inputs, one-hot [B, hint_size], zeros where unknown; None without such inputs.
        """

    @abstractmethod
    def logits(self, features: Tensor) -> list[Tensor]:
        """Compute logits [B, V] of every predicted attribute from features [B, F]; affine apart from dropout."""

    def forward(self, images: Tensor, hints: Tensor | None = None) -> list[Tensor]:
        """Compute logits [B, V] of every predicted attribute; arguments are as in :meth:`features`."""
        return self.logits(self.features(images, hints))


def append_planes(images: Tensor, hints: Tensor | None) -> Tensor:
    """Append each number of ``hints`` [B, X] to images [B, C, H, W] as a constant channel: [B, C + X, H, W]."""
    if hints is None or not hints.shape[1]:
        return images
    planes = hints.to(images.dtype)[:, :, None, None].expand(-1, -1, *images.shape[2:])
    return torch.cat([images, planes], 1)

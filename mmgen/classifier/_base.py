"""What a classifier network is: images in, one vector of logits per attribute out."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

__all__ = ["JudgeNetwork"]


class JudgeNetwork(nn.Module, ABC):
    """A network over images of one shape, with one head per attribute.

    Args:
        image_shape: (C, H, W) of every image.
        sizes: Number of values V of every attribute, in order.
    """

    def __init__(self, image_shape: tuple[int, int, int], sizes: tuple[int, ...]) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.sizes = sizes

    @abstractmethod
    def forward(self, images: Tensor) -> list[Tensor]:
        """Logits [B, V] of every attribute, for ``images`` [B, C, H, W] in [0, 1]."""

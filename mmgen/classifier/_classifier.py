"""A classifier network together with what its answers mean."""

import torch
from torch import Tensor, nn

from mmgen.classifier._base import JudgeNetwork
from mmgen.errors import UsageError
from mmgen.training.precision import autocast

__all__ = ["Classifier"]

_CHUNK = 512
"""Images per pass of :meth:`Classifier.predict`: activations of 64x64 images stay within the caches."""


class Classifier(nn.Module):
    """Says for every attribute which value a picture shows.

    Args:
        network: From this room.
        names: Attribute names, in the order of the network's heads.
        values: The words of every attribute.
        network_name: Name of the network in this room ("vedantam").
    """

    def __init__(
        self,
        network: JudgeNetwork,
        names: tuple[str, ...],
        values: tuple[tuple[str, ...], ...],
        network_name: str = "",
    ) -> None:
        super().__init__()
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # not in its stubs
        self.names = names
        self.values = values
        self.network_name = network_name
        self.accuracy: dict[str, float] = {}
        """Held-out accuracy in percent by attribute, and their "mean"; empty while it has not been measured."""
        self.content_id = ""
        """Content id of the file that it was loaded from."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(C, H, W) of the images that it judges."""
        return self.network.image_shape

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values V of every attribute."""
        return tuple(len(words) for words in self.values)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, images: Tensor) -> list[Tensor]:
        """Logits [B, V] of every attribute, fp32, for ``images`` [B, C, H, W] in [0, 1]."""
        return [logits.float() for logits in self.network(images.contiguous(memory_format=torch.channels_last))]

    @torch.inference_mode()
    def predict(self, images: Tensor) -> Tensor:
        """The most probable value of every attribute.

        Args:
            images: [B, C, H, W] in [0, 1], any float type; sampled pixels where the dataset's are binary.

        Returns:
            Codes uint8 [B, A] on the classifier's device.

        Raises:
            UsageError: The images have another shape than those that the classifier was trained on.
        """
        if tuple(images.shape[1:]) != self.image_shape:
            got, expected = ("x".join(map(str, shape)) for shape in (images.shape[1:], self.image_shape))
            raise UsageError(
                f"the judge got images of {got}, expected {expected} (channels x height x width): "
                "train a judge on the dataset of these images"
            )
        if not len(images):  # not every layer takes an empty batch
            return torch.zeros(0, len(self.names), dtype=torch.uint8, device=self.device)
        was_training = self.training
        self.eval()
        try:
            with autocast(self.device):
                codes = [
                    torch.stack([logits.argmax(1) for logits in self(chunk.to(self.device))], 1)
                    for chunk in images.split(_CHUNK)
                ]
        finally:
            self.train(was_training)
        return torch.cat(codes).to(torch.uint8)

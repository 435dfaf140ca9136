"""A classifier for data that are no images: the encoder of their kind, and a head per attribute."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmgen.classifier._classifier import ClassifierNetwork
from mmgen.core.errors import UsageError
from mmgen.modalities import Description, all_present

__all__ = ["Encoder"]

_UNITS = 128


class Encoder(ClassifierNetwork):
    """Classifier network for any kind of data: the kind's default encoder, a shared layer, and a head per attribute.

    Args:
        described: The data.
        sizes: Number of values V of every predicted attribute, in order.
        hint_size: Width of the one-hot attributes that are inputs besides the data; 0 for none.
    """

    def __init__(self, described: Description, sizes: tuple[int, ...], hint_size: int = 0) -> None:
        super().__init__(described.event_shape, sizes, hint_size)
        networks = described.read_network_settings({}, "network")
        if networks is None:
            raise UsageError(
                f"{described.name} is a {described.kind}, which has no encoder; use a classifier network for images, "
                "or data of a kind with an encoder"
            )
        self.modality = described.modality()
        self.encoder, width = self.modality.encoder(networks)
        self.hidden = nn.Linear(width + hint_size, _UNITS)
        self.dropout = nn.Dropout(0.1)
        self.head = nn.Linear(_UNITS, sum(sizes))
        with torch.no_grad():  # layers that learn their input size from data get their weights
            blank, _ = described.values_and_presence(torch.zeros(2, *described.event_shape))
            self.eval().features(blank, torch.zeros(2, hint_size))
        self.train()

    @classmethod
    def for_description(cls, described: Description, sizes: tuple[int, ...], hint_size: int = 0) -> "Encoder":
        return cls(described, sizes, hint_size)

    def features(self, images: Tensor, hints: Tensor | None = None) -> Tensor:
        hidden = self.modality.features(self.encoder, images, all_present(images))
        known = hidden if hints is None else torch.cat([hidden, hints.to(hidden.dtype)], -1)
        return F.relu(self.hidden(known))

    def logits(self, features: Tensor) -> list[Tensor]:
        return list(self.head(self.dropout(features)).split(self.sizes, dim=1))

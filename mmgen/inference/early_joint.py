"""Joint inference whose labels join the picture's network early, as Wu and Goodman's conditional VAE has it."""

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.inference._base import InferenceParts
from mmgen.inference.joint import Joint
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.networks import attribute_columns, attribute_widths

__all__ = ["EarlyJoint"]


class _LabelsBesideInputs(nn.Module):
    """Encoder q(z | x, y): labels are further inputs of the picture network's first fully connected layer."""

    def __init__(self, parts: InferenceParts, image: Image, attributes: Attributes) -> None:
        super().__init__()
        self.image_name, self.attributes_name, self.sizes = image.name, attributes.name, attributes.sizes
        family = parts.joint_image_network or parts.image_network
        encoder, features = family.encoder(image.shape)
        layers = [each for each in encoder.modules() if not isinstance(each, nn.Sequential)]
        found = next(((place, each) for place, each in enumerate(layers) if isinstance(each, nn.Linear)), None)
        if found is None:
            raise SettingsError(
                "model.inference=early-joint puts labels into the picture network's first fully connected layer, but "
                f"{type(family).__name__} has none; choose an image network with one, or the inference joint"
            )
        place, first = found
        wider = nn.Linear(first.in_features + sum(attribute_widths(self.sizes)), first.out_features)
        self.below, self.above = nn.Sequential(*layers[:place]), nn.Sequential(wider, *layers[place + 1 :])
        self.head = parts.modality_head(image, features)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        labels = attribute_columns(batch.values[self.attributes_name], batch.present[self.attributes_name], self.sizes)
        pixels: Tensor = self.below(batch.values[self.image_name])
        posterior: DiagonalGaussian = self.head(self.above(torch.cat([pixels, labels.to(pixels.dtype)], -1)))
        return posterior


class EarlyJoint(Joint):
    """Joint inference in which q(z | x, y) of a picture and attributes has labels beside the inputs of the picture
    network's first fully connected layer, one number a value (WG Table 1: the VAE's parameters and 512 a label).
    """

    @staticmethod
    def build_both(parts: InferenceParts, image: Image, attributes: Attributes) -> nn.Module:
        return _LabelsBesideInputs(parts, image, attributes)

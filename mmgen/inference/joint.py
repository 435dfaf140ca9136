"""Joint inference: one network each for q(z|x,y), q(z|x) and q(z|y), as in VE's JVAE, or for any modalities."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.inference._base import (
    AttributeExperts,
    Inference,
    InferenceParts,
    Inputs,
    ModalityPosterior,
    product_of_gaussians,
    universal_expert,
)
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.networks import AttributeTables, AttributeVectorEncoder, dense_layers, text_encoder

__all__ = ["Joint"]


class Joint(Inference):
    """Inference with one network for each set of modalities that the objective needs (VE Appendix A.4).

    q(z | y) is a product of one expert per attribute and the universal expert p(z), so that attributes may be unknown.
    In q(z | x, y) an unknown attribute has its own embedding. If y is a sentence, a recurrent encoder reads it (CK
    Section 6). For any other set of modalities the features of all are concatenated.
    """

    def __init__(self, parts: InferenceParts, queries: frozenset[Inputs]) -> None:
        super().__init__()
        networks: dict[frozenset[str], tuple[str, Callable[[], nn.Module]]] = {}
        image, attributes, text = parts.first_of_kind(Image), parts.first_of_kind(Attributes), parts.first_of_kind(Text)
        if image and attributes:
            both = partial(self.build_both, parts, image, attributes)
            networks[frozenset([image.name, attributes.name])] = ("both", both)
        if image and text:
            networks[frozenset([image.name, text.name])] = (
                "image_and_text",
                partial(_ImageAndText, parts, image, text),
            )
        for name, modality in parts.modalities.items():
            key = modality.kind if parts.first_of_kind(type(modality)) is modality else name
            network: Callable[[], nn.Module] = partial(ModalityPosterior, parts, modality)
            if isinstance(modality, Attributes) and parts.attribute_network.experts == "each":
                network = partial(_AttributesOnly, parts, modality)
            networks[frozenset([name])] = (key, network)
        required = {frozenset(inputs) for inputs in queries}
        for inputs in sorted(required - networks.keys(), key=sorted):
            several = [modality for name, modality in parts.modalities.items() if name in inputs]
            if len(several) != len(inputs) or not several:
                raise SettingsError(
                    f"the objective needs a posterior q(z | ...) of {', '.join(sorted(inputs)) or 'nothing'}, expected "
                    f"modalities among {', '.join(parts.modalities)}; choose another objective or dataset"
                )
            key = " and ".join(modality.name for modality in several)
            networks[inputs] = (key, partial(_JoinedModalities, parts, several))
        self.networks = nn.ModuleDict()
        self._keys: dict[frozenset[str], str] = {}
        for inputs, (key, network) in networks.items():
            if inputs in required:
                self._keys[inputs] = key
                self.networks[key] = network()

    @staticmethod
    def build_both(parts: InferenceParts, image: Image, attributes: Attributes) -> nn.Module:
        """Build the network of q(z | x, y) of a picture and attributes, from a batch to a Gaussian."""
        return _ImageAndAttributes(parts, image, attributes)

    def has_posterior(self, inputs: Inputs) -> bool:
        return frozenset(inputs) in self._keys

    def infer(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        posterior: DiagonalGaussian = self.networks[self._keys[frozenset(inputs)]](batch)
        return posterior


class _AttributesOnly(nn.Module):
    """Encoder q(z | y_O) of observed attributes, proportional to p(z) prod_{k in O} q(z | y_k)."""

    def __init__(self, parts: InferenceParts, attributes: Attributes) -> None:
        super().__init__()
        self.experts = AttributeExperts(parts, attributes)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        present = batch.present[self.experts.name]
        every: DiagonalGaussian = self.experts(batch)
        mean, log_sd = every.mean.unbind(1), every.log_sd.unbind(1)
        votes = [(DiagonalGaussian(*one), there) for *one, there in zip(mean, log_sd, present.unbind(1), strict=True)]
        return product_of_gaussians(votes, universal_expert(mean[0]))


class _JoinedModalities(nn.Module):
    """Encoder q(z | several modalities): concatenated features, then a Gaussian."""

    def __init__(self, parts: InferenceParts, modalities: Sequence[Modality]) -> None:
        super().__init__()
        images = [modality for modality in modalities if isinstance(modality, Image)]
        self.modalities = (*images, *(modality for modality in modalities if modality not in images))
        made = [modality.encoder(parts.networks.get(modality.kind)) for modality in self.modalities]
        self.encoders = nn.ModuleList(encoder for encoder, _ in made)
        sizes = [features for _, features in made]
        self.head = parts.gaussian_head(sum(sizes), layers=1, maps=sum(sizes[: len(images)]))

    def forward(self, batch: Batch) -> DiagonalGaussian:
        features = [
            modality.features(encoder, batch.values[modality.name], batch.present[modality.name])
            for modality, encoder in zip(self.modalities, self.encoders, strict=True)
        ]
        posterior: DiagonalGaussian = self.head(torch.cat([one.to(features[0].dtype) for one in features], -1))
        return posterior


class _ImageAndAttributes(nn.Module):
    """Encoder q(z | x, y): image and label features, concatenated, then a Gaussian (VE Figure 8)."""

    def __init__(self, parts: InferenceParts, image: Image, attributes: Attributes) -> None:
        super().__init__()
        self.image_name, self.attributes_name = image.name, attributes.name
        self.encoder, features = (parts.joint_image_network or parts.image_network).encoder(image.shape)
        width = parts.attribute_network.hidden
        self.tables: nn.Module
        self.labels: nn.Module
        if parts.attribute_network.experts == "each":
            self.tables = AttributeTables(attributes.sizes, width, parts.attribute_network)
            self.labels = dense_layers([width * len(attributes.sizes), width, width], activate_last=True)
        else:
            plain = replace(parts.attribute_network, batch_norm=False)  # as the counts in WG Table 1 imply
            self.tables = AttributeVectorEncoder(attributes.sizes, plain, layers=1)
            self.labels = nn.Identity()
        self.head = parts.gaussian_head(features + width, layers=1, maps=features)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        present = batch.present[self.attributes_name]
        labels: Tensor = self.labels(self.tables(batch.values[self.attributes_name], present).flatten(1))
        pixels: Tensor = self.encoder(batch.values[self.image_name])
        posterior: DiagonalGaussian = self.head(torch.cat([pixels, labels.to(pixels.dtype)], -1))
        return posterior


class _ImageAndText(nn.Module):
    """Encoder q(z | x, y): image and sentence features, concatenated, then a Gaussian (CK Section 5.1)."""

    def __init__(self, parts: InferenceParts, image: Image, text: Text) -> None:
        super().__init__()
        self.image_name, self.text_name = image.name, text.name
        self.encoder, features = (parts.joint_image_network or parts.image_network).encoder(image.shape)
        self.sentences = text_encoder(len(text.vocabulary), parts.text_network)
        self.head = parts.gaussian_head(features + self.sentences.features, layers=1, maps=features)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        pixels: Tensor = self.encoder(batch.values[self.image_name])
        sentence: Tensor = self.sentences(batch.values[self.text_name])
        posterior: DiagonalGaussian = self.head(torch.cat([pixels, sentence.to(pixels.dtype)], -1))
        return posterior

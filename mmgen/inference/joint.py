"""Joint: a network of its own for each of q(z|x,y), q(z|x) and q(z|y), as in VE's JVAE; y is attributes or text."""

import torch
from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.errors import SettingsError
from mmgen.gaussian import DiagonalGaussian
from mmgen.inference._base import (
    AttributeExperts,
    Given,
    ImagePosterior,
    Inference,
    Parts,
    TextPosterior,
    product,
    universal_expert,
)
from mmgen.networks._attributes import AttributeTables
from mmgen.networks._base import mlp
from mmgen.networks._text import TextEncoder

__all__ = ["Joint"]


class Joint(Inference):
    """The three networks of VE Appendix A.4; only those are built that the objective asks for.

    q(z | y) is a product of one expert per attribute and the universal expert p(z), so that any part of a description
    may be unknown. In q(z | x, y) an unknown attribute has an embedding of its own. Where y is a sentence, a recurrent
    encoder reads it (CK Section 6).
    """

    def __init__(self, parts: Parts, queries: frozenset[Given]) -> None:
        super().__init__()
        networks: dict[frozenset[str], tuple[str, type[nn.Module]]] = {}
        image, attributes, text = (m.name if m else None for m in (parts.image, parts.attributes, parts.text))
        if image and attributes:
            networks[frozenset([image, attributes])] = ("both", _ImageAndAttributes)
        if image and text:
            networks[frozenset([image, text])] = ("image_and_text", _ImageAndText)
        if image:
            networks[frozenset([image])] = ("image", ImagePosterior)
        if attributes:
            networks[frozenset([attributes])] = ("attributes", _AttributesOnly)
        if text:
            networks[frozenset([text])] = ("text", TextPosterior)
        wanted = {frozenset(given) for given in queries}
        for given in wanted - networks.keys():
            raise SettingsError(
                f"the objective asks for the posterior given {', '.join(sorted(given))}, expected one of "
                f"{'; '.join(', '.join(sorted(known)) for known in networks)}"
            )
        self.networks = nn.ModuleDict()
        self._keys: dict[frozenset[str], str] = {}
        for given, (key, network) in networks.items():
            if given in wanted:
                self._keys[given] = key
                self.networks[key] = network(parts)

    def answers(self, given: Given) -> bool:
        return frozenset(given) in self._keys

    def infer(self, batch: Batch, given: Given) -> DiagonalGaussian:
        posterior: DiagonalGaussian = self.networks[self._keys[frozenset(given)]](batch)
        return posterior


class _AttributesOnly(nn.Module):
    """q(z | y_O), proportional to p(z) prod_{k in O} q(z | y_k)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self.experts = AttributeExperts(parts)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        experts = self.experts(batch)
        return product(experts, universal_expert(experts[0][0].mean))


class _ImageAndAttributes(nn.Module):
    """q(z | x, y): image features and label features, concatenated (VE Figure 8)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        assert parts.image is not None and parts.attributes is not None
        self.image_name, self.attributes_name = parts.image.name, parts.attributes.name
        self.encoder, features = parts.image_network.encoder(parts.image.shape)
        width = parts.attribute_network.hidden
        self.tables = AttributeTables(parts.attributes.sizes, width, parts.attribute_network)
        self.labels = mlp([width * len(parts.attributes.sizes), width, width], last=True)
        self.head = parts.head(features + width, layers=1)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        present = batch.present[self.attributes_name]
        labels: Tensor = self.labels(self.tables(batch.values[self.attributes_name], present).flatten(1))
        pixels: Tensor = self.encoder(batch.values[self.image_name])
        posterior: DiagonalGaussian = self.head(torch.cat([pixels, labels.to(pixels.dtype)], -1))
        return posterior


class _ImageAndText(nn.Module):
    """q(z | x, y): features of the image and of the sentence, concatenated (CK Section 5.1)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        assert parts.image is not None and parts.text is not None
        self.image_name, self.text_name = parts.image.name, parts.text.name
        self.encoder, features = parts.image_network.encoder(parts.image.shape)
        self.sentences = TextEncoder(len(parts.text.vocabulary), parts.text_network)
        self.head = parts.head(features + self.sentences.features, layers=1)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        pixels: Tensor = self.encoder(batch.values[self.image_name])
        sentence: Tensor = self.sentences(batch.values[self.text_name])
        posterior: DiagonalGaussian = self.head(torch.cat([pixels, sentence.to(pixels.dtype)], -1))
        return posterior

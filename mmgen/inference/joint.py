"""Joint: a network of its own for each of q(z|x,y), q(z|x) and q(z|y), as in VE's JVAE."""

import torch
from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.errors import SettingsError
from mmgen.gaussian import DiagonalGaussian
from mmgen.inference._base import (
    AttributeExperts,
    GaussianHead,
    Given,
    ImagePosterior,
    Inference,
    Parts,
    product,
    universal_expert,
)
from mmgen.networks._attributes import AttributeTables
from mmgen.networks._base import mlp

__all__ = ["Joint"]


class Joint(Inference):
    """The three networks of VE Appendix A.4; only those are built that the objective asks for.

    q(z | y) is a product of one expert per attribute and the universal expert p(z), so that any part of a description
    may be unknown. In q(z | x, y) an unknown attribute has an embedding of its own.
    """

    def __init__(self, parts: Parts, queries: frozenset[Given]) -> None:
        super().__init__()
        wanted = {frozenset(given) for given in queries}
        image = parts.image.name if parts.image else None
        attributes = parts.attributes.name if parts.attributes else None
        both = frozenset(name for name in (image, attributes) if name)
        unknown = [given for given in wanted if not given <= both]
        if unknown:
            raise SettingsError(
                f"the objective asks for the posterior given {', '.join(sorted(unknown[0]))}, "
                f"expected some of {', '.join(sorted(both))}"
            )
        self.networks = nn.ModuleDict()
        self._keys: dict[frozenset[str], str] = {}
        if image and attributes and both in wanted:
            self._add(both, "both", _ImageAndAttributes(parts))
        if image and frozenset([image]) in wanted:
            self._add(frozenset([image]), "image", ImagePosterior(parts))
        if attributes and frozenset([attributes]) in wanted:
            self._add(frozenset([attributes]), "attributes", _AttributesOnly(parts))

    def _add(self, given: frozenset[str], key: str, network: nn.Module) -> None:
        self._keys[given] = key
        self.networks[key] = network

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
        self.head = GaussianHead(features + width, (parts.hidden,), parts.latent_size)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        present = batch.present[self.attributes_name]
        labels: Tensor = self.labels(self.tables(batch.values[self.attributes_name], present).flatten(1))
        pixels: Tensor = self.encoder(batch.values[self.image_name])
        posterior: DiagonalGaussian = self.head(torch.cat([pixels, labels.to(pixels.dtype)], -1))
        return posterior

"""What every way of composing posteriors offers, and the experts that they are composed from."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.gaussian import DiagonalGaussian
from mmgen.likelihoods._base import full_precision
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.networks._attributes import AttributeNetwork, AttributeTables
from mmgen.networks._base import ImageNetwork, mlp
from mmgen.networks._shared import SharedEncoder, SharedNetwork
from mmgen.networks._text import TextEncoder, TextNetwork

__all__ = [
    "AttributeExperts",
    "GaussianHead",
    "ImagePosterior",
    "Inference",
    "Parts",
    "TextPosterior",
    "as_gaussian",
    "product",
]

Given = tuple[str, ...]


class Parts:
    """What an inference may build its networks from.

    Args:
        latent_size: D.
        image: The image modality, where the model has one.
        attributes: The attribute modality, where the model has one.
        image_network: Family of image networks.
        attribute_network: Widths of the networks over attributes.
        hidden: Width of the fully connected layers that join features.
        text: The text modality, where the model has one.
        text_network: Widths of the networks over sentences.
        shared: The network from features to every Gaussian; None for plain layers of width ``hidden``.
    """

    def __init__(
        self,
        latent_size: int,
        image: Image | None,
        attributes: Attributes | None,
        image_network: ImageNetwork,
        attribute_network: AttributeNetwork,
        hidden: int,
        text: Text | None = None,
        text_network: TextNetwork | None = None,
        shared: SharedNetwork | None = None,
    ) -> None:
        self.latent_size = latent_size
        self.image = image
        self.attributes = attributes
        self.image_network = image_network
        self.attribute_network = attribute_network
        self.hidden = hidden
        self.text = text
        self.text_network = text_network or TextNetwork()
        self.shared = shared

    @property
    def names(self) -> Given:
        """Names of the modalities that there are."""
        return tuple(m.name for m in (self.image, self.attributes, self.text) if m is not None)

    def head(self, features: int, layers: int) -> nn.Module:
        """A network from features [B, F] to a Gaussian [B, D], with ``layers`` hidden layers where none is shared."""
        shared = SharedEncoder(features, 2 * self.latent_size, self.shared) if self.shared else None
        return GaussianHead(features, (self.hidden,) * layers, self.latent_size, shared)


class Inference(nn.Module, ABC):
    """q(z | the given modalities)."""

    @abstractmethod
    def answers(self, given: Given) -> bool:
        """Whether there is a posterior given exactly these modalities (in any order)."""

    @abstractmethod
    def infer(self, batch: Batch, given: Given) -> DiagonalGaussian:
        """q(z | given) [B, D]; only for what it answers."""

    def infer_all(self, batch: Batch, queries: Sequence[Given]) -> list[DiagonalGaussian]:
        """q(z | given) [B, D] for several sets of modalities; members that share networks run each of them once."""
        return [self.infer(batch, given) for given in queries]

    def posterior(self, batch: Batch, given: Given) -> DiagonalGaussian:
        """q(z | given) [B, D].

        Raises:
            UsageError: The model has no such inference network, or the batch lacks a modality.
        """
        return self.posteriors(batch, [given])[0]

    def posteriors(self, batch: Batch, queries: Sequence[Given]) -> list[DiagonalGaussian]:
        """q(z | given) [B, D] for each of several sets of modalities.

        Raises:
            UsageError: The model has no such inference network, or the batch lacks a modality.
        """
        for given in queries:
            missing = [name for name in given if name not in batch.values]
            if missing:
                raise UsageError(
                    f"the posterior given {' and '.join(given)} needs {missing[0]}, which the batch does not hold"
                )
            if not self.answers(given):
                raise UsageError(
                    f"this model has no inference network for q(z | {', '.join(given)}); "
                    "fit one afterwards with mmgen fit-aggregate, or train with an objective that learns it"
                )
        return self.infer_all(batch, queries)


def as_gaussian(raw: Tensor) -> DiagonalGaussian:
    """Network output [..., 2 D] -> Gaussian; log sd is kept in [-7, 4], far outside what a trained model uses."""
    mean, log_sd = full_precision(raw).chunk(2, -1)
    return DiagonalGaussian(mean, log_sd.clamp(-7.0, 4.0))


def product(experts: Iterable[tuple[DiagonalGaussian, Tensor]], prior: DiagonalGaussian) -> DiagonalGaussian:
    r"""Product of Gaussian experts and the universal expert p(z).

    .. math:: C^{-1} = C_0^{-1} + \sum_k C_k^{-1}, \quad \mu = C \sum_k C_k^{-1} \mu_k \qquad \text{(VE Section 2)}

    Args:
        experts: Pairs of a Gaussian [..., D] and its presence [...] (an absent expert votes for nothing).
        prior: p(z), so that the product is well-conditioned whatever is missing.
    """
    precision = prior.precision
    weighted = prior.precision * prior.mean
    for expert, present in experts:
        vote = expert.precision * present.unsqueeze(-1).to(precision.dtype)
        precision = precision + vote
        weighted = weighted + vote * expert.mean
    return DiagonalGaussian(weighted / precision, -0.5 * precision.log())


class GaussianHead(nn.Module):
    """Fully connected layers, or those given, from features [B, F] to a Gaussian [B, D]."""

    def __init__(
        self, features: int, hidden: tuple[int, ...], latent_size: int, layers: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.layers = layers or mlp([features, *hidden, 2 * latent_size])

    def forward(self, features: Tensor) -> DiagonalGaussian:
        return as_gaussian(self.layers(features))


class ImagePosterior(nn.Module):
    """q(z | x): convolutional features, then a 3-layer network (VE A.4)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        assert parts.image is not None
        self.name = parts.image.name
        self.encoder, features = parts.image_network.encoder(parts.image.shape)
        self.head = parts.head(features, layers=2)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        posterior: DiagonalGaussian = self.head(self.encoder(batch.values[self.name]))
        return posterior


class TextPosterior(nn.Module):
    """q(z | sentence): the last state of a recurrent encoder, then fully connected layers."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        assert parts.text is not None
        self.name = parts.text.name
        self.encoder = TextEncoder(len(parts.text.vocabulary), parts.text_network)
        self.head = parts.head(self.encoder.features, layers=1)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        posterior: DiagonalGaussian = self.head(self.encoder(batch.values[self.name]))
        return posterior


class AttributeExperts(nn.Module):
    """One Gaussian expert q(z | y_k) per attribute (VE Section 2)."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        assert parts.attributes is not None
        self.name = parts.attributes.name
        self.tables = AttributeTables(parts.attributes.sizes, 2 * parts.latent_size, parts.attribute_network)

    def forward(self, batch: Batch) -> list[tuple[DiagonalGaussian, Tensor]]:
        present = batch.present[self.name]
        experts = as_gaussian(self.tables(batch.values[self.name], present))
        return [
            (DiagonalGaussian(experts.mean[:, a], experts.log_sd[:, a]), present[:, a]) for a in range(present.shape[1])
        ]


def universal_expert(like: Tensor) -> DiagonalGaussian:
    """p(z) = N(0, I) in the shape, dtype and device of ``like`` [..., D]."""
    zeros = torch.zeros_like(like)
    return DiagonalGaussian(zeros, zeros)

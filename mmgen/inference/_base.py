"""The base of inferences q(z | modalities), and experts that they combine.

In a product an expert adds to the natural parameters: to the precision, and to the precision times mean. So all
posteriors are masked sums over experts, and each network runs once.
"""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.likelihoods import full_precision
from mmgen.modalities import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.networks import (
    ACTIVATIONS,
    AttributeNetwork,
    AttributeTables,
    GridHead,
    ImageNetwork,
    SharedEncoder,
    SharedNetwork,
    TextNetwork,
    dense_layers,
)

Inputs = tuple[str, ...]

Unit = tuple[str, int | None]
"""An element of a subset of inputs: a whole modality (name, None), or one attribute (name, position)."""

M = TypeVar("M", bound=Modality)


@dataclass(frozen=True)
class InferenceParts:
    """Arguments from which an inference builds its networks: size of z, modalities, and settings of networks.

    Attributes:
        latent: Space of z.
        modalities: Possible inputs of posteriors, by name.
        networks: Settings of the networks over modalities, by kind of modality.
        hidden: Width of the fully connected layers that join features.
        activation: Non-linearity between those layers.
        head_layers: Hidden layers from the features of one modality to its Gaussian; None for the default of its kind.
        joint_image_network: Family of image networks in posteriors of an image and other modalities.
        shared: Settings of one network from features to all Gaussians; None for separate layers of width ``hidden``.
    """

    latent: LatentSpace
    modalities: dict[str, Modality]
    networks: Mapping[str, Any]
    hidden: int
    activation: str = "elu"
    head_layers: int | None = None
    joint_image_network: ImageNetwork | None = None
    shared: SharedNetwork | None = None

    @property
    def image_network(self) -> ImageNetwork:
        """Settings of the networks that read images."""
        family: ImageNetwork = self.networks["image"]
        return family

    @property
    def attribute_network(self) -> AttributeNetwork:
        """Settings of the networks that read attributes."""
        widths: AttributeNetwork = self.networks["attributes"]
        return widths

    @property
    def text_network(self) -> TextNetwork:
        """Settings of the networks that read sentences."""
        widths: TextNetwork = self.networks["text"]
        return widths

    def first_of_kind(self, kind: type[M]) -> M | None:
        """Return the first modality that is an instance of the class ``kind``; None if there is none."""
        return next((m for m in self.modalities.values() if isinstance(m, kind)), None)

    def gaussian_head(self, features: int, layers: int, maps: int = 0) -> nn.Module:
        """Build a network from features [B, F] to a Gaussian [B, D]: ``layers`` hidden layers, or a shared network.

        Where z is a grid, the first ``maps`` features are those of pictures, which have its places.
        """
        grid = self.latent.single_grid
        if grid is not None and maps:
            return GaussianHead(GridHead(grid, features, maps, self.hidden, ACTIVATIONS[self.activation]()))
        if self.shared:
            return GaussianHead(SharedEncoder(features, 2 * self.latent.size, self.shared))
        sizes = [features, *[self.hidden] * layers, 2 * self.latent.size]
        return GaussianHead(dense_layers(sizes, ACTIVATIONS[self.activation]))

    def modality_head(self, modality: Modality, features: int) -> nn.Module:
        """Build a network from features [B, F] of one modality to a Gaussian [B, D]."""
        layers = modality.head_layers if self.head_layers is None else self.head_layers
        return self.gaussian_head(features, layers, features if isinstance(modality, Image) else 0)


class Inference(nn.Module, ABC):
    """Base class of inferences: networks that compute the posterior q(z | inputs) for different sets of modalities."""

    any_subset: ClassVar[bool] = False
    """Whether there is a posterior for every subset of the modalities (:meth:`infer_subsets`)."""

    mixes: ClassVar[bool] = False
    """Whether a posterior given several modalities is a mixture of Gaussians (:meth:`mixed_subsets`)."""

    @classmethod
    def mixed_subsets(cls, inputs: Inputs) -> list[Inputs]:
        """Return the subsets of modalities whose posteriors q(z | inputs) mixes; by default all together."""
        return [inputs]

    @abstractmethod
    def has_posterior(self, inputs: Inputs) -> bool:
        """Return whether this inference can compute q(z | inputs) for exactly these modalities, in any order."""

    @abstractmethod
    def infer(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        """Compute q(z | inputs) [B, D] without checks; :meth:`has_posterior` must be true of these inputs."""

    def infer_all(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        """Compute q(z | inputs) [B, D] for each inputs in ``queries``, without checks; shared networks run once."""
        return [self.infer(batch, inputs) for inputs in queries]

    def infer_subsets(
        self, batch: Batch, units: Sequence[Unit], membership: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        """Compute q(z | subset) [S, B, D] for S subsets of U units (modalities or attributes); each network runs once.

        Args:
            batch: B examples; a unit that is missing in an example is left out of its subsets.
            units: Whole modalities, or single attributes.
            membership: Whether each subset holds each unit, [S][U].
        """
        # Not abstract, since few members support it; a model whose objective needs it cannot be built with others.
        raise NotImplementedError(
            f"{type(self).__name__} has no posterior for every subset of modalities; use product-of-experts"
        )

    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        """Compute q(z | inputs) [B, D] of a batch, after checking that the model and the batch have these inputs.

        Raises:
            UsageError: The model has no such inference network, or the batch lacks a modality.
        """
        return self.posteriors(batch, [inputs])[0]

    def posteriors(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        """Compute q(z | inputs) [B, D] for each inputs in ``queries``, after checking that model and batch have them.

        Raises:
            UsageError: The model has no such inference network, or the batch lacks a modality.
        """
        for inputs in queries:
            missing = [name for name in inputs if name not in batch.values]
            if missing:
                raise UsageError(
                    f"the posterior given {' and '.join(inputs)} needs {missing[0]}, which the batch lacks; "
                    f"add {missing[0]} to the batch"
                )
            if not self.has_posterior(inputs):
                raise UsageError(
                    f"this model has no inference network for q(z | {', '.join(inputs)}); "
                    "fit this posterior with mmgen fit-aggregate, or train with an objective that learns it"
                )
        return self.infer_all(batch, queries)


def gaussian_of_output(output: Tensor) -> DiagonalGaussian:
    """Convert a network's output [..., 2 D] to a Gaussian [..., D]: the mean, then the log sd, clamped to [-7, 4]."""
    mean, log_sd = full_precision(output).chunk(2, -1)
    return DiagonalGaussian(mean, log_sd.clamp(-7.0, 4.0))


def product_of_gaussians(
    experts: Iterable[tuple[DiagonalGaussian, Tensor]], prior: DiagonalGaussian
) -> DiagonalGaussian:
    r"""Multiply Gaussian experts and the prior p(z) to one Gaussian.

    .. math:: C^{-1} = C_0^{-1} + \sum_k C_k^{-1}, \quad \mu = C \sum_k C_k^{-1} \mu_k \qquad \text{(VE Section 2)}

    Args:
        experts: Pairs of a Gaussian [..., D] and its presence [...]; absent experts do not count.
        prior: p(z), so that the product is a proper density even without experts.
    """
    precision = prior.precision
    weighted = prior.precision * prior.mean
    for expert, present in experts:
        vote = expert.precision * present.unsqueeze(-1).to(precision.dtype)
        precision = precision + vote
        weighted = weighted + vote * expert.mean
    return DiagonalGaussian(weighted / precision, -0.5 * precision.log())


class GaussianHead(nn.Module):
    """Network that maps features [B, F] to a Gaussian [B, D] by layers with outputs [B, 2 D]."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, features: Tensor) -> DiagonalGaussian:
        return gaussian_of_output(self.layers(features))


class ModalityPosterior(nn.Module):
    """Encoder q(z | x) of one modality: features by the network of its kind, then fully connected layers.

    Images have convolutional features and a 3-layer network (VE A.4), sentences the last state of a recurrent encoder.
    All attributes are encoded together (WG); unknown ones add nothing.
    """

    def __init__(self, parts: InferenceParts, modality: Modality) -> None:
        super().__init__()
        self.modality = modality
        self.encoder, features = modality.encoder(parts.networks.get(modality.kind))
        self.head = parts.modality_head(modality, features)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        name = self.modality.name
        features = self.modality.features(self.encoder, batch.values[name], batch.present[name])
        posterior: DiagonalGaussian = self.head(features)
        return posterior


class AttributeExperts(nn.Module):
    """Encoders q(z | y_k) of single attributes, one for each attribute k (VE Section 2)."""

    def __init__(self, parts: InferenceParts, attributes: Attributes) -> None:
        super().__init__()
        self.name = attributes.name
        self.tables = AttributeTables(attributes.sizes, 2 * parts.latent.size, parts.attribute_network)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        """Return q(z | y_k) of all A attributes as one Gaussian [B, A, D]."""
        return gaussian_of_output(self.tables(batch.values[self.name], batch.present[self.name]))


def universal_expert(like: Tensor) -> DiagonalGaussian:
    """Return the prior p(z) = N(0, I) with the shape, dtype and device of ``like`` [..., D]."""
    zeros = torch.zeros_like(like)
    return DiagonalGaussian(zeros, zeros)


class CombinedInference(Inference):
    """Base class of inferences that combine M encoders (experts) of one modality each to posteriors of 2^M subsets.

    Where z has layers of single modalities (:attr:`LatentSpace.owners`), an expert does not cover the others' layers,
    which keep the density of absent ones: N(0, s^2) with a learned s (r of MMVAE+), or p(z) where nothing learns it.
    Where it has no others, modalities say nothing of each other, and the only posterior is that given all of them.
    """

    any_subset: ClassVar[bool] = True

    def __init__(self, parts: InferenceParts, queries: frozenset[Inputs]) -> None:
        super().__init__()
        self.experts = nn.ModuleDict()
        for name, modality in parts.modalities.items():
            if isinstance(modality, Attributes) and parts.attribute_network.experts == "each":
                self.experts[name] = AttributeExperts(parts, modality)
            else:
                self.experts[name] = ModalityPosterior(parts, modality)
        self.latent = parts.latent
        self.absent = nn.ParameterDict(
            {layer: nn.Parameter(torch.zeros(parts.latent.layers[layer])) for layer in parts.latent.owners}
        )

    @abstractmethod
    def combine(self, experts: DiagonalGaussian, present: Tensor, membership: Tensor) -> DiagonalGaussian:
        """Combine E experts to the posteriors [S, B, D] of S subsets of them.

        Args:
            experts: The experts' Gaussians [E, B, D].
            present: Which dimensions they cover, for each example, bool [E, B, D].
            membership: Whether each subset holds each expert, 0 or 1, [S, E].
        """

    def has_posterior(self, inputs: Inputs) -> bool:
        needed = set(self.latent.owners.values()) if self.latent.shares_nothing else set()
        return bool(inputs) and needed <= set(inputs) <= self.experts.keys()

    def infer(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        return self.infer_all(batch, [inputs])[0]

    def infer_all(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        names = list(dict.fromkeys(name for inputs in queries for name in inputs))
        chosen = [[name in inputs for name in names] for inputs in queries]
        every = self.infer_subsets(batch, [(name, None) for name in names], chosen)
        return [DiagonalGaussian(*one) for one in zip(every.mean, every.log_sd, strict=True)]

    def infer_subsets(
        self, batch: Batch, units: Sequence[Unit], membership: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        found = {name: self._experts_of(batch, name) for name in dict.fromkeys(name for name, _ in units)}
        experts, present, columns = [], [], []
        for number, (name, attribute) in enumerate(units):
            expert, there = found[name]
            which = slice(None) if attribute is None else slice(attribute, attribute + 1)
            experts.append(expert[which])
            present.append(there[which] & self._covered(name, there))
            columns += [number] * len(there[which])
        every = DiagonalGaussian(torch.cat([one.mean for one in experts]), torch.cat([one.log_sd for one in experts]))
        mask = torch.tensor(membership, device=batch.device)[:, columns].to(every.mean.dtype)  # [S, E]
        with torch.autocast(batch.device.type, enabled=False):  # precisions do not survive bf16
            return self._fill_absent(self.combine(every, torch.cat(present), mask), units, membership)

    def _covered(self, name: str, like: Tensor) -> Tensor:
        """Return which dimensions a modality's expert covers, bool [D]: those of shared layers and of its own."""
        owners = self.latent.owners
        if not owners:
            return torch.ones((), dtype=torch.bool, device=like.device)
        covered = [owners.get(layer, name) == name for layer, size in self.latent.layers.items() for _ in range(size)]
        return torch.tensor(covered, device=like.device)

    def _fill_absent(
        self, q: DiagonalGaussian, units: Sequence[Unit], membership: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        """Return posteriors [S, B, D] with the learned density of those layers whose modality is not in the subset."""
        if not self.absent:
            return q
        layers = self.latent.split(q.log_sd)
        for layer, owner in self.latent.owners.items():
            held = [any(row[number] for number, unit in enumerate(units) if unit[0] == owner) for row in membership]
            there = torch.tensor(held, device=q.mean.device)[:, None, None]
            layers[layer] = torch.where(there, layers[layer], self.absent[layer])
        return DiagonalGaussian(q.mean, self.latent.join(layers))

    def _experts_of(self, batch: Batch, name: str) -> tuple[DiagonalGaussian, Tensor]:
        """Return a modality's experts [E, B, D] and for which examples they are present, bool [E, B, 1]."""
        network, present = self.experts[name], batch.present[name]
        if isinstance(network, AttributeExperts):
            every = network(batch)
            expert = DiagonalGaussian(every.mean.transpose(0, 1), every.log_sd.transpose(0, 1))
            return expert, present.transpose(0, 1).unsqueeze(-1)
        known, place = batch.known(name), torch.arange(batch.size, device=batch.device)
        # In the place of an absent example a present one is encoded again: blank images would distort batch norm, and
        # to choose the present ones alone would wait for the device.
        first = (~known).to(torch.uint8).argsort(stable=True)  # the present ones
        rows = torch.where(known, place, first[place % known.sum().clamp_min(1)])
        one = network(batch.select([name])[rows])
        return DiagonalGaussian(one.mean[None], one.log_sd[None]), known[None, :, None]


class ExpertInference(CombinedInference):
    """Base class of inferences that multiply experts.

    Where no expert of a subset covers a dimension, its density is that of p(z).
    """

    prior: ClassVar[bool] = True
    """Whether p(z) is one of the experts."""

    def natural_parameters(self, expert: DiagonalGaussian) -> tuple[Tensor, Tensor]:
        """Return the contributions of an expert [..., D] to the precision (at least 0) and to precision times mean."""
        return expert.precision, expert.precision * expert.mean

    def combine(self, experts: DiagonalGaussian, present: Tensor, membership: Tensor) -> DiagonalGaussian:
        precisions, weighted = (each.masked_fill(~present, 0.0) for each in self.natural_parameters(experts))
        precision = float(self.prior) + torch.einsum("se,ebd->sbd", membership, precisions)
        if not self.prior:
            precision = torch.where(precision > 0, precision, 1.0)
        mean = torch.einsum("se,ebd->sbd", membership, weighted) / precision
        return DiagonalGaussian(mean, -0.5 * precision.log())


def every_subset(names: Inputs) -> list[Inputs]:
    """Return all subsets of one name or more, small ones first."""
    return [one for size in range(1, len(names) + 1) for one in itertools.combinations(names, size)]

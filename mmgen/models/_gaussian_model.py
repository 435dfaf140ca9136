"""The base class of models whose posteriors are diagonal Gaussians over one layer z."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.inference import Inputs, Unit
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.mixture import GaussianMixture
from mmgen.latent.trace import Trace
from mmgen.models._base import Model


class GaussianModel(Model):
    """Base of models with diagonal Gaussians q(z | inputs) over one layer z; its prior is N(0, I) or learned."""

    @property
    def capabilities(self) -> frozenset[str]:
        return super().capabilities | {"gaussian"}

    def log_prior(self, z: Tensor) -> Tensor:
        return DiagonalGaussian.standard(self.latent_size, like=z).log_prob(z)

    def prior(self, batch: Batch) -> DiagonalGaussian | GaussianMixture:
        """Return the prior of z [B, D]: N(0, I), or of a conditional model that learns it p(z | y)."""
        return DiagonalGaussian.standard(batch.size, self.latent_size, like=next(self.parameters()))

    @abstractmethod
    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian: ...

    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        return self.posterior(batch, inputs)

    def posteriors(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        """Return q(z | inputs) of the same batch for several sets of inputs; shared networks run once.

        Raises:
            UsageError: The model lacks an inference network.
        """
        return [self.posterior(batch, inputs) for inputs in queries]

    def subset_posteriors(
        self, batch: Batch, units: Sequence[Unit], membership: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        """Return q(z | subset) [S, B, D] for S subsets of U units (modalities, or single attributes).

        Args:
            batch: B examples; units that an example lacks are left out of its subsets.
            units: The U units.
            membership: Whether each subset includes each unit, [S][U].
        """
        # Not abstract, since few members can: the capability "subsets" says which, and build_model refuses the others.
        raise NotImplementedError(
            f"{type(self).__name__} has no posterior for every subset of modalities; use model multimodal-vae"
        )

    def log_likelihood_of_attribute(self, name: str, attribute: int, z: Tensor, batch: Batch) -> Tensor:
        """Return log p(y_k | z) [K, B] or [B], in nats, of attribute number k; 0 if it is unknown."""
        # Not abstract either: only objectives that split attributes ask for it; build refuses those.
        raise NotImplementedError(
            f"{type(self).__name__} has no separate network for each attribute; use model multimodal-vae"
        )

    def generative_networks(self) -> list[nn.Module]:
        """Return the networks from z to modalities: decoders, and layers that they share."""
        return [self.decoders]

    @contextmanager
    def frozen_decoders(self) -> Iterator[None]:
        """Freeze the decoders within a block: gradients still reach z, and batch norm uses running statistics.

        TELBO needs this in its unimodal terms (VE Section 2): q(z|x) and q(z|y) are fitted to the decoders as they will
        be used, and must not change them.
        """
        frozen = nn.ModuleList(self.generative_networks())
        trainable = [p for p in frozen.parameters() if p.requires_grad]
        training = [m for m in frozen.modules() if m.training]
        for parameter in trainable:
            parameter.requires_grad_(False)
        frozen.eval()
        try:
            yield
        finally:
            for parameter in trainable:
                parameter.requires_grad_(True)
            for module in training:
                module.training = True

    def trace(
        self, batch: Batch, inputs: Inputs, samples: int | None = None, names: Sequence[str] | None = None
    ) -> Trace:
        q = self.posterior(batch, inputs)
        z = q.sample(None, () if samples is None else (samples,))
        prior = self.prior(batch)
        log_ratio = prior.log_prob(z) - q.log_prob(z)
        return Trace(
            z,
            {name: self.log_likelihood(name, z, batch) for name in (self.generates if names is None else names)},
            divergence={"z": q.kl(prior) if isinstance(prior, DiagonalGaussian) else -log_ratio},
            log_ratio={"z": log_ratio},
        )

"""The base of all models, as training, sampling and evaluation use them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.inference import Inputs, Unit
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.posterior import Posterior
from mmgen.latent.space import LatentSpace
from mmgen.latent.trace import Trace
from mmgen.modalities import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.text import Text
from mmgen.models._capabilities import USUAL_NEEDS
from mmgen.models._settings import DataSettings, ModelSettings

__all__ = ["Demands", "GaussianModel", "Inputs", "Model", "Unit"]


@dataclass(frozen=True)
class Demands:
    """Posteriors, decoders and capabilities that an objective needs, so that a model builds only those.

    Attributes:
        posteriors: The posteriors that it asks for, each by the modalities that it is given.
        generates: The modalities that are decoded.
        conditions_on: Modalities that decoders see besides z (CVAE).
        inference: How posteriors are composed where the settings of the model do not say.
        marginalises: Modalities that it sums over where they are unknown. In the model they are a part of z whose
            posterior is known in closed form (:attr:`Model.latent_modalities`).
        needs: Capabilities that the model has to have (:attr:`Model.capabilities`).
    """

    posteriors: frozenset[Inputs]
    generates: tuple[str, ...] = ("image", "attributes")
    conditions_on: tuple[str, ...] = ()
    inference: str = "joint"
    marginalises: tuple[str, ...] = ()
    needs: frozenset[str] = USUAL_NEEDS

    @property
    def modalities(self) -> tuple[str, ...]:
        """Modalities that the objective uses: generated ones first, then those only inferred from or conditioned on."""
        inferred_from = (name for inputs in sorted(self.posteriors) for name in inputs)
        return tuple(dict.fromkeys([*self.generates, *inferred_from, *self.conditions_on]))


class Model(nn.Module, ABC):
    """Base of all models: p(z) and p(x_m | z) for each modality m, with posteriors q(z | inputs).

    Attributes:
        latent: The layers of z.
        modalities: What is decoded, by name.
        decoders: The network of each.
        main: Name of the data's main picture; "" where nobody said.
    """

    settings: ClassVar[type[ModelSettings]]
    """What can be set of a model of this kind."""

    latent: LatentSpace
    modalities: dict[str, Modality]
    decoders: nn.ModuleDict
    main: str = ""

    @classmethod
    @abstractmethod
    def build(cls, settings: Any, demands: Demands, data: DataSettings) -> Self:
        """Return a freshly initialised model (from torch's global generator: seed it first).

        Args:
            settings: Settings of :attr:`settings`.
            demands: What the objective needs.
            data: The modalities that there are.

        Raises:
            SettingsError: The settings do not fit each other, the demands or the data.
        """

    @classmethod
    def complete(cls, settings: Any, demands: Demands, data: DataSettings) -> Any:
        """Return the settings with values that follow from data and demands; by default unchanged."""
        return settings

    @property
    def latent_size(self) -> int:
        """D, dimensions of z."""
        return self.latent.size

    @property
    def generates(self) -> tuple[str, ...]:
        """Names of the modalities that can be drawn given z."""
        return tuple(self.modalities)

    @property
    def conditional_on(self) -> tuple[str, ...]:
        """Names of the modalities that decoders see besides z: empty but for conditional models."""
        return ()

    @property
    def latent_modalities(self) -> tuple[str, ...]:
        """Names of the modalities that are part of z: one-hot layers, inferred in closed form where they are unknown
        (:meth:`label_log_probabilities`). Objectives have to sum over them, since draws of them pass no gradient.
        """
        return ()

    @property
    def discrete_layers(self) -> tuple[str, ...]:
        """Layers of z that hold :attr:`latent_modalities`, the first ones."""
        return ()

    @property
    def capabilities(self) -> frozenset[str]:
        """Names of the capabilities that objectives may need (:data:`mmgen.models.CAPABILITIES`).

        Members add their own: a model whose posteriors are single Gaussians has "gaussian".
        """
        found = {"density", "labels in z" if self.latent_modalities else "reparameterised"}
        return frozenset(found | ({"independent"} if all(each.alone for each in self.modalities.values()) else set()))

    @abstractmethod
    def has_posterior(self, inputs: Inputs) -> bool:
        """Return True if :meth:`posterior` can return q(z | inputs)."""

    @abstractmethod
    def posterior(self, batch: Batch, inputs: Inputs) -> Posterior:
        """Return q(z | inputs) [B, D]; without inputs p(z).

        Raises:
            UsageError: The model has no such posterior.
        """

    @abstractmethod
    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        """Return q(z | inputs) as a diagonal Gaussian [B, D], the form that is cached.

        Args:
            batch: B examples.
            inputs: Modalities that the posterior is given.
            generator: Randomness of draws; what a single Gaussian is needs none.

        Raises:
            UsageError: The model has no such posterior.
        """

    def means(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> Tensor:
        """Return means of q(z | inputs) [B, D]; of layers, each given one draw of the layers below (Burda et
        al., 2016).
        """
        return self.encode(batch, inputs, generator).mean

    def below(self, top: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Complete a draw of the top layer [..., D_L] by draws of the layers below, p(lower | top): z [..., D]."""
        return top

    def log_below(self, z: Tensor) -> Tensor:
        """Return log p(lower layers | top), z [..., D] -> [...], nats; 0 where there is one layer."""
        return z.new_zeros(z.shape[:-1])

    @abstractmethod
    def log_prior(self, z: Tensor) -> Tensor:
        """Return log p(z), z [..., D] -> [...], nats."""

    @abstractmethod
    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return parameters of p(x_name | z): z [..., D] -> [..., *event]; for text a context [..., F] that words
        follow from.

        Args:
            name: The modality.
            z: Latents; leading axes are free, the last of them being B where ``condition`` is used.
            condition: For a conditional model, the descriptions [B] that it is conditioned on.
        """

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        """Return log p(x_name | z) in nats: z [K, B, D] or [B, D] -> [K, B] or [B]; unknown values are left out."""
        parameters = self.decode(name, z, batch if self.conditional_on else None)
        return self.modalities[name].log_prob(parameters, batch.values[name], batch.present[name])

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return E[x_name | z]: an image [..., C, H, W], attribute probabilities [..., A, V], or of words [..., T,
        V+1].
        """
        return self.modalities[name].mean(self.decode(name, z, condition))

    def sample(
        self,
        name: str,
        z: Tensor,
        generator: torch.Generator | None = None,
        condition: Batch | None = None,
        greedy: bool = False,
    ) -> Tensor:
        """Return a draw of x_name given z: an image [..., C, H, W] float, attribute codes or word codes int64 [..., A
        or T].

        Args:
            name: The modality.
            z: Latents [..., D].
            generator: Randomness of the draw.
            condition: See :meth:`decode`.
            greedy: For text, the likeliest word at every step instead of a draw.
        """
        parameters = self.decode(name, z, condition)
        if greedy:
            return self._text(name).sample(parameters, greedy=True)
        return self.modalities[name].sample(parameters, generator)

    def label_log_probabilities(self, name: str, batch: Batch, inputs: Inputs) -> Tensor | None:
        """Return log q(y_k | inputs) [B, A, V] of attributes that the model infers in closed form, -inf beyond
        an attribute's range; None where it has to average p(y_k | z) over draws of z.

        Args:
            name: The modality of attributes.
            batch: B examples.
            inputs: Modalities that the posterior is given.
        """
        return None

    @abstractmethod
    def trace(
        self, batch: Batch, inputs: Inputs, samples: int | None = None, names: Sequence[str] | None = None
    ) -> Trace:
        """Encode a batch, draw z and decode: log-likelihoods of the batch and divergences, as a Trace.

        Args:
            batch: B examples.
            inputs: Modalities that the posterior is given.
            samples: K; None for one draw without an axis of draws.
            names: Modalities whose likelihood is wanted; all that are generated by default.
        """

    @abstractmethod
    def inference_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of all inference networks together (WG Table 1)."""

    def labelled(self) -> list[str]:
        """Return the names of the attribute modalities that are decoded."""
        return [name for name, modality in self.modalities.items() if isinstance(modality, Attributes)]

    def label_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of p(y | z) of all attribute modalities."""
        return [p for name in self.labelled() for p in self.decoders[name].parameters()]

    def label_weights(self) -> list[nn.Parameter]:
        """Return the weight matrices of p(y | z), without biases and norms."""
        return [p for p in self.label_parameters() if p.dim() > 1]

    def word_probabilities(self, name: str, z: Tensor, tokens: Tensor) -> Tensor:
        """Return p(word_t | z, words before t): z [..., D], tokens int64 [..., T] -> [..., T, V+1].

        The last column is padding, "no word", which is certain once a sentence has ended.
        """
        return self._text(name).probabilities(self.decode(name, z), tokens)

    def _text(self, name: str) -> Text:
        modality = self.modalities.get(name)
        if not isinstance(modality, Text):
            raise UsageError(
                f"got the modality '{name}', but this model generates no text of that name; name a text that it "
                "generates"
            )
        return modality


class GaussianModel(Model):
    """A model whose prior is N(0, I) and whose posteriors are diagonal Gaussians over a flat z."""

    @property
    def capabilities(self) -> frozenset[str]:
        return super().capabilities | {"gaussian"}

    def log_prior(self, z: Tensor) -> Tensor:
        return DiagonalGaussian.standard(self.latent_size, like=z).log_prob(z)

    @abstractmethod
    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian: ...

    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        return self.posterior(batch, inputs)

    def posteriors(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        """Return several posteriors of the same batch; where networks are shared, each runs once.

        Raises:
            UsageError: The model lacks an inference network.
        """
        return [self.posterior(batch, inputs) for inputs in queries]

    def subset_posteriors(
        self, batch: Batch, units: Sequence[Unit], chosen: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        """Return q(z | subset) [S, B, D] for S subsets of U units (modalities, or single attributes).

        Args:
            batch: B examples; what is missing in one is left out of its subsets.
            units: The U units.
            chosen: [S][U], which units each subset holds.
        """
        # Not abstract, since few members can: the capability "subsets" says which, and build_model refuses the others.
        raise NotImplementedError(
            f"{type(self).__name__} has no posterior for every subset of modalities; use model multimodal-vae"
        )

    def log_likelihood_of_attribute(self, name: str, attribute: int, z: Tensor, batch: Batch) -> Tensor:
        """Return log p(y_k | z) of one attribute by number, in nats: z [K, B, D] or [B, D] -> [K, B] or [B]; 0 if
        unknown.
        """
        # Not abstract either: only objectives that split attributes ask for it; build refuses those.
        raise NotImplementedError(
            f"{type(self).__name__} has no separate network for each attribute; use model multimodal-vae"
        )

    def generative_networks(self) -> list[nn.Module]:
        """Return the networks from z to modalities: decoders, and layers that they share."""
        return [self.decoders]

    @contextmanager
    def frozen_decoders(self) -> Iterator[None]:
        """Freeze decoders in this block: gradients pass to z, and batch norm uses its running statistics.

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
        prior = DiagonalGaussian.standard(*q.mean.shape, like=q.mean)
        return Trace(
            z,
            {name: self.log_likelihood(name, z, batch) for name in (self.generates if names is None else names)},
            divergence={"z": q.kl(prior)},
            log_ratio={"z": prior.log_prob(z) - q.log_prob(z)},
        )

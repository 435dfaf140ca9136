"""The base class of models."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.inference import Inputs
from mmgen.latent.gaussian import DiagonalGaussian, Posterior
from mmgen.latent.space import LatentSpace
from mmgen.latent.trace import Trace
from mmgen.modalities import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.text import Text
from mmgen.models._capabilities import USUAL_NEEDS
from mmgen.models._parts import Examples, Preparation
from mmgen.models._settings import DataSettings, ModelSettings


@dataclass(frozen=True)
class Demands:
    """Posteriors, decoders and capabilities that an objective needs; a model builds only those.

    Attributes:
        posteriors: The posteriors, each as names of the modalities that it is conditioned on.
        generates: Names of the modalities to decode.
        conditions_on: Names of the modalities that decoders get besides z (CVAE).
        inference: Default of the setting that composes posteriors.
        marginalises: Modalities that the objective sums over where they are unknown. In the model they are a part of z
            whose posterior is known in closed form (:attr:`Model.latent_modalities`).
        needs: Capabilities that the model must have (:attr:`Model.capabilities`).
    """

    posteriors: frozenset[Inputs]
    generates: tuple[str, ...] = ("image", "attributes")
    conditions_on: tuple[str, ...] = ()
    inference: str = "joint"
    marginalises: tuple[str, ...] = ()
    needs: frozenset[str] = USUAL_NEEDS

    @property
    def modalities(self) -> tuple[str, ...]:
        """Modalities that the objective uses: first those to generate, then those only encoded or conditioned on."""
        inferred_from = (name for inputs in sorted(self.posteriors) for name in inputs)
        return tuple(dict.fromkeys([*self.generates, *inferred_from, *self.conditions_on]))


class Model(nn.Module, ABC):
    """Base of all models: p(z) and p(x_m | z) for each modality m, with posteriors q(z | inputs).

    Attributes:
        latent: The layers of z.
        modalities: The decoded modalities by name.
        decoders: Their networks by name.
        main: Name of the data's main picture; "" if unknown.
    """

    settings: ClassVar[type[ModelSettings]]
    """Class of the settings of such models."""

    latent: LatentSpace
    modalities: dict[str, Modality]
    decoders: nn.ModuleDict
    main: str = ""

    @classmethod
    @abstractmethod
    def build(cls, settings: Any, demands: Demands, data: DataSettings) -> Self:
        """Build a model with weights drawn from torch's global generator.

        Args:
            settings: An instance of :attr:`settings`.
            demands: Posteriors, decoders and capabilities that the objective needs.
            data: Settings of the data with its modalities.

        Raises:
            SettingsError: The settings do not fit each other, the demands or the data.
        """

    @classmethod
    def complete_settings(cls, settings: Any, demands: Demands, data: DataSettings) -> Any:
        """Return the settings with values filled in that follow from data and demands; by default unchanged."""
        return settings

    def prepare(self, settings: Any, training: Examples, validation: Examples) -> Preparation:
        """Prepare a new model for training, such as by reading given weights; by default do nothing.

        Args:
            settings: An instance of :attr:`settings`.
            training: Training examples, of which some may be looked at.
            validation: Validation examples.
        """
        return Preparation()

    lasting_facts: ClassVar[tuple[str, ...]] = ()
    """Names of facts of :meth:`prepare` that stay true of a model that starts from the weights of this one."""

    @property
    def encodes_once(self) -> str:
        """Name of the modality whose encoding no training changes, so that it is computed once; "" for none."""
        return ""

    @property
    def latent_size(self) -> int:
        """Number D of dimensions of z."""
        return self.latent.size

    @property
    def generates(self) -> tuple[str, ...]:
        """Names of the modalities that can be drawn given z."""
        return tuple(self.modalities)

    @property
    def conditional_on(self) -> tuple[str, ...]:
        """Names of the modalities that decoders get besides z; () except for conditional models."""
        return ()

    @property
    def prior_reads(self) -> tuple[str, ...]:
        """Names of the modalities on which the prior depends: () except where p(z | y) is learned."""
        return ()

    @property
    def latent_modalities(self) -> tuple[str, ...]:
        """Names of the modalities that are part of z, as one-hot vectors; () for most models.

        Where unknown they are inferred in closed form (:meth:`label_log_probabilities`). Objectives sum over them,
        since draws of them have no gradient.
        """
        return ()

    @property
    def discrete_layers(self) -> tuple[str, ...]:
        """Names of the layers of z that hold :attr:`latent_modalities`; they come first."""
        return ()

    @property
    def capabilities(self) -> frozenset[str]:
        """Names of what the model can do that objectives may need (:data:`mmgen.models.CAPABILITIES`).

        Members add their own: a model whose posteriors are single Gaussians has "gaussian".
        """
        found = {"density", "labels in z" if self.latent_modalities else "reparameterised"}
        return frozenset(
            found | ({"independent"} if all(each.is_independent for each in self.modalities.values()) else set())
        )

    @abstractmethod
    def has_posterior(self, inputs: Inputs) -> bool:
        """Return True if :meth:`posterior` supports these inputs."""

    @abstractmethod
    def posterior(self, batch: Batch, inputs: Inputs) -> Posterior:
        """Return q(z | inputs) [B, D] for a batch; p(z) if there are no inputs.

        Raises:
            UsageError: The model has no such posterior.
        """

    @abstractmethod
    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        """Return q(z | inputs) as a diagonal Gaussian [B, D]; of several layers of z, draw all but the top one.

        Args:
            batch: B examples.
            inputs: Modalities that the posterior is given.
            generator: Randomness of draws of layers; unused for a single Gaussian.

        Raises:
            UsageError: The model has no such posterior.
        """

    def means(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> Tensor:
        """Return means of q(z | inputs) [B, D]; means of upper layers depend on one draw of the layers below.

        Source: Burda et al. (2016).
        """
        return self.encode(batch, inputs, generator).mean

    def sample_lower_layers(self, top: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return z [..., D] with draws of the lower layers from p(lower | top) added to a draw of the top layer [...,
        D_L].
        """
        return top

    def log_prob_lower_layers(self, z: Tensor) -> Tensor:
        """Return log p(lower layers | top layer) in nats for z [..., D] -> [...]; 0 for a z of one layer."""
        return z.new_zeros(z.shape[:-1])

    @abstractmethod
    def log_prior(self, z: Tensor) -> Tensor:
        """Return log p(z) in nats for z [..., D] -> [...]."""

    @abstractmethod
    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return the parameters of p(x_name | z) [..., *event] for z [..., D]; for text a context [..., F] of its
        words.

        Args:
            name: Name of the modality.
            z: Latents with any leading axes; with ``condition`` the last of these is B.
            condition: Descriptions [B] for a conditional model.
        """

    def _run_decoder(self, name: str, z: Tensor) -> Tensor:
        """Return what the decoder of a modality makes of its input [..., F]."""
        if name not in self.decoders:
            raise UsageError(f"this model does not generate {name}; it generates {', '.join(self.generates)}")
        parameters: Tensor = self.decoders[name](z.reshape(-1, z.shape[-1]))
        return parameters.reshape(*z.shape[:-1], *parameters.shape[1:])

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        """Return log p(x_name | z) in nats: z [K, B, D] or [B, D] -> [K, B] or [B]; unknown values are left out."""
        parameters = self.decode(name, z, batch if self.conditional_on else None)
        return self.modalities[name].log_prob(parameters, batch.values[name], batch.present[name])

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return E[x_name | z]: an image [..., C, H, W], attribute probabilities [..., A, V] or word probabilities
        [..., T, V+1].
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
        """Draw x_name given z: an image float [..., C, H, W], attribute codes int64 [..., A] or word codes int64 [...,
        T].

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
        """Return log q(y_k | inputs) [B, A, V] in nats for attributes that the model infers in closed form; else None.

        It is -inf beyond the range of an attribute.

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
        """Encode a batch, draw z and decode it; return log-likelihoods of the batch and divergences from p(z) as a
        Trace.

        Args:
            batch: B examples.
            inputs: Modalities that the posterior is given.
            samples: K; None for one draw without an axis of draws.
            names: Modalities whose likelihood to compute; by default all generated ones.
        """

    @abstractmethod
    def inference_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of all inference networks together (WG Table 1)."""

    def decoded_attributes(self) -> list[str]:
        """Return the names of the attribute modalities that a decoder generates."""
        return [name for name, modality in self.modalities.items() if isinstance(modality, Attributes)]

    def output_bias(self, name: str) -> Tensor | None:
        """Return the bias of a decoder's output, by pixel or channel; None if there is none."""
        last = [part for part in self.decoders[name].modules() if any(True for _ in part.parameters(recurse=False))][-1]
        return last.bias if isinstance(last, nn.Linear | nn.Conv2d | nn.ConvTranspose2d) else None

    def label_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the decoders p(y | z) of all attribute modalities."""
        return [p for name in self.decoded_attributes() for p in self.decoders[name].parameters()]

    def label_weights(self) -> list[nn.Parameter]:
        """Return the weight matrices of the decoders p(y | z), without biases and norms."""
        return [p for p in self.label_parameters() if p.dim() > 1]

    def word_probabilities(self, name: str, z: Tensor, tokens: Tensor) -> Tensor:
        """Return p(word_t | z, words before t) [..., T, V+1] for z [..., D] and word codes int64 [..., T]; the last
        column is padding, "no word", which is certain once a sentence has ended.
        """
        return self._text(name).probabilities(self.decode(name, z), tokens)

    def _text(self, name: str) -> Text:
        """Return the text modality called ``name``, or raise the error for a model that generates none."""
        modality = self.modalities.get(name)
        if not isinstance(modality, Text):
            raise UsageError(f"this model generates no text '{name}'; name a text that it generates")
        return modality

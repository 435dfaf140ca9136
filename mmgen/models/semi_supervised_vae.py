r"""Semi-supervised VAEs: :math:`p(y) \, p(z) \, p(x|y,z)`, with a label y that is observed for few pictures.

References:
    Semi-Supervised Learning with Deep Generative Models (Kingma, Rezende, Mohamed, Welling, 2014), arXiv:1406.5298,
    Section 2: model M2
    Learning Disentangled Representations with Semi-Supervised Deep Generative Models (Narayanaswamy et al., 2017),
    arXiv:1706.00400: partially specified models
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

import mmgen.networks
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import Inputs, gaussian_of_output
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.labels import IMPOSSIBLE, LabelledStyle, Labels
from mmgen.latent.space import LatentSpace
from mmgen.latent.trace import Trace
from mmgen.likelihoods import full_precision
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.models._base import Demands, Model
from mmgen.models._parts import available_modalities
from mmgen.models._settings import DataSettings, ModelSettings
from mmgen.networks import ACTIVATIONS, ImageNetwork, dense_layers
from mmgen.settings.config import build_member

__all__ = ["SemiSupervisedVAE"]

Count = Annotated[int, Field(ge=1)]
_DRAWN = -7.0
"""log sd of labels, which are drawn already: 0.001, the least that any network gives."""


class SemiSupervisedSettings(ModelSettings):
    """Settings of a semi-supervised VAE: sizes of style and networks, and the prior of labels."""

    name: Literal["semi-supervised-vae"] = "semi-supervised-vae"
    """The kind of model."""
    latent_size: Count = 50
    """Dimensions of the style z (Kingma et al., 2014, and Narayanaswamy et al., 2017: 50)."""
    image_network: dict[str, Any] = Field(default_factory=lambda: {"name": "mlp", "hidden": [256]})
    """Family of image networks by name, and its own settings: features of q(z | x, y), and the decoder p(x | y, z)."""
    label_network: dict[str, Any] | None = None
    """Image network of q(y | x), by name; left out, q(y | x) and q(z | x, y) read the same features."""
    label_dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of the features of q(y | x) that are dropped in training."""
    hidden: tuple[Count, ...] = ()
    """Hidden layers from the image's features and y together to q(z | x, y)."""
    activation: Literal["elu", "relu", "silu", "softplus", "tanh"] = "relu"
    """Non-linearity of those."""
    label_prior: Literal["uniform", "learnt"] = "uniform"
    """p(y): every value of an attribute as likely as another, or learnt; attributes are independent a priori."""
    image_likelihood: str = "bernoulli"
    """p(image | y, z)."""


class _StyleHead(nn.Module):
    """Network from picture features [B, F] and one-hot labels [..., B, S] to the style's q(z | x, y) [..., B, D]."""

    def __init__(
        self, features: int, labels: int, hidden: Sequence[int], latent_size: int, activation: type[nn.Module]
    ) -> None:
        super().__init__()
        sizes = [*hidden, 2 * latent_size]
        self.of_image = nn.Linear(features, sizes[0])
        self.of_labels = nn.Linear(labels, sizes[0], bias=False)
        self.rest = nn.Sequential(activation(), dense_layers(sizes, activation)) if hidden else nn.Identity()

    def forward(self, features: Tensor, one_hot: Tensor) -> DiagonalGaussian:
        return gaussian_of_output(self.rest(self.of_image(features) + self.of_labels(one_hot)))


@dataclass(frozen=True)
class PictureEncoding:
    """Encoding of B pictures: q(y | x), and features from which q(z | x, y) follows for any label y.

    Attributes:
        labels: q(y | x) of B pictures.
        features: [B, F].
    """

    labels: Labels
    features: Tensor


class SemiSupervisedVAE(Model):
    r"""Model that draws a picture from a label, of one or several attributes, and a style.

    .. math:: p(x, y, z) = p(z) \prod_k p(y_k) \; p(x|y,z), \quad
              q(y, z|x) = \prod_k q(y_k|x) \; q(z|x,y)

    For everybody else z is one vector: the label, one-hot values of all attributes side by side, and then the style.
    So q(z | image) is a mixture over labels, q(z | image, attributes) one of its Gaussians, and q(z | attributes) the
    given label beside a style from the prior. Attributes are independent a priori and given the picture; those that a
    description leaves out are drawn. The attributes are part of z, so that p(attributes | z) is certain.

    Args:
        latent_size: D of the style.
        image: x.
        labels: y.
        encoder: A network [B, C, H, W] -> [B, F].
        style: From features and labels to q(z | x, y).
        label_encoder: A network [B, C, H, W] -> [B, F'] of q(y | x); None where both read the same features.
        label_head: From features to logits [B, S] of q(y | x).
        decoder: A network [B, S + D] -> parameters of p(x | y, z).
        learnt_prior: Whether p(y) is learnt.
    """

    settings = SemiSupervisedSettings

    def __init__(
        self,
        latent_size: int,
        image: Image,
        labels: Attributes,
        encoder: nn.Module,
        style: nn.Module,
        label_encoder: nn.Module | None,
        label_head: nn.Module,
        decoder: nn.Module,
        learnt_prior: bool = False,
    ) -> None:
        super().__init__()
        self.latent = LatentSpace({"y": labels.total_size, "z": latent_size})
        self.modalities = {image.name: image, labels.name: labels}
        self.image, self.labels = image, labels
        self.encoder, self.style = encoder, style
        self.label_encoder, self.label_head = label_encoder, label_head
        self.decoders = nn.ModuleDict({image.name: decoder})
        self.prior_logits = nn.Parameter(torch.zeros(labels.total_size)) if learnt_prior else None

    @classmethod
    def complete_settings(
        cls, settings: SemiSupervisedSettings, demands: Demands, data: DataSettings
    ) -> SemiSupervisedSettings:
        """Return the settings with sizes of image networks that suit the images, unless the user set them."""
        if data.image is None:
            return settings
        filled: dict[str, Any] = {}
        for key in ("image_network", "label_network"):
            network = getattr(settings, key)
            if network is not None and network.keys() == {"name"}:
                filled[key] = network | mmgen.networks.get(network["name"]).settings_for_sides(data.image.shape[1:])
        return settings.model_copy(update=filled)

    @classmethod
    def build(cls, settings: SemiSupervisedSettings, demands: Demands, data: DataSettings) -> "SemiSupervisedVAE":
        available = available_modalities(data, {"image": settings.image_likelihood}, demands.modalities)
        used = [available[name] for name in demands.modalities]
        images = [each for each in used if isinstance(each, Image)]
        labels = [each for each in used if isinstance(each, Attributes)]
        subsets = "subsets" in demands.needs
        if len(images) != 1 or len(labels) != 1 or len(used) != 2 or demands.conditions_on or subsets:
            raise SettingsError(
                "model semi-supervised-vae is of one image and its attributes, but the objective uses "
                f"{', '.join(demands.modalities)}{' in any subset' if subsets else ''}; use the objective "
                "semi-supervised, or model multimodal-vae"
            )
        network: ImageNetwork = build_member(mmgen.networks, settings.image_network, "model.image_network")
        image, label = images[0], labels[0]
        encoder, features = network.encoder(image.shape)
        label_encoder, read = None, features
        if settings.label_network is not None:
            reader: ImageNetwork = build_member(mmgen.networks, settings.label_network, "model.label_network")
            label_encoder, read = reader.encoder(image.shape)
        size, activation = label.total_size, ACTIVATIONS[settings.activation]
        generated, decoder = image.decoder(size + settings.latent_size, network)
        assert isinstance(generated, Image)
        return cls(
            settings.latent_size,
            generated,
            label,
            encoder,
            _StyleHead(features, size, settings.hidden, settings.latent_size, activation),
            label_encoder,
            nn.Sequential(nn.Dropout(settings.label_dropout), nn.Linear(read, size)),
            decoder,
            settings.label_prior == "learnt",
        )

    @property
    def latent_modalities(self) -> tuple[str, ...]:
        return (self.labels.name,)

    @property
    def discrete_layers(self) -> tuple[str, ...]:
        return ("y",)

    def has_posterior(self, inputs: Inputs) -> bool:
        return len(set(inputs)) == len(inputs) and set(inputs) <= self.modalities.keys()

    def infer(self, batch: Batch) -> PictureEncoding:
        """Encode the pictures of a batch: q(y | x), and features of q(z | x, y); each network runs once.

        Raises:
            UsageError: The batch holds no pictures.
        """
        if self.image.name not in batch.values:
            raise UsageError(
                f"the posterior given {self.image.name} needs {self.image.name}, which the batch does not hold; add "
                "it to the batch"
            )
        pixels = batch.values[self.image.name]
        features = full_precision(self.encoder(pixels))  # they are read after autocast has ended, too
        read = features if self.label_encoder is None else self.label_encoder(pixels)
        return PictureEncoding(Labels.from_logits(self.label_head(read), self.labels.sizes), features)

    def infer_style(self, encoding: PictureEncoding, one_hot: Tensor) -> DiagonalGaussian:
        """Return q(z | x, y) [..., B, D] for labels [..., B, S], one-hot or relaxed."""
        found: DiagonalGaussian = self.style(encoding.features, one_hot)
        return found

    def label_prior(self, size: int) -> Labels:
        """Return p(y) for ``size`` examples."""
        uniform = next(self.parameters()).new_zeros(self.labels.total_size)
        logits = uniform if self.prior_logits is None else self.prior_logits
        return Labels.from_logits(logits.expand(size, -1), self.labels.sizes)

    def posterior(self, batch: Batch, inputs: Inputs) -> LabelledStyle:
        if not self.has_posterior(inputs):
            raise UsageError(
                f"this model has no inference network for q(z | {', '.join(inputs)}); it infers z from "
                f"{self.image.name}, {self.labels.name} or both"
            )
        if self.image.name in inputs:
            encoding = self.infer(batch)
            labels = encoding.labels

            def style(one_hot: Tensor) -> DiagonalGaussian:
                return self.infer_style(encoding, one_hot)

        else:
            labels, size = self.label_prior(batch.size), self.latent.layers["z"]

            def style(one_hot: Tensor) -> DiagonalGaussian:
                return DiagonalGaussian.standard(*one_hot.shape[:-1], size, like=one_hot)

        if self.labels.name in inputs:
            if self.labels.name not in batch.values:
                raise UsageError(
                    f"the posterior given {self.labels.name} needs it, but the batch does not hold it; add it to the "
                    "batch"
                )
            labels = labels.condition_on(batch.values[self.labels.name], batch.present[self.labels.name])
        return LabelledStyle(labels, style)

    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        """Return a label and q(style | inputs, label); the label is drawn with a generator, else the likeliest."""
        q = self.posterior(batch, inputs)
        one_hot = q.labels.likeliest() if generator is None else q.labels.sample(generator)
        style = q.style(one_hot)
        return DiagonalGaussian(
            torch.cat([one_hot, style.mean], -1), torch.cat([torch.full_like(one_hot, _DRAWN), style.log_sd], -1)
        )

    def means(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> Tensor:
        """Return the likeliest label and the mean of q(style | inputs, label) [B, S + D]; nothing is drawn."""
        return self.encode(batch, inputs).mean

    def sample_lower_layers(self, top: Tensor, generator: torch.Generator | None = None) -> Tensor:
        flat = top.reshape(-1, top.shape[-1])
        one_hot = self.label_prior(len(flat)).sample(generator).to(top.dtype)
        return torch.cat([one_hot, flat], -1).reshape(*top.shape[:-1], -1)

    def log_prob_lower_layers(self, z: Tensor) -> Tensor:
        return self._prior_terms(z)[0]

    def log_prior(self, z: Tensor) -> Tensor:
        of_labels, of_style = self._prior_terms(z)
        return of_labels + of_style

    def _prior_terms(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return log p(label) and log p(style) for z [..., S + D], in nats."""

        def style(one_hot: Tensor) -> DiagonalGaussian:
            return DiagonalGaussian.standard(*one_hot.shape[:-1], self.latent.layers["z"], like=one_hot)

        return LabelledStyle(self.label_prior(1), style).log_prob_terms(z)

    def label_log_probabilities(self, name: str, batch: Batch, inputs: Inputs) -> Tensor | None:
        if name != self.labels.name:
            return None
        return self.labels.log_probabilities(self.posterior(batch, inputs).labels.log_probs)

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        if name == self.labels.name:
            # log y: one-hot values have log-probabilities 0 and almost never, and mean ones their own.
            return z[..., : self.labels.total_size].clamp_min(torch.e**IMPOSSIBLE).log()
        return self._run_decoder(name, z)

    def inference_parameters(self) -> list[nn.Parameter]:
        parts = (self.encoder, self.style, self.label_encoder, self.label_head)
        return [p for part in parts if part is not None for p in part.parameters()]

    def label_parameters(self) -> list[nn.Parameter]:
        """Return an empty list: labels are part of z, and no network decodes them."""
        return []

    def trace(
        self, batch: Batch, inputs: Inputs, samples: int | None = None, names: Sequence[str] | None = None
    ) -> Trace:
        q, p = self.posterior(batch, inputs), self.posterior(batch, ())
        z = q.sample(None, () if samples is None else (samples,))
        one_hot = z[..., : self.labels.total_size]
        ratio = dict(
            zip(("y", "z"), (b - a for a, b in zip(q.log_prob_terms(z), p.log_prob_terms(z), strict=True)), strict=True)
        )
        likelihood = {
            name: self.log_likelihood(name, z, batch) for name in (self.generates if names is None else names)
        }
        divergence = {"y": q.labels.kl(p.labels), "z": q.style(one_hot).kl(p.style(one_hot))}
        return Trace(z, likelihood, divergence=divergence, log_ratio=ratio)

r"""A ladder of stochastic layers: :math:`p(z_L) \, p(z_{L-1}|z_L) \cdots p(x|z_1)`, inferred from the image upwards.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 2 and Appendix C
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

import mmgen.networks
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import GaussianHead, Inputs
from mmgen.latent.gaussian import DiagonalGaussian, Posterior
from mmgen.latent.space import LatentSpace
from mmgen.latent.trace import Trace
from mmgen.modalities import Modality
from mmgen.modalities.image import Image
from mmgen.models._base import Demands, Model
from mmgen.models._parts import available_modalities, make_decoders, networks_by_kind
from mmgen.models._settings import DataSettings, ModelSettings
from mmgen.networks import ACTIVATIONS, AttributeNetwork, ImageNetwork, TextNetwork, dense_layers
from mmgen.settings.config import build_member

__all__ = ["HierarchicalVAE"]

Count = Annotated[int, Field(ge=1)]
_DRAWN = -7.0
"""log sd of layers that are drawn already: 0.001, the least that any network gives."""


class HierarchicalSettings(ModelSettings):
    """Settings of a hierarchical VAE: sizes of the layers of z and of the networks between them."""

    name: Literal["hierarchical-vae"] = "hierarchical-vae"
    """The kind of model."""
    latent_sizes: Annotated[tuple[Count, ...], Field(min_length=1)] = (100, 50)
    """Dimensions of each layer of z, the one next to the data first (Burda et al., 2016: 100 and 50)."""
    hidden: tuple[Count, ...] = (100, 100)
    """Hidden layers between two layers of z, in each direction."""
    activation: Literal["elu", "relu", "silu", "tanh"] = "tanh"
    """Non-linearity between layers of z."""
    image_network: dict[str, Any] = Field(default_factory=lambda: {"name": "mlp"})
    """Family of image networks by name, and its own settings, between the image and the first layer of z."""
    attribute_network: AttributeNetwork = Field(default_factory=AttributeNetwork)
    """Widths of the networks from the first layer of z to attributes."""
    text_network: TextNetwork | None = None
    """Widths of the networks from the first layer of z to sentences; left out, those of the paper."""
    image_likelihood: str = "bernoulli"
    """p(image | z)."""


class HierarchicalVAE(Model):
    r"""VAE with L layers of z, each a diagonal Gaussian given the layer before it, in q and in p.

    .. math:: q(z|x) = q(z_1|x) \prod_l q(z_{l+1}|z_l), \quad p(z) = p(z_L) \prod_l p(z_l|z_{l+1}), \quad
              p(z_L) = N(0, I)

    Everything that is generated is decoded from :math:`z_1`. For everybody else z is one vector, its layers side by
    side; an aggregate fitted to it is a density over all layers.

    Args:
        latent: The layers.
        modalities: What is decoded, by name.
        decoders: A network [B, D_1] -> parameters of p(x_m | z_1) for each modality.
        image: Name of the image that z is inferred from.
        encoder: A network [B, C, H, W] -> [B, F].
        first: From those features to q(z_1|x).
        upwards: From z_l to q(z_{l+1}|z_l), L - 1 of them.
        downwards: From z_{l+1} to p(z_l|z_{l+1}), L - 1 of them.
    """

    settings = HierarchicalSettings

    def __init__(
        self,
        latent: LatentSpace,
        modalities: dict[str, Modality],
        decoders: dict[str, nn.Module],
        image: str,
        encoder: nn.Module,
        first: nn.Module,
        upwards: Sequence[nn.Module],
        downwards: Sequence[nn.Module],
    ) -> None:
        super().__init__()
        self.latent = latent
        self.modalities = modalities
        self.decoders = nn.ModuleDict(decoders)
        self.image = image
        self.encoder = encoder
        self.first = first
        self.upwards = nn.ModuleList(upwards)
        self.downwards = nn.ModuleList(downwards)

    @classmethod
    def complete_settings(
        cls, settings: HierarchicalSettings, demands: Demands, data: DataSettings
    ) -> HierarchicalSettings:
        """Return the settings with a text network if text is generated, and sizes that suit the images."""
        filled: dict[str, Any] = {}
        if "text" in demands.generates:
            filled["text_network"] = settings.text_network or TextNetwork()
        if settings.image_network.keys() == {"name"} and data.image is not None:
            network = mmgen.networks.get(settings.image_network["name"]).settings_for_sides(data.image.shape[1:])
            filled["image_network"] = settings.image_network | network
        return settings.model_copy(update=filled)

    @classmethod
    def build(cls, settings: HierarchicalSettings, demands: Demands, data: DataSettings) -> "HierarchicalVAE":
        available = available_modalities(data, {"image": settings.image_likelihood}, demands.modalities)
        inputs = sorted(demands.posteriors)
        image = available[inputs[0][0]] if len(inputs) == 1 and len(inputs[0]) == 1 else None
        if not isinstance(image, Image) or demands.conditions_on or "subsets" in demands.needs:
            asked = " and ".join(f"q(z | {', '.join(one)})" for one in inputs)
            raise SettingsError(
                f"model hierarchical-vae infers z from one image alone, but the objective asks for {asked}"
                f"{' and conditions on ' + demands.conditions_on[0] if demands.conditions_on else ''}; "
                "use elbo or iwae given the image, or model multimodal-vae"
            )
        network: ImageNetwork = build_member(mmgen.networks, settings.image_network, "model.image_network")
        sizes, activation = settings.latent_sizes, ACTIVATIONS[settings.activation]
        _check_settings(settings)

        def make_layer_network(inputs: int, outputs: int) -> nn.Module:
            return GaussianHead(dense_layers([inputs, *settings.hidden, 2 * outputs], activation))

        own = {
            "image": network,
            "attributes": settings.attribute_network,
            "text": settings.text_network or TextNetwork(),
        }
        generated = {name: available[name] for name in demands.generates}
        widths = dict.fromkeys(generated, sizes[0])
        modalities, decoders = make_decoders(widths, generated, networks_by_kind(data, own, {}))
        encoder, features = network.encoder(image.shape)
        named = {"z": sizes[0]} if len(sizes) == 1 else {f"z{number}": size for number, size in enumerate(sizes, 1)}
        return cls(
            LatentSpace(named),
            modalities,
            decoders,
            image.name,
            encoder,
            GaussianHead(dense_layers([features, 2 * sizes[0]])),
            [make_layer_network(lower, upper) for lower, upper in pairwise(sizes)],
            [make_layer_network(upper, lower) for lower, upper in pairwise(sizes)],
        )

    def has_posterior(self, inputs: Inputs) -> bool:
        return inputs in ((), (self.image,))

    def posterior(self, batch: Batch, inputs: Inputs) -> Posterior:
        return self._posterior_chain(batch, inputs)

    def _posterior_chain(self, batch: Batch, inputs: Inputs) -> "_Chain":
        """Return q(z | image), layer by layer upwards; p(z) if there are no inputs."""
        if not inputs:
            return self._prior_chain(batch.size, like=next(self.parameters()))
        if not self.has_posterior(inputs):
            raise UsageError(
                f"this model has no inference network for q(z | {', '.join(inputs)}); "
                "fit one afterwards with mmgen fit-aggregate"
            )
        if self.image not in batch.values:
            raise UsageError(
                f"the posterior given {self.image} needs {self.image}, which the batch does not hold; add it to the "
                "batch"
            )
        lowest: DiagonalGaussian = self.first(self.encoder(batch.values[self.image]))
        return _Chain(self.latent, lowest, list(self.upwards))

    def _prior_chain(self, *shape: int, like: Tensor) -> "_Chain":
        """Return p(z), layer by layer downwards, for leading axes ``shape``."""
        top = DiagonalGaussian.standard(*shape, self.latent.layers[self.latent.top], like=like)
        return _Chain(self.latent, top, list(self.downwards)[::-1], downwards=True)

    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        """Return q of the top layer given one draw of those below; without inputs p(z) is drawn."""
        q = self._posterior_chain(batch, inputs)
        drawn = q.sample(generator)
        layers = {name: DiagonalGaussian(z, torch.full_like(z, _DRAWN)) for name, z in self.latent.split(drawn).items()}
        if inputs:
            layers[self.latent.top] = q.layer_gaussians(drawn)[self.latent.top]
        mean = self.latent.join({name: layer.mean for name, layer in layers.items()})
        return DiagonalGaussian(mean, self.latent.join({name: layer.log_sd for name, layer in layers.items()}))

    def means(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> Tensor:
        q = self._posterior_chain(batch, inputs)
        return self.latent.join({name: layer.mean for name, layer in q.layer_gaussians(q.sample(generator)).items()})

    def sample_lower_layers(self, top: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return self._prior_chain(*top.shape[:-1], like=top).sample_from(top, generator)

    def log_prob_lower_layers(self, z: Tensor) -> Tensor:
        layers, prior = self.latent.split(z), self._prior_chain(*z.shape[:-1], like=z).layer_gaussians(z)
        terms = [q.log_prob(layers[name]) for name, q in prior.items() if name != self.latent.top]
        return torch.stack(terms).sum(0) if terms else z.new_zeros(z.shape[:-1])

    def log_prior(self, z: Tensor) -> Tensor:
        return self._prior_chain(*z.shape[:-1], like=z).log_prob(z)

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return self._run_decoder(name, next(iter(self.latent.split(z).values())))

    def inference_parameters(self) -> list[nn.Parameter]:
        return [p for part in (self.encoder, self.first, self.upwards) for p in part.parameters()]

    def trace(
        self, batch: Batch, inputs: Inputs, samples: int | None = None, names: Sequence[str] | None = None
    ) -> Trace:
        up, down = self._posterior_chain(batch, inputs), self._posterior_chain(batch, ())
        z = up.sample(None, () if samples is None else (samples,))
        inferred, generated = up.layer_gaussians(z), down.layer_gaussians(z)
        layers = self.latent.split(z)
        ratio = {name: generated[name].log_prob(z_l) - inferred[name].log_prob(z_l) for name, z_l in layers.items()}
        # Only the top's divergence has a closed form given what is below: lower priors depend on draws above them.
        cost = {name: -term for name, term in ratio.items()}
        cost[self.latent.top] = inferred[self.latent.top].kl(generated[self.latent.top])
        likelihood = {
            name: self.log_likelihood(name, z, batch) for name in (self.generates if names is None else names)
        }
        return Trace(z, likelihood, divergence=cost, log_ratio=ratio)


def _check_settings(settings: HierarchicalSettings) -> None:
    """Refuse settings of networks between layers of z for a model of one layer, which has none."""
    usual = HierarchicalSettings()
    for name in ("hidden", "activation"):
        if len(settings.latent_sizes) == 1 and getattr(settings, name) != getattr(usual, name):
            raise SettingsError(
                f"model.{name} sets networks between layers of z, but model.latent_sizes has one layer; leave it out"
            )


@dataclass(frozen=True)
class _Chain:
    """Joint density of all layers of z, in which the Gaussian of each layer depends on the layer before it.

    Attributes:
        latent: The layers.
        start: The first of the chain [..., D_l].
        steps: Networks from each layer of the chain to the Gaussian of the next.
        downwards: Whether the chain starts at the top.
    """

    latent: LatentSpace
    start: DiagonalGaussian
    steps: Sequence[nn.Module]
    downwards: bool = False

    @property
    def _layer_order(self) -> list[str]:
        """Names of the layers in the order in which they are drawn."""
        return list(self.latent.layers)[:: -1 if self.downwards else 1]

    def sample(self, generator: torch.Generator | None = None, shape: tuple[int, ...] = ()) -> Tensor:
        """Draw z of all layers, reparameterised, [*shape, B, D]."""
        return self.sample_from(self.start.sample(generator, shape), generator)

    def sample_from(self, start: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return z [..., D] whose first drawn layer is ``start`` [..., D_l]; the other layers are drawn in order."""
        first, *rest = self._layer_order
        layers, before = {first: start}, first
        for name, network in zip(rest, self.steps, strict=True):
            q: DiagonalGaussian = network(layers[before])
            layers[name], before = q.sample(generator), name
        return self.latent.join(layers)

    def layer_gaussians(self, z: Tensor) -> dict[str, DiagonalGaussian]:
        """Return the Gaussian of each layer by name, given the layer before it in z [..., B, D]."""
        layers = self.latent.split(z)
        first, *rest = self._layer_order
        found, before = {first: self.start}, first
        for name, network in zip(rest, self.steps, strict=True):
            found[name], before = network(layers[before]), name
        return found

    def log_prob(self, z: Tensor) -> Tensor:
        """Return the log density of z [..., B, D] over all layers, in nats [..., B]."""
        layers = self.latent.split(z)
        terms = [q.log_prob(layers[name]) for name, q in self.layer_gaussians(z).items()]
        return torch.stack(terms).sum(0)

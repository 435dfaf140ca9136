"""The multimodal variational autoencoder p(z) prod_m p(x_m | z) with its inference networks.

References:
    Generative Models of Visually Grounded Imagination (Vedantam, Fischer, Huang, Murphy, 2018), arXiv:1705.10762
"""

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor, nn

import mmgen.inference
import mmgen.networks
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import Inference, InferenceParts, Inputs, Unit
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.mixture import GaussianMixture
from mmgen.latent.space import LatentSpace
from mmgen.latent.trace import Trace
from mmgen.modalities import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.models._base import Demands
from mmgen.models._gaussian_model import GaussianModel
from mmgen.models._parts import available_modalities, make_decoders, networks_by_kind
from mmgen.models._prior import LearnedPrior
from mmgen.models._settings import DataSettings, MultimodalSettings
from mmgen.networks import AttributeDecoder, GridReader, ImageNetwork, SharedDecoder, TextNetwork
from mmgen.settings.config import build_member

__all__ = ["MultimodalVAE"]


class MultimodalVAE(GaussianModel):
    """Multimodal VAE: one z, from which any set of modalities is decoded and which any of them may encode.

    Args:
        latent: Space of z, a vector or a grid.
        modalities: What is decoded, by name.
        decoders: A network [B, D] -> parameters of p(x_m | z) for each modality; one that is conditional takes
            [B, D + description] (see ``condition``).
        inference: q(z | any answered set of modalities).
        condition: For a conditional model p(x | z, y): the attributes or text y that its decoders also see. y is then
            no observation, so p(z | y) = p(z), unless a prior is learned.
        condition_encoder: The network from text y to what decoders see; None for attributes.
        shared: A network that z passes before decoders; None where all of them see z itself.
        sharing: Names of the modalities whose decoders come after ``shared``; None for all.
        learned_prior: The network from the features of y to p(z | y); None for N(0, I).
    """

    settings = MultimodalSettings

    def __init__(
        self,
        latent: LatentSpace,
        modalities: dict[str, Modality],
        decoders: dict[str, nn.Module],
        inference: Inference,
        condition: Attributes | Text | None = None,
        shared: nn.Module | None = None,
        sharing: Collection[str] | None = None,
        condition_encoder: nn.Module | None = None,
        learned_prior: LearnedPrior | None = None,
    ) -> None:
        super().__init__()
        self.latent = latent
        self.modalities = modalities
        self.decoders = nn.ModuleDict(decoders)
        self.inference = inference
        self.condition, self.condition_encoder = condition, condition_encoder
        self.shared = shared
        self.learned_prior = learned_prior
        self.sharing = modalities.keys() if sharing is None else sharing

    @classmethod
    def complete_settings(
        cls, settings: MultimodalSettings, demands: Demands, data: DataSettings
    ) -> MultimodalSettings:
        """Return the settings with the objective's usual inference, text networks and sizes that fit the data."""
        filled: dict[str, Any] = {"inference": settings.inference or demands.inference}
        if "private latents" in demands.needs and not settings.private_sizes and isinstance(settings.latent_size, int):
            filled["private_sizes"] = dict.fromkeys(demands.generates, max(1, settings.latent_size // 2))
        if "text" in demands.modalities:
            filled["text_network"] = settings.text_network or TextNetwork()
        if settings.image_network.keys() == {"name"}:  # nothing was said of its sizes: they follow the images
            sides = [side for image in data.images.values() for side in image.shape[1:]]
            network = mmgen.networks.get(settings.image_network["name"]).settings_for_sides(sides)
            filled["image_network"] = settings.image_network | network
        return settings.model_copy(update=filled)

    @classmethod
    def build(cls, settings: MultimodalSettings, demands: Demands, data: DataSettings) -> "MultimodalVAE":
        # What there is: networks by their settings, modalities by the data.
        latent = settings.latent_space()
        _check_private(settings, latent, demands)
        grid = latent.single_grid
        image_network: ImageNetwork = build_member(mmgen.networks, settings.image_network, "model.image_network")
        joint_image_network: ImageNetwork = build_member(
            mmgen.networks, settings.joint_image_network or settings.image_network, "model.joint_image_network"
        )
        own = {
            "image": image_network.on_places(grid),
            "attributes": settings.attribute_network,
            "text": settings.text_network or TextNetwork(),
        }
        networks = networks_by_kind(data, own, settings.networks)
        needed = demands.modalities
        available = available_modalities(data, {"image": settings.image_likelihood}, needed)
        _check_split(settings, demands, available)

        # Decoders, from z or from what they share.
        condition = available[demands.conditions_on[0]] if demands.conditions_on else None
        condition_encoder, described = None, 0
        if isinstance(condition, Text):
            condition_encoder, described = condition.encoder(networks["text"])
        elif isinstance(condition, Attributes):
            described = condition.description_size
        elif condition is not None:
            raise SettingsError(
                f"the objective conditions on {condition.name}, expected attributes or text; name them in "
                "objective.description"
            )
        shared, outputs = _build_shared(settings)
        generated = {name: available[name] for name in demands.generates}
        sharing = [name for name, each in generated.items() if grid is None or not isinstance(each, Image)]
        inputs = {
            name: outputs if name in sharing and shared is not None else latent.size_seen_by(name) for name in generated
        }
        modalities, decoders = make_decoders(
            {name: size + described for name, size in inputs.items()}, generated, networks
        )

        # Inference, with a network for each posterior that is asked for.
        parts = InferenceParts(
            latent=latent,
            modalities={name: modality for name, modality in available.items() if name in needed},
            networks=networks,
            hidden=settings.hidden,
            activation=settings.activation,
            head_layers=settings.head_layers,
            joint_image_network=joint_image_network.on_places(grid),
            shared=settings.shared,
        )
        inference: Inference = mmgen.inference.get(settings.inference or demands.inference)(parts, demands.posteriors)
        _check_inference(settings.inference or demands.inference, inference, demands, latent)
        if settings.prior is not None and not described:
            raise SettingsError(
                f"model.prior got settings, but nothing that decoders see: the objective generates "
                f"{', '.join(demands.generates)} from z alone; leave it out, or use objective cvae"
            )
        prior = None if settings.prior is None else LearnedPrior(latent.size, described, settings.prior)
        kind = MixtureVAE if inference.mixes else cls
        return kind(latent, modalities, decoders, inference, condition, shared, sharing, condition_encoder, prior)

    @property
    def conditional_on(self) -> tuple[str, ...]:
        """Names of the modalities that decoders get besides z: () except for a CVAE."""
        return (self.condition.name,) if self.condition else ()

    @property
    def prior_reads(self) -> tuple[str, ...]:
        return self.conditional_on if self.learned_prior is not None else ()

    @property
    def capabilities(self) -> frozenset[str]:
        found = super().capabilities | ({"subsets"} if self.inference.any_subset else set())
        found |= {"private latents"} if self.latent.owners else set()
        networks = [self.decoders[name] for name in self.decoded_attributes()]
        split = networks and all(isinstance(each, AttributeDecoder) for each in networks)
        return found | {"split attributes"} if split and self.condition is None and self.shared is None else found

    def has_posterior(self, inputs: Inputs) -> bool:
        """Return True if :meth:`posterior` supports these inputs."""
        return not inputs or inputs == self.conditional_on or self.inference.has_posterior(inputs)

    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian:
        """Return q(z | inputs) [B, D]; the prior if there are no inputs, or only the condition of a conditional model.

        Raises:
            UsageError: The model has no such inference network.
        """
        if not inputs or inputs == self.conditional_on:
            return self.prior(batch)  # type: ignore[return-value]  # a mixture is one of posterior_of too
        return self.inference.posterior(batch, inputs)

    def prior(self, batch: Batch) -> DiagonalGaussian | GaussianMixture:
        if self.learned_prior is None:
            return super().prior(batch)
        prior: DiagonalGaussian | GaussianMixture = self.learned_prior(self._describe(batch, "z"))
        return prior

    def log_prior(self, z: Tensor) -> Tensor:
        if self.learned_prior is not None:
            raise UsageError("the prior of this model depends on the words; use prior(batch).log_prob(z)")
        return super().log_prior(z)

    def posteriors(self, batch: Batch, queries: Sequence[Inputs]) -> list[DiagonalGaussian]:
        return self.inference.posteriors(batch, queries)

    def subset_posteriors(
        self, batch: Batch, units: Sequence[Unit], membership: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        return self.inference.infer_subsets(batch, units, membership)

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        """Return the parameters of p(x_name | z) [..., *event] for z [..., D]; for text a context [..., F] of its
        words.

        Args:
            name: The modality.
            z: Latents; leading axes are free, the last of them being B where ``condition`` is used.
            condition: For a conditional model, the descriptions [B] that it is conditioned on.
        """
        if name not in self.decoders:
            raise UsageError(f"this model does not generate {name}; it generates {', '.join(self.decoders)}")
        flat = self.latent.seen_by(name, z.reshape(-1, z.shape[-1]))
        if self.shared is not None and name in self.sharing:
            flat = self.shared(flat)
        if self.condition:
            description = self._describe(condition, name)
            spread = description.to(flat.dtype).expand(*z.shape[:-1], description.shape[-1])
            flat = torch.cat([flat, spread.reshape(-1, description.shape[-1])], -1)
        parameters: Tensor = self.decoders[name](flat)
        return parameters.reshape(*z.shape[:-1], *parameters.shape[1:])

    def _describe(self, condition: Batch | None, name: str) -> Tensor:
        """Return the features of descriptions [B, F] from which ``name`` is generated; zeros for an absent text."""
        assert self.condition is not None
        if condition is None or self.condition.name not in condition.values:
            raise UsageError(
                f"this conditional model needs {self.condition.name} to generate {name}; give a description"
            )
        values, present = condition.values[self.condition.name], condition.present[self.condition.name]
        if isinstance(self.condition, Attributes):
            return self.condition.describe(values, present)
        assert self.condition_encoder is not None
        return self.condition.features(self.condition_encoder, values, present) * present[:, None]

    def log_likelihood_of_attribute(self, name: str, attribute: int, z: Tensor, batch: Batch) -> Tensor:
        """Return log p(y_k | z) in nats of attribute number k: z [K, B, D] or [B, D] -> [K, B] or [B]; 0 if it is
        unknown.

        Only that attribute's network runs; so every attribute must have one of its own.
        """
        decoder, modality = self.decoders[name], self.modalities[name]
        assert isinstance(decoder, AttributeDecoder) and isinstance(modality, Attributes)
        assert self.condition is None and self.shared is None
        flat = self.latent.seen_by(name, z.reshape(-1, z.shape[-1]))
        logits = decoder.logits_of_attribute(flat, attribute).reshape(*z.shape[:-1], -1)
        return modality.log_prob_of_attribute(logits, attribute, batch.values[name], batch.present[name])

    @property
    def generates(self) -> tuple[str, ...]:
        return tuple(self.decoders)

    def inference_parameters(self) -> list[nn.Parameter]:
        return list(self.inference.parameters())

    def generative_networks(self) -> list[nn.Module]:
        further = (self.shared, self.condition_encoder, self.learned_prior)
        return [self.decoders, *(network for network in further if network is not None)]


class MixtureVAE(MultimodalVAE):
    """Multimodal VAE whose posterior given several modalities is a mixture of Gaussians.

    Objectives see its parts (:meth:`subset_posteriors`); whatever reads a trained model draws from the mixture. A
    density is fitted to the parts that know most: MoPoE's product of all modalities, any expert of MMVAE.
    """

    @property
    def capabilities(self) -> frozenset[str]:
        return super().capabilities - {"gaussian"} | {"mixture"}

    def posterior(self, batch: Batch, inputs: Inputs) -> DiagonalGaussian | GaussianMixture:  # type: ignore[override]  # no Gaussian is promised: see capabilities
        subsets = self.inference.mixed_subsets(inputs) if inputs else []
        if len(subsets) < 2:
            return super().posterior(batch, inputs)
        every = self.inference.posteriors(batch, subsets)
        held = torch.stack([torch.stack([batch.known(name) for name in subset]).all(0) for subset in subsets])
        parts = [torch.stack([getattr(one, part) for one in every]) for part in ("mean", "log_sd")]
        return GaussianMixture.even(DiagonalGaussian(*parts), held)

    def encode(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> DiagonalGaussian:
        q = self.posterior(batch, inputs)
        if not isinstance(q, GaussianMixture):
            return q
        sizes = torch.tensor([len(part) for part in self.inference.mixed_subsets(inputs)], device=q.log_weights.device)
        sizes = torch.where(q.log_weights.isfinite(), sizes[:, None], 0)  # [K, B]
        return GaussianMixture.even(q.parts, sizes == sizes.amax(0)).choose(generator)

    def means(self, batch: Batch, inputs: Inputs, generator: torch.Generator | None = None) -> Tensor:
        return self.posterior(batch, inputs).mean

    def trace(
        self, batch: Batch, inputs: Inputs, samples: int | None = None, names: Sequence[str] | None = None
    ) -> Trace:
        q = self.posterior(batch, inputs)
        if not isinstance(q, GaussianMixture):
            return super().trace(batch, inputs, samples, names)
        z = q.sample(None, () if samples is None else (samples,))
        ratio = self.log_prior(z) - q.log_prob(z)  # its divergence has no closed form
        likelihood = {
            name: self.log_likelihood(name, z, batch) for name in (self.generates if names is None else names)
        }
        return Trace(z, likelihood, divergence={"z": -ratio}, log_ratio={"z": ratio})


def _check_private(settings: MultimodalSettings, latent: LatentSpace, demands: Demands) -> None:
    """Refuse layers of z that belong to modalities which are not there, or that other settings leave no place for, and
    a z of which a decoder sees nothing.
    """
    blind = [name for name in demands.generates if not latent.size_seen_by(name)]
    if blind:
        raise SettingsError(
            f"model.latent_size got 0, so that modalities share nothing, but {blind[0]} has no z of its own; set "
            f"model.private_sizes.{blind[0]}=8 or so, or leave model.latent_size out"
        )
    if "private latents" in demands.needs and latent.shares_nothing:
        raise SettingsError(
            "model.latent_size got 0, but the objective infers what modalities share; give it 1 or more"
        )
    if not latent.owners:
        return
    strange = sorted(set(latent.owners.values()) - set(demands.generates))
    if strange:
        raise SettingsError(
            f"model.private_sizes got {strange[0]}, expected modalities that are generated, "
            f"{', '.join(demands.generates)}; name one of them"
        )
    for other, value in (
        ("latent_size", "a grid" if not isinstance(settings.latent_size, int) else ""),
        ("shared", "settings" if settings.shared else ""),
    ):
        if value:
            raise SettingsError(
                f"model.{other} got {value}, but decoders of models with model.private_sizes see parts of one flat z; "
                "leave one of both out"
            )


def _build_shared(settings: MultimodalSettings) -> tuple[nn.Module | None, int]:
    """Build the network between z and decoders (``model.shared``, or what reads words off a grid), and its outputs."""
    latent = settings.latent_space()
    grid = latent.single_grid
    if grid is None:
        shared = SharedDecoder(latent.size, settings.shared) if settings.shared else None
        return shared, shared.outputs if shared else latent.size
    if settings.shared:
        raise SettingsError(
            f"model.shared got settings, but networks that share layers lose the places of model.latent_size "
            f"{list(grid)}; leave model.shared out, or give a single number"
        )
    if settings.head_layers is not None:
        raise SettingsError(
            f"setting 'model.head_layers' got {settings.head_layers}, but heads keep the places of model.latent_size "
            f"{list(grid)} and have no such layers; leave it out"
        )
    return GridReader().build(grid)


def _check_split(settings: MultimodalSettings, demands: Demands, available: dict[str, Modality]) -> None:
    """Refuse single attributes as modalities if there are none, or if they share one network."""
    if "split attributes" not in demands.needs:
        return
    if not any(isinstance(available[name], Attributes) for name in demands.generates):
        raise SettingsError(
            f"objective.split_attributes got true, but none of the modalities {', '.join(demands.generates)} are "
            "attributes; leave it out, or name the attributes in objective.modalities"
        )
    if settings.attribute_network.experts != "each":
        raise SettingsError(
            "objective.split_attributes needs a network for each attribute, but model.attribute_network.experts is "
            f"'{settings.attribute_network.experts}'; set it to 'each'"
        )


def _check_inference(name: str, inference: Inference, demands: Demands, latent: LatentSpace) -> None:
    """Refuse an inference that lacks a posterior which the objective needs, or mixes where it needs Gaussians."""
    mixture = "mixture" in demands.needs
    if ("subsets" in demands.needs and not inference.any_subset) or inference.mixes != mixture:
        every = mmgen.inference.import_all()
        able = [key for key, member in every.items() if member.any_subset and member.mixes == mixture]
        needed = "posteriors that are mixtures" if mixture else "single Gaussians of every subset of modalities"
        needed = needed if "subsets" in demands.needs else "single Gaussians"
        ways = f"one of {', '.join(able)}" if "subsets" in demands.needs else f"'{demands.inference}'"
        raise SettingsError(f"model.inference got {name}, but the objective needs {needed}; use {ways}")
    missing = [inputs for inputs in sorted(demands.posteriors) if not inference.has_posterior(inputs)]
    if missing and inference.any_subset and latent.shares_nothing:
        raise SettingsError(
            f"model.latent_size got 0, so that modalities share nothing, but the objective needs a posterior given "
            f"{', '.join(missing[0])}; give it 1 or more, or use objective elbo with all modalities in objective.given"
        )
    if missing:
        raise SettingsError(
            f"inference '{name}' has no posterior given {', '.join(missing[0])}, which the objective needs; "
            f"use '{demands.inference}'"
        )

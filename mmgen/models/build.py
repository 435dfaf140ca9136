"""From settings to a model; the same settings give the same structure, which is how checkpoints are loaded."""

from typing import TYPE_CHECKING

import torch
from torch import nn

import mmgen.inference
import mmgen.likelihoods
import mmgen.networks
from mmgen.config import build_member
from mmgen.errors import SettingsError
from mmgen.inference._base import Inference, Parts
from mmgen.likelihoods._base import Likelihood
from mmgen.modalities._base import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.models._settings import (
    AttributesDescription,
    DataSettings,
    ImageDescription,
    ModelSettings,
    TextDescription,
)
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.networks._attributes import attribute_decoder
from mmgen.networks._base import ImageNetwork
from mmgen.networks._shared import SharedDecoder
from mmgen.networks._text import TextDecoder, TextNetwork

if TYPE_CHECKING:
    from mmgen.objectives._base import Objective

__all__ = ["build_model", "describe_attributes", "describe_text"]


def describe_attributes(description: AttributesDescription) -> Attributes:
    """The attribute modality that a description stands for."""
    return Attributes(description.name, description.names, description.values)


def describe_text(description: TextDescription, speaker: TextDecoder | None = None) -> Text:
    """The text modality that a description stands for; ``speaker`` is the decoder that makes its words."""
    return Text(description.name, description.vocabulary, description.length, description.slots, speaker)


def _image_likelihood(name: str) -> Likelihood:
    likelihood = mmgen.likelihoods.get(name)
    if not issubclass(likelihood, Likelihood):
        dense = [n for n, member in mmgen.likelihoods.importable().items() if issubclass(member, Likelihood)]
        raise SettingsError(
            f"model.image_likelihood got '{name}', which is no likelihood of images; expected one of {', '.join(dense)}"
        )
    made: Likelihood = likelihood()
    return made


def _available(settings: ModelSettings, data: DataSettings) -> dict[str, Modality]:
    """Every modality of the data, by name: the main image first."""
    likelihood = _image_likelihood(settings.image_likelihood)
    images: list[ImageDescription] = [image for image in (data.image, *data.further_images) if image is not None]
    every: list[Modality] = [Image(image.name, image.shape, likelihood) for image in images]
    if data.attributes:
        every.append(describe_attributes(data.attributes))
    if data.text:
        every.append(describe_text(data.text))
    return {modality.name: modality for modality in every}


def build_model(settings: ModelSettings, objective: "Objective", data: DataSettings) -> MultimodalVAE:
    """A freshly initialised model (from torch's global generator: seed it first).

    Raises:
        SettingsError: The settings do not fit each other or the data.
    """
    image_network: ImageNetwork = build_member(mmgen.networks, settings.image_network, "model.image_network")
    joint_image_network: ImageNetwork = build_member(
        mmgen.networks, settings.joint_image_network or settings.image_network, "model.joint_image_network"
    )
    attributes = describe_attributes(data.attributes) if data.attributes else None
    available = _available(settings, data)
    needed = objective.modalities_used
    lacking = sorted(set(needed) - available.keys())
    if lacking:
        raise SettingsError(
            f"the objective needs the modality {lacking[0]}, "
            f"but the dataset holds {', '.join(sorted(available)) or 'none'}; "
            "choose another objective or dataset"
        )
    text_network = settings.text_network or TextNetwork()
    parts = Parts(
        latent_size=settings.latent_size,
        modalities={name: modality for name, modality in available.items() if name in needed},
        image_network=image_network,
        attribute_network=settings.attribute_network,
        text_network=text_network,
        hidden=settings.hidden,
        activation=settings.activation,
        head_layers=settings.head_layers,
        joint_image_network=joint_image_network,
        shared=settings.shared,
    )
    condition = attributes if objective.conditions_on else None
    shared = SharedDecoder(settings.latent_size, settings.shared) if settings.shared else None
    inputs = (shared.outputs if shared else settings.latent_size) + (condition.description_size if condition else 0)
    modalities: dict[str, Modality] = {name: available[name] for name in objective.generates}
    decoders: dict[str, nn.Module] = {}
    for name, modality in modalities.items():
        if isinstance(modality, Image):
            decoders[name] = image_network.decoder(inputs, (modality.decoder_channels, *modality.shape[1:]))
        elif isinstance(modality, Text):
            assert data.text is not None
            speaker = TextDecoder(inputs, len(modality.vocabulary), text_network)
            decoders[name], modalities[name] = speaker, describe_text(data.text, speaker)
        else:
            assert isinstance(modality, Attributes)
            decoders[name] = attribute_decoder(inputs, modality.sizes, settings.attribute_network)
    inference_name = settings.inference or objective.default_inference
    inference: Inference = mmgen.inference.get(inference_name)(parts, objective.queries)
    if objective.any_subset and not inference.any_subset:
        able = [name for name, member in mmgen.inference.importable().items() if member.any_subset]
        raise SettingsError(
            f"inference '{inference_name}' has no posterior for every subset of modalities, which the objective needs; "
            f"use one of {', '.join(able)}"
        )
    if objective.splits_attributes and not any(isinstance(available[name], Attributes) for name in objective.generates):
        raise SettingsError(
            f"objective.split_attributes got true, but none of the modalities {', '.join(objective.generates)} are "
            "attributes; leave it out, or name the attributes in objective.modalities"
        )
    if objective.splits_attributes and settings.attribute_network.experts != "each":
        raise SettingsError(
            "objective.split_attributes needs a network for each attribute, but model.attribute_network.experts is "
            f"'{settings.attribute_network.experts}'; set it to 'each'"
        )
    missing = [given for given in objective.queries if not inference.answers(given)]
    if missing:
        raise SettingsError(
            f"inference '{inference_name}' has no posterior given {', '.join(missing[0])}, which the objective needs; "
            f"use '{objective.default_inference}'"
        )
    model = MultimodalVAE(settings.latent_size, modalities, decoders, inference, condition, shared)
    # Convolutions are 0 to 10 % faster with channels last, on CPUs and GPUs, and never slower.
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch stub lacks it

"""What models of any kind are made from: the modalities of the data, and a decoder for each."""

from collections.abc import Iterable

from torch import nn

import mmgen.likelihoods
from mmgen.errors import SettingsError
from mmgen.likelihoods._base import Likelihood
from mmgen.modalities._base import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.modalities.text import Text
from mmgen.models._settings import AttributesDescription, DataSettings, ImageDescription, TextDescription
from mmgen.networks._attributes import AttributeNetwork, attribute_decoder
from mmgen.networks._base import ImageNetwork
from mmgen.networks._text import TextDecoder, TextNetwork

__all__ = ["available_modalities", "decoders_for", "describe_attributes", "describe_text"]


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


def available_modalities(data: DataSettings, image_likelihood: str, needed: Iterable[str]) -> dict[str, Modality]:
    """Every modality of the data, by name: the main image first.

    Args:
        data: The modalities that there are.
        image_likelihood: p(image | z), by name.
        needed: Those that the objective looks at.

    Raises:
        SettingsError: One that is needed is missing, or the likelihood is none of images.
    """
    likelihood = _image_likelihood(image_likelihood)
    images: list[ImageDescription] = [image for image in (data.image, *data.further_images) if image is not None]
    every: list[Modality] = [Image(image.name, image.shape, likelihood) for image in images]
    if data.attributes:
        every.append(describe_attributes(data.attributes))
    if data.text:
        every.append(describe_text(data.text))
    available = {modality.name: modality for modality in every}
    lacking = sorted(set(needed) - available.keys())
    if lacking:
        raise SettingsError(
            f"the objective needs the modality {lacking[0]}, "
            f"but the dataset holds {', '.join(sorted(available)) or 'none'}; "
            "choose another objective or dataset"
        )
    return available


def decoders_for(
    inputs: int,
    modalities: dict[str, Modality],
    image_network: ImageNetwork,
    attribute_network: AttributeNetwork,
    text_network: TextNetwork,
) -> tuple[dict[str, Modality], dict[str, nn.Module]]:
    """A network [B, inputs] -> parameters of p(x_m | z) for each modality; texts get the one that makes their words.

    Args:
        inputs: Size of what decoders see.
        modalities: What is decoded, by name.
        image_network: Family of image networks.
        attribute_network: Widths of the networks over attributes.
        text_network: Widths of the networks over sentences.
    """
    decoders: dict[str, nn.Module] = {}
    decoded = dict(modalities)
    for name, modality in modalities.items():
        if isinstance(modality, Image):
            decoders[name] = image_network.decoder(inputs, (modality.decoder_channels, *modality.shape[1:]))
        elif isinstance(modality, Text):
            speaker = TextDecoder(inputs, len(modality.vocabulary), text_network)
            decoders[name], decoded[name] = speaker, modality.spoken_by(speaker)
        else:
            assert isinstance(modality, Attributes)
            decoders[name] = attribute_decoder(inputs, modality.sizes, attribute_network)
    return decoded, decoders

"""Settings of a model, and of the data that it was made for."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from mmgen.config import Settings
from mmgen.networks._attributes import AttributeNetwork
from mmgen.networks._shared import SharedNetwork
from mmgen.networks._text import TextNetwork

__all__ = [
    "AttributesDescription",
    "DataSettings",
    "ImageDescription",
    "ModelSettings",
    "MultimodalSettings",
    "TextDescription",
]

Count = Annotated[int, Field(ge=1)]


class ModelSettings(Settings):
    """Base of the settings of every kind of model."""

    name: str
    """The kind of model, a member of the room ``mmgen.models``."""
    initial_weights: Literal["default", "glorot"] = "default"
    """First weights of linear layers and convolutions: torch's own, or uniform as Glorot and Bengio (2010) for tanh,
    with biases of 0."""
    output_bias: Literal["default", "mean"] = "default"
    """First bias at the outputs of image decoders: as all others, or such that an untrained model says the mean
    training image (Burda et al., 2016)."""
    l2_attributes_decoder: Annotated[float, Field(ge=0)] = 0.0
    """lambda of a term lambda / 2 |w|^2 of the weight matrices of p(y|z), y the attributes, in training (VE Appendix
    A.4), besides ``training.weight_decay``."""


class MultimodalSettings(ModelSettings):
    """Sizes and members of a multimodal VAE."""

    name: Literal["multimodal-vae"] = "multimodal-vae"
    """The kind of model."""
    latent_size: Count = 10
    """D, dimensions of z (VE: 10 for MNIST-A)."""
    inference: str | None = None
    """How posteriors are composed; left out, what the objective is made for."""
    image_network: dict[str, Any] = Field(default_factory=lambda: {"name": "strided"})
    """Family of image networks by name, and its own settings; all image modalities get one of the family."""
    joint_image_network: dict[str, Any] | None = None
    """Image network inside q(z | image, description), where that is a network of its own; left out, image_network."""
    attribute_network: AttributeNetwork = Field(default_factory=AttributeNetwork)
    """Widths of the networks over attributes."""
    text_network: TextNetwork | None = None
    """Widths of the networks over sentences, where there is text; left out, those of the paper."""
    shared: SharedNetwork | None = None
    """Networks next to z that modalities share (CK Section 5.1); left out, each modality has its own."""
    hidden: Count = 512
    """Width of the layers that join features."""
    head_layers: Annotated[int, Field(ge=0)] | None = None
    """Hidden layers between the features of one modality and its Gaussian: left out, two for images and one for text
    (VE Appendix A.4); 0 for WG's networks."""
    activation: Literal["elu", "relu", "silu"] = "elu"
    """Non-linearity of the layers that join features."""
    image_likelihood: str = "bernoulli"
    """p(image | z)."""

    @field_validator("image_network", "joint_image_network")
    @classmethod
    def _named(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        """Settings without a name are those of the default family."""
        return None if value is None else {"name": "strided", **value}


class ImageDescription(Settings):
    """The image modality that a model was built for."""

    name: str = "image"
    shape: tuple[Count, Count, Count]
    """(C, H, W)."""
    layout: Literal["bits", "bytes", "probabilities"]
    """How pixels are stored; probabilities are drawn black or white anew at every sight."""


class AttributesDescription(Settings):
    """The attribute modality that a model was built for."""

    name: str = "attributes"
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


class TextDescription(Settings):
    """The text modality that a model was built for."""

    name: str = "text"
    vocabulary: tuple[str, ...]
    """The V words."""
    length: Count
    """T, words in the longest sentence."""
    slots: tuple[str, ...] = ()
    """Attribute that each position spells, length T; empty for free text."""


class DataSettings(Settings):
    """Which data: filled in from the dataset file, so that a checkpoint explains itself."""

    split: str = "iid"
    """Split scheme that is trained on; validation and test follow it."""
    paired: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the training examples that stay whole; the others are taken apart into their modalities and shuffled
    (WG Section 5.1). Validation and test stay whole."""
    paired_drawn: Annotated[float, Field(gt=0, lt=1)] | None = None
    """Least share of whole examples among those drawn in training, where few are paired; left out, every row is drawn
    equally often, as WG do."""
    image: ImageDescription | None = None
    """The main picture: the modality called "image", else the first one."""
    further_images: tuple[ImageDescription, ...] = ()
    """All other image modalities, such as views of the main one."""
    attributes: AttributesDescription | None = None
    text: TextDescription | None = None

"""Settings of a model, and of the data that it was made for."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from mmgen.config import Settings
from mmgen.networks._attributes import AttributeNetwork

__all__ = ["AttributesDescription", "DataSettings", "ImageDescription", "ModelSettings"]

Count = Annotated[int, Field(ge=1)]


class ModelSettings(Settings):
    """Sizes and members of a model."""

    latent_size: Count = 10
    """D, dimensions of z (VE: 10 for MNIST-A)."""
    inference: str | None = None
    """How posteriors are composed; left out, what the objective is made for."""
    image_network: dict[str, Any] = Field(default_factory=lambda: {"name": "strided"})
    """Family of image networks by name, and its own settings."""
    attribute_network: AttributeNetwork = Field(default_factory=AttributeNetwork)
    """Widths of the networks over attributes."""
    hidden: Count = 512
    """Width of the layers that join features."""
    image_likelihood: str = "bernoulli"
    """p(image | z)."""

    @field_validator("image_network")
    @classmethod
    def _named(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Settings without a name are those of the default family."""
        return {"name": "strided", **value}


class ImageDescription(Settings):
    """The image modality that a model was built for."""

    name: str = "image"
    shape: tuple[Count, Count, Count]
    """(C, H, W)."""
    layout: Literal["bits", "bytes"]
    """How pixels are stored."""


class AttributesDescription(Settings):
    """The attribute modality that a model was built for."""

    name: str = "attributes"
    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


class DataSettings(Settings):
    """Which data: filled in from the dataset file, so that a checkpoint explains itself."""

    split: str = "iid"
    """Split scheme that is trained on; validation and test follow it."""
    image: ImageDescription | None = None
    attributes: AttributesDescription | None = None

"""What a trained model knows of its data: the specifications of modalities."""

from mmgen.modalities import Description
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.training.model_run import ExperimentSettings


class ModelData:
    """Base of what has the settings of a model: the specifications of its data.

    Attributes:
        settings: The model's settings.
    """

    settings: ExperimentSettings

    @property
    def attributes(self) -> AttributesDescription | None:
        """Names of the attributes of the data and of their values; None if the data have none."""
        return self.settings.data.attributes

    @property
    def image(self) -> ImageDescription | None:
        """Name, shape and pixels of the main image modality; None if the data have no images."""
        return self.settings.data.image

    @property
    def images(self) -> dict[str, ImageDescription]:
        """Specifications of the image modalities of the data by name, the main one first."""
        return self.settings.data.images

    @property
    def observation(self) -> Description | None:
        """Specification of the main modality, which descriptions describe; None for data of words only."""
        return self.settings.data.observation

    @property
    def observed(self) -> dict[str, Description]:
        """Specifications of all modalities except words by name, the main one first."""
        return self.settings.data.observed

    @property
    def text(self) -> TextDescription | None:
        """Vocabulary and length of captions; None if the data have none."""
        return self.settings.data.text

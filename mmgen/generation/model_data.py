"""What a trained model was made from: its files, and the specifications of its data."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from mmgen.artifacts import Header, find_parent
from mmgen.artifacts.header import describe_changed_members
from mmgen.modalities import Description
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models import Model
from mmgen.posteriors import posterior_to_aggregate
from mmgen.training.model_run import ExperimentSettings
from mmgen.training.state import describe_interruption


class TrainedSharpener(NamedTuple):
    """Trained network that adds detail to pictures [B, C, H, W] of the modality ``network.image``, and its file."""

    network: Any
    path: Path
    header: Header


class ModelData:
    """Base of trained models: files, networks, and the specifications of the data.

    Attributes:
        path: The loaded file: the model, or a posterior fitted to it.
        header: Its header.
        model_path, model_header: The model's own checkpoint, and its header.
        settings: The model's settings.
        model: The model, in evaluation mode.
        device: Where the networks are.
        sharpener: Network that adds detail to the main picture, with its file; None without one.
    """

    path: Path
    header: Header
    model_path: Path
    model_header: Header
    settings: ExperimentSettings
    model: Model
    device: torch.device
    sharpener: TrainedSharpener | None = None

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

    @property
    def encoder_inputs(self) -> tuple[str, ...]:
        """Names of the modalities that the encoder read when the decoders were trained."""
        return posterior_to_aggregate(self.settings)

    @property
    def headers(self) -> dict[Path, Header]:
        """Headers of the model's files, as they were opened."""
        files = {self.path: self.header, self.model_path: self.model_header}
        return files | ({} if self.sharpener is None else {self.sharpener.path: self.sharpener.header})

    @property
    def notices(self) -> list[str]:
        """Warnings about the model's files, such as an interrupted training or a changed plug-in."""
        notices = [describe_interruption(path) for path in self.headers]
        notices += [
            notice for path, header in self.headers.items() for notice in describe_changed_members(path, header.members)
        ]
        return [notice for notice in notices if notice]

    def dataset_path(self) -> Path:
        """Return the path of the dataset that the model was trained on.

        Raises:
            MissingParentError: It is gone; the message names the command that makes it.
        """
        return find_parent(self.model_path, "dataset")

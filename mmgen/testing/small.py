"""Small data, models and batches for the checks of members."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch

import mmgen.modalities
import mmgen.networks
from mmgen.codecs import Pixels
from mmgen.core.batch import Batch
from mmgen.core.worlds import import_added
from mmgen.inference import InferenceParts
from mmgen.latent.space import LatentSpace
from mmgen.modalities import Description, View
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.models import DataSettings, ModelSettings, MultimodalSettings
from mmgen.models.autoencoder import AutoencoderSettings
from mmgen.models.semi_supervised_vae import SemiSupervisedSettings
from mmgen.networks import AttributeNetwork, TextNetwork
from mmgen.settings.config import build_member

SMALL_DATA = DataSettings.from_descriptions(
    ImageDescription(shape=(1, 16, 16), layout="bits"),
    AttributesDescription(names=("digit", "size"), values=(("0", "1", "2"), ("big", "small"))),
)
"""Black and white images of 16 by 16 pixels, and two attributes."""

SMALL_MODEL = MultimodalSettings(
    latent_size=3,
    hidden=16,
    image_network={"name": "mlp", "hidden": (16,)},
    attribute_network=AttributeNetwork(embedding=4, hidden=8, decoder_hidden=8),
)

SMALL_PRIVATE = SMALL_MODEL.model_copy(update={"private_sizes": {"image": 2, "attributes": 1}})

SMALL_AUTOENCODER = AutoencoderSettings(
    codec=Pixels(), noise=0.2, attribute_network=AttributeNetwork(embedding=4, hidden=8, decoder_hidden=8)
)

SMALL_LABELLED = SemiSupervisedSettings(latent_size=3, image_network={"name": "mlp", "hidden": (16,)}, hidden=(8,))


def small_batch(size: int = 5) -> Batch:
    """Return a batch of ``size`` examples of :data:`SMALL_DATA`, all values present."""
    generator = torch.Generator().manual_seed(1)
    return Batch(
        {
            "image": (torch.rand(size, 1, 16, 16, generator=generator) < 0.3).float(),
            "attributes": torch.stack([torch.arange(size) % 3, torch.arange(size) % 2], 1),
        },
        {"image": torch.ones(size, dtype=torch.bool), "attributes": torch.ones(size, 2, dtype=torch.bool)},
    )


def example_batch(described: Description, count: int = 5) -> Batch:
    """Return the example rows of a specification of a modality as a batch."""
    _, stored = type(described).example(count)
    values, present = described.tensors(
        torch.from_numpy(described.torch_rows(stored)), View(lambda: torch.arange(count), (0,))
    )
    return Batch({described.name: values}, {described.name: present})


@dataclass(frozen=True)
class Case:
    """Small data, a batch of them and model settings, for checks.

    Attributes:
        data: What there is.
        batch: Some examples of it.
        inputs: What posteriors are given.
        generates: What is generated, as far as a member can; the first of them by all.
        model: A model of it by its settings.
    """

    data: DataSettings
    batch: Callable[[], Batch]
    inputs: tuple[str, ...]
    generates: tuple[str, ...]
    model: ModelSettings


CASES = (
    Case(SMALL_DATA, small_batch, ("image",), ("image", "attributes"), SMALL_MODEL),
    Case(SMALL_DATA, small_batch, ("image",), ("image", "attributes"), SMALL_LABELLED),
    Case(SMALL_DATA, small_batch, ("image",), ("image", "attributes"), SMALL_AUTOENCODER),
    Case(SMALL_DATA, small_batch, ("image",), ("image", "attributes"), SMALL_PRIVATE),
)
"""Every member is tried on the first that suits it, or on one of a world beside the core: ``CASES`` in its
``testing/cases.py``."""


def small_cases() -> list[Case]:
    """Return :data:`CASES`, those of worlds, and one with attributes for every other kind that has an example."""
    found = [*CASES, *(case for world in import_added("mmgen.testing", "cases") for case in world.CASES)]
    for kind, member in mmgen.modalities.import_all().items():
        if kind == "image" or member.describes or member.joins_rows:  # these have cases already
            continue
        described, _ = member.example()
        labels, _ = AttributesDescription.example()
        batch = partial(_add_attributes, described, labels)
        names = (described.name, labels.name)
        found.append(Case(DataSettings.from_descriptions(described, labels), batch, names[:1], names, SMALL_MODEL))
    return found


def _add_attributes(described: Description, labels: AttributesDescription) -> Batch:
    """Return a batch of a modality's example rows with random attributes beside them."""
    return example_batch(described) | example_batch(labels)


def inference_parts() -> InferenceParts:
    """Return the parts from which checks build an inference over :data:`SMALL_DATA`."""
    networks = {
        "image": build_member(mmgen.networks, SMALL_MODEL.image_network, "image_network"),
        "attributes": SMALL_MODEL.attribute_network,
        "text": TextNetwork(),
    }
    modalities = {name: each.modality() for name, each in SMALL_DATA.modalities.items()}
    return InferenceParts(LatentSpace.flat(3), modalities, networks, hidden=16)


@contextmanager
def refuses(error: type[Exception], words: str = "") -> Iterator[None]:
    """Check that the block raises ``error`` with ``words`` in its message."""
    try:
        yield
    except error as refusal:
        said: str | None = str(refusal)
    else:
        said = None
    assert said is not None, f"expected {error.__name__}, and nothing was refused"
    assert words in said, f"expected {words!r} in {said!r}"

"""Small data, models and batches that members are tried on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

import mmgen.networks
from mmgen.batch import Batch
from mmgen.config import build_member
from mmgen.inference._base import Parts
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.models._settings import DataSettings, MultimodalSettings
from mmgen.networks._attributes import AttributeNetwork
from mmgen.networks._text import TextNetwork

__all__ = ["SMALL_DATA", "SMALL_MODEL", "parts", "refuses", "small_batch"]

SMALL_DATA = DataSettings.of(
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


def small_batch(size: int = 5) -> Batch:
    """Examples of :data:`SMALL_DATA`, all there."""
    generator = torch.Generator().manual_seed(1)
    return Batch(
        {
            "image": (torch.rand(size, 1, 16, 16, generator=generator) < 0.3).float(),
            "attributes": torch.stack([torch.arange(size) % 3, torch.arange(size) % 2], 1),
        },
        {"image": torch.ones(size, dtype=torch.bool), "attributes": torch.ones(size, 2, dtype=torch.bool)},
    )


def parts() -> Parts:
    """What an inference over :data:`SMALL_DATA` is built from."""
    networks = {
        "image": build_member(mmgen.networks, SMALL_MODEL.image_network, "image_network"),
        "attributes": SMALL_MODEL.attribute_network,
        "text": TextNetwork(),
    }
    return Parts(3, {name: each.modality() for name, each in SMALL_DATA.modalities.items()}, networks, hidden=16)


@contextmanager
def refuses(error: type[Exception], words: str = "") -> Iterator[None]:
    """Make sure that what happens inside raises ``error``, and says ``words``."""
    try:
        yield
    except error as refusal:
        said: str | None = str(refusal)
    else:
        said = None
    assert said is not None, f"expected {error.__name__}, and nothing was refused"
    assert words in said, f"expected {words!r} in {said!r}"

"""Image: a picture [C, H, W] under a likelihood of dense data."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from mmgen.core.errors import ArtifactError
from mmgen.core.parsing import printable
from mmgen.modalities._base import ROWS, Description, Element, Modality, StoredArray, View, all_present
from mmgen.modalities._stored import element_json

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from mmgen.likelihoods import Likelihood
    from mmgen.networks import ImageNetwork

__all__ = ["ImageDescription"]


LAYOUTS = ("bits", "bytes", "probabilities")
Count = Annotated[int, Field(ge=1)]


class ImageDescription(Description):
    """Specification of pictures of one size, and of the storage of their pixels."""

    kind: Literal["image"] = "image"
    name: str = "image"
    shape: tuple[Count, Count, Count]
    """(C, H, W)."""
    layout: Literal["bits", "bytes", "probabilities"]
    """How pixels are stored: "bits" (0 or 1, eight to a byte), "bytes" (0 to 255), or "probabilities", bytes of which
    each is 255 times the probability that its pixel is white; those are drawn black or white anew in every view."""

    @property
    def scale(self) -> int:
        """Stored value of full intensity, or of a pixel that is white with certainty: 1 for bits, else 255."""
        return 1 if self.layout == "bits" else 255

    @property
    def pixels(self) -> int:
        """Number of values of a picture, C * H * W."""
        return math.prod(self.shape)

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Shape of one stored row: (ceil(C * H * W / 8),) for bits, else (C, H, W)."""
        return ((self.pixels + 7) // 8,) if self.layout == "bits" else self.shape

    def arrays(self) -> dict[str, StoredArray]:
        return {ROWS: StoredArray("uint8", self.stored_shape)}

    def text_attributes(self) -> dict[str, str]:
        return {"layout": self.layout, "shape": json.dumps(self.shape), "range": json.dumps([0, self.scale])}

    @classmethod
    def read(cls, name: str, element: Element) -> "ImageDescription":
        shape, layout = element_json(element, "shape"), element.text("layout")
        if not (isinstance(shape, list) and len(shape) == 3 and all(type(n) is int and 0 < n < 2**20 for n in shape)):
            raise ArtifactError(f"{element.location} has no shape [C, H, W]; make the file again")
        if layout not in LAYOUTS:
            raise ArtifactError(
                f"{element.location} has layout {printable(layout, 40)!r}, expected {', '.join(LAYOUTS)}; "
                "make the file again"
            )
        return cls.model_validate({"name": name, "shape": tuple(shape), "layout": layout})

    def find_fault(self, stored: np.ndarray, array: str = ROWS) -> str:
        unused = (1 << -self.pixels % 8) - 1 if self.layout == "bits" else 0
        return "the unused last bits are not 0" if unused and (stored[:, -1] & unused).any() else ""

    def unpack(self, stored: np.ndarray) -> np.ndarray:
        """Convert stored rows to uint8 pixels [n, C, H, W] with values from 0 to ``scale``."""
        if self.layout == "bits":
            stored = np.unpackbits(stored, axis=1, count=self.pixels)
        return stored.reshape(len(stored), *self.shape)

    def pack(self, images: np.ndarray) -> np.ndarray:
        """Convert uint8 pixels [n, C, H, W] with values from 0 to ``scale`` to stored rows, the inverse of
        :meth:`unpack`.
        """
        return np.packbits(images.reshape(len(images), -1), axis=1) if self.layout == "bits" else images

    def tensors(self, rows: "Tensor", view: View) -> tuple["Tensor", "Tensor"]:
        """Convert rows in memory to pixels float32 [B, C, H, W] from 0 to 1; pixels of probabilities are drawn."""
        if self.layout == "bits":
            return self.values_and_presence(unpack_bits(rows, self.shape))
        if self.layout == "bytes":
            return self.values_and_presence(rows.float() / 255.0)
        from mmgen.core.views import draw_pixels, view_key

        seed, *which = view.key
        return self.values_and_presence(draw_pixels(rows, view.rows(), view_key(seed, self.name, *which)))

    def values_and_presence(self, values: "Tensor") -> tuple["Tensor", "Tensor"]:
        """Return pixels float [B, C, H, W] from 0 to 1 unchanged, all present."""
        return values, all_present(values)

    @property
    def event_shape(self) -> tuple[int, ...]:
        """Shape of a picture, (C, H, W)."""
        return self.shape

    @property
    def picture_shape(self) -> tuple[int, int, int]:
        """Shape of a picture, (C, H, W)."""
        return self.shape

    def picture(self, values: np.ndarray) -> np.ndarray:
        """Return pixels [n, C, H, W] unchanged, since they are pictures."""
        return values

    @property
    def classifier_reads_samples(self) -> bool:
        """True for black and white images."""
        return self.layout != "bytes"

    @classmethod
    def example(cls, count: int = 5) -> "tuple[ImageDescription, np.ndarray]":
        """Return the specification of black and white pictures of 16 by 16 pixels, and rows of it."""
        described = cls(shape=(1, 16, 16), layout="bits")
        pixels = np.random.default_rng(1).random((count, 1, 16, 16)) < 0.3
        return described, described.pack(pixels.astype(np.uint8))

    def read_network_settings(self, settings: Mapping[str, Any], setting: str) -> "ImageNetwork":
        """Return the family of image networks that ``name`` chooses, with sizes that suit the pictures.

        By default that is "strided", and "mlp" for images whose sides are no multiples of 4.
        """
        import mmgen.networks
        from mmgen.settings.config import build_member

        named = {"name": "mlp" if any(side % 4 for side in self.shape[1:]) else "strided", **settings}
        if named.keys() == {"name"}:
            named |= mmgen.networks.get(named["name"]).settings_for_sides(self.shape[1:])
        family: ImageNetwork = build_member(mmgen.networks, named, setting)
        return family

    def modality(self, likelihood: str | None = None) -> "Image":
        from mmgen.modalities._dense import dense_likelihood

        chosen = dense_likelihood(likelihood or "bernoulli", "model.image_likelihood", "images")
        return Image(self.name, self.shape, chosen)

    def is_compatible(self, other: Description) -> bool:
        """Return True if pictures have the same size, however they are stored."""
        return isinstance(other, ImageDescription) and self.shape == other.shape

    def has_density_for(self, other: "ImageDescription") -> bool:
        """Return False if a model of black and white pictures would be given grey ones, which it has no density for."""
        return self.layout == "bytes" or other.layout != "bytes"

    def describe_size(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.shape))}"


class Image(Modality):
    """Pictures whose pixels are independent given z.

    Args:
        name: Name in the dataset file.
        shape: (C, H, W).
        likelihood: p(pixels | decoder output).
    """

    kind: ClassVar[str] = "image"
    head_layers: ClassVar[int] = 2  # VE A.4

    def __init__(self, name: str, shape: tuple[int, int, int], likelihood: "Likelihood") -> None:
        self.name = name
        self.shape = shape
        self.likelihood = likelihood

    @property
    def decoder_channels(self) -> int:
        """Number of channels that an image decoder must output."""
        return self.shape[0] * self.likelihood.parameters_per_value

    def decoder(self, inputs: int, network: "ImageNetwork") -> tuple["Image", "nn.Module"]:
        return self, network.decoder(inputs, (self.decoder_channels, *self.shape[1:]))

    def encoder(self, network: "ImageNetwork") -> tuple["nn.Module", int]:
        return network.encoder(self.shape)

    def log_prob(self, parameters: "Tensor", value: "Tensor", present: "Tensor") -> "Tensor":
        return self.likelihood.log_prob(parameters, value, event_dims=3).masked_fill(~present, 0.0)

    def mean(self, parameters: "Tensor") -> "Tensor":
        return self.likelihood.mean(parameters)

    def sample(self, parameters: "Tensor", generator: "torch.Generator | None" = None) -> "Tensor":
        return self.likelihood.sample(parameters, generator)


def unpack_bits(packed: "Tensor", shape: tuple[int, int, int]) -> "Tensor":
    """Convert packed bits uint8 [B, ceil(C H W / 8)], first pixel highest, to float32 pixels [B, C, H, W], 0 or 1."""
    import torch

    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device=packed.device)
    bits = packed.unsqueeze(-1).bitwise_right_shift(shifts).bitwise_and_(1)
    return bits.flatten(1)[:, : math.prod(shape)].reshape(-1, *shape).float()

"""A model and a judge whose every answer is known, with the interface of the real ones; tests get them as ``stubs``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mmgen.artifacts import AttributesInfo, ImageInfo
from mmgen.batch import Batch

INFO = AttributesInfo("attributes", ("digit", "scale"), (("0", "1", "2", "3"), ("big", "small")))
IMAGE = ImageInfo("image", (1, 6, 6), "bytes")


class FlatModel(nn.Module):
    """z = (digit, scale, noise): draws an image whose left half has intensity digit / 4, the right half scale / 2."""

    def __init__(self, conditional: bool = False) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(()))
        self.conditional_on = ("attributes",) if conditional else ()
        self.conditions: list[Batch | None] = []

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        assert name == "image"
        self.conditions.append(condition)
        image = torch.zeros(*z.shape[:-1], 1, 6, 6)
        image[..., :3] = (z[..., 0] / 4)[..., None, None, None]
        image[..., 3:] = (z[..., 1] / 2)[..., None, None, None]
        return image

    def sample(
        self, name: str, z: Tensor, generator: torch.Generator | None = None, condition: Batch | None = None
    ) -> Tensor:
        return self.mean(name, z, condition) + 1e-3 * torch.rand(z.shape[0], 1, 6, 6, generator=generator)


@dataclass
class FlatLoaded:
    """A loaded model: "aggregate" draws what is asked for, "text" always draws a small 3."""

    model: Any = field(default_factory=FlatModel)
    attributes: AttributesInfo | None = INFO
    image: ImageInfo = IMAGE
    posteriors: tuple[str, ...] = ("prior", "text", "aggregate")

    def latent_sampler(self, posterior: str) -> Callable[[Batch, int, torch.Generator], Tensor]:
        def sampler(batch: Batch, n: int, generator: torch.Generator) -> Tensor:
            codes = batch.values["attributes"].float()
            if posterior == "text":
                codes = torch.tensor([[3.0, 1.0]]).expand_as(codes)
            noise = torch.rand(n, batch.size, 1, generator=generator)
            return torch.cat([codes.expand(n, *codes.shape), noise], -1)

        return sampler


class Reader:
    """A judge that reads FlatModel's images without mistakes."""

    names = INFO.names
    values = INFO.values
    accuracy = {"digit": 100.0, "scale": 100.0, "mean": 100.0}  # noqa: RUF012

    def predict(self, images: Tensor) -> Tensor:
        digit = (images[:, 0, 0, 0] * 4).floor()
        scale = (images[:, 0, 0, 5] * 2).floor()
        return torch.stack([digit, scale], 1).to(torch.uint8)


@pytest.fixture(scope="session")
def stubs() -> SimpleNamespace:
    return SimpleNamespace(FlatLoaded=FlatLoaded, FlatModel=FlatModel, Reader=Reader, INFO=INFO)

"""A model of two latents with an image and two attributes, whose every guided posterior is known on a grid."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import mmgen.densities
from mmgen.core.batch import Batch
from mmgen.generation import TrainedModel
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities.attributes import Attributes, AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.models._base import Demands
from mmgen.models._settings import DataSettings
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.posteriors import Aggregate, Fitted
from mmgen.testing.linear_gaussian import Normal

NAMES, VALUES = ("colour", "size"), (("red", "blue", "green"), ("big", "small"))
ATTRIBUTES = Attributes("attributes", NAMES, VALUES)
ROWS = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0], [2, 255]], np.uint8)
COUNTS = np.array([1, 3, 2, 2, 5, 1])


class Inference(nn.Module):
    """q(z|x) and q(z|y), neither of them right."""

    any_subset = False

    def has_posterior(self, inputs: Sequence[str]) -> bool:
        return tuple(inputs) in (("image",), ("attributes",))

    def posterior(self, batch: Batch, given: Sequence[str]) -> DiagonalGaussian:
        if tuple(given) == ("image",):
            mean = batch.values["image"].flatten(1)[:, :2]
        else:
            known = batch.present["attributes"].to(torch.get_default_dtype())
            mean = 0.4 * known * (batch.values["attributes"].to(known.dtype) - 0.5)
        return DiagonalGaussian(mean, torch.full_like(mean, -0.2))

    def encode(self, batch: Batch, given: Sequence[str], generator: object = None) -> DiagonalGaussian:
        return self.posterior(batch, given)


def loaded(
    given: str = "attributes", sharpness: float = 1.5, layout: str = "bytes", completes: bool = False
) -> TrainedModel:
    """A loaded toy with a fitted posterior given attributes, or given nothing: the learned prior.

    Args:
        given: What its aggregate is conditioned on.
        sharpness: How much p(y|z) depends on z.
        layout: How its dataset stored pixels.
        completes: Whether open words are drawn first, from the descriptions ``ROWS``.
    """
    torch.manual_seed(0)
    words, image = nn.Linear(2, ATTRIBUTES.total_size), nn.Sequential(nn.Linear(2, 4), nn.Unflatten(1, (1, 2, 2)))
    with torch.no_grad():
        words.weight.copy_(sharpness * torch.tensor([[1.0, 0.2], [-1.0, 0.5], [0.1, -1.2], [0.5, 1.0], [-0.3, -1.0]]))
    modalities = {"image": _Image("image"), "attributes": ATTRIBUTES}
    condition = ATTRIBUTES if given == "attributes" else None
    aggregate = Aggregate(LatentSpace.flat(2), condition, mmgen.densities.get("gaussian")())
    with torch.no_grad():
        for parameter in aggregate.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        aggregate.shift.copy_(torch.tensor([0.3, -0.2]))
        aggregate.scale.copy_(torch.tensor([0.8, 1.1]))
    data = DataSettings.from_descriptions(
        ImageDescription(name="image", shape=(1, 2, 2), layout=layout),
        AttributesDescription(name="attributes", names=NAMES, values=VALUES),
    )
    objective = SimpleNamespace(demands=Demands(frozenset([("image",)])))
    settings: Any = SimpleNamespace(data=data, build_objective=lambda: objective)
    model = MultimodalVAE(LatentSpace.flat(2), modalities, {"image": image, "attributes": words}, Inference()).eval()
    source: Any = (Path("toy.safetensors"), SimpleNamespace(kind="model", content_id="m", parents=()))
    fitted = Fitted("aggregate", aggregate.eval().keep_descriptions(ROWS, COUNTS), 2)
    return TrainedModel(source, source, settings, model, torch.device("cpu"), fitted).completing(completes)


class _Image(Normal):
    """Four numbers as a picture."""

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        return super().log_prob(parameters.flatten(-3), value.flatten(-3), present)


class Grid:
    """Sums over the plane of z in place of integrals."""

    def __init__(self, step: float = 0.04, reach: float = 7.0) -> None:
        axis = torch.arange(-reach, reach, step)
        self.z = torch.cartesian_prod(axis, axis)
        self.cell = step**2

    @torch.no_grad()
    def masses(
        self, toy: TrainedModel, posterior: str, batch: Batch, log_words: Tensor, weight: float
    ) -> tuple[Tensor, Any]:
        """Masses of q_w on the cells, float64, and log Z.

        Args:
            toy: The model, not guided.
            posterior: What is guided.
            batch: One description.
            log_words: log p(y|z) on the grid.
            weight: w.
        """
        base = toy.posteriors[posterior].log_prob(self.z[:, None], batch)[:, 0].double()
        joint = base + weight * log_words.double()
        total = joint.logsumexp(0)
        return (joint - total).exp(), float(total + torch.tensor(self.cell).double().log())

    @torch.no_grad()
    def log_words(self, toy: TrainedModel, codes: Sequence[int]) -> Tensor:
        """log p(y|z) on the grid from the decoder's own probabilities, 255 where nothing is said."""
        table = ATTRIBUTES.log_probabilities(toy.model.decoders["attributes"](self.z))
        return sum((table[:, a, c] for a, c in enumerate(codes) if c != 255), torch.zeros(len(self.z)))


GRID_OF_Z = Grid()

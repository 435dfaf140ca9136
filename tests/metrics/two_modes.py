"""A stand-in for a model whose picture leaves two modes of z, with every quantity by integration on a grid."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.models import USUAL_NEEDS
from tests.metrics.toy import Gaussian, PlaneOfGaussians, loaded_gaussian
from tests.posteriors.stand_in import draws_and_densities, stand_ins


class TwoModes(PlaneOfGaussians):
    r"""p(z) = N(0, I) in two dimensions, x = (z_1^2, z_2) + noise, p(y = 1 | z) = sigmoid(s z_1).

    x does not say the sign of z_1, and y says little else.

    Inference as a model of three bounds (TELBO) may end up: q(z | x) has settled on the positive of two modes, as a
    Gaussian fitted by KL(q || p) does, q(z | x, y) is at the right one, neither is exact.
    """

    latent_size, conditional_on = 2, ()
    latent, capabilities = LatentSpace.flat(2), USUAL_NEEDS
    modalities = ("image", "attributes")
    noise, steepness = 0.4, 6.0

    def __init__(self, shift: float = 0.05, widening: float = 1.2) -> None:
        self.shift, self.widening = shift, widening

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return set(inputs) <= {"image", "attributes"} and bool(inputs)

    def posterior(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
        sign = torch.ones(batch.size, dtype=torch.float64)
        if "attributes" in given:
            sign = 2.0 * batch.values["attributes"][:, 0] - 1
        if "image" not in given:
            mean = torch.stack([0.8 * sign, torch.zeros_like(sign)], -1)
            return DiagonalGaussian(mean, torch.tensor([0.6, 1.0]).double().log().expand_as(mean))
        x = batch.values["image"].flatten(1)
        root = x[:, 0].clamp_min(0.05).sqrt()
        precision = 1 / self.noise**2
        mean = torch.stack([sign * root, x[:, 1] * precision / (1 + precision)], -1) + self.shift
        sd = torch.stack(
            [(1 + 4 * root.square() * precision).rsqrt(), torch.full_like(root, (1 + precision) ** -0.5)], -1
        )
        return DiagonalGaussian(mean, (sd * self.widening).log())

    def log_likelihood(self, name: str, z: Tensor, batch: Batch) -> Tensor:
        if name == "attributes":
            sign = 2.0 * batch.values[name][:, 0] - 1
            return torch.nn.functional.logsigmoid(sign * self.steepness * z[..., 0])
        said = torch.stack([z[..., 0].square(), z[..., 1]], -1)
        residual = (batch.values["image"].flatten(1) - said) / self.noise
        return (-0.5 * residual.square() - math.log(self.noise) - 0.5 * math.log(2 * math.pi)).sum(-1)

    def exact(self, batch: Batch) -> dict[str, Tensor]:
        """Every quantity [N], integrated on a grid of step 0.02, far finer than any density is narrow."""
        axis = torch.arange(-6.0, 6.0, 0.02, dtype=torch.float64)
        z = torch.cartesian_prod(axis, axis)[:, None]
        found: dict[str, list[Tensor]] = {"log p(x)": [], "log p(y)": [], "log p(x,y)": []}
        for row in range(batch.size):
            point = batch[row : row + 1]
            image, words = (self.log_likelihood(name, z, point) for name in self.modalities)
            prior = self.log_prior(z) + 2 * math.log(0.02)
            for quantity, weight in zip(found, (image, words, image + words), strict=True):
                found[quantity].append((weight + prior).logsumexp(0))
        whole = {quantity: torch.cat(parts) for quantity, parts in found.items()}
        whole["log p(x|y)"] = whole["log p(x,y)"] - whole["log p(y)"]
        whole["log p(y|x)"] = whole["log p(x,y)"] - whole["log p(x)"]
        return whole


def two_modes_points(count: int, seed: int = 0) -> Batch:
    """Draws of x and y from ``TwoModes``."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(count, 2, generator=generator, dtype=torch.float64)
    said = torch.stack([z[:, 0].square(), z[:, 1]], -1)
    x = said + TwoModes.noise * torch.randn(count, 2, generator=generator, dtype=torch.float64)
    y = torch.rand(count, generator=generator).double() < torch.sigmoid(TwoModes.steepness * z[:, 0])
    known = torch.ones(count, dtype=torch.bool)
    values = {"image": x[:, None, None], "attributes": y.long()[:, None]}
    return Batch(values, {"image": known, "attributes": known[:, None]})


def loaded_two_modes(model: TwoModes) -> Any:
    """A loaded ``TwoModes``."""
    loaded = loaded_gaussian(Gaussian())
    loaded.model = model

    def density(name: str) -> Callable[[Batch], DiagonalGaussian]:
        def standard(batch: Batch) -> DiagonalGaussian:
            return DiagonalGaussian.standard(batch.size, 2, like=torch.zeros(1, dtype=torch.float64))

        return standard if name == "prior" else lambda batch: model.posterior(batch, ("attributes",))

    loaded.posteriors = stand_ins(("prior", "own"), *draws_and_densities(density))
    loaded.encoder = loaded.posteriors["own"]
    return loaded

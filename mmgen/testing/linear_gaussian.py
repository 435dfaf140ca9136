"""A linear Gaussian model, whose densities have closed forms: p(z) = N(0, I), x_m = W_m z + noise.

The columns of each W are orthogonal, so that all posteriors are diagonal Gaussians and a Gaussian inference network
can be exactly right.
"""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.inference import Inference, Unit
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities import Modality
from mmgen.modalities.attributes import Attributes
from mmgen.models.multimodal_vae import MultimodalVAE

NOISE = 0.7  # standard deviation of the observation noise of both modalities
WEIGHTS = {
    "image": torch.tensor([[1.0, 0.5], [1.0, -0.5], [0.3, 1.0], [-0.3, 1.0]], dtype=torch.float64),
    "attributes": torch.tensor([[0.8, 0.0], [0.0, -1.2], [0.0, 0.4]], dtype=torch.float64),
}


class Normal(Modality):
    """Modality with the density N(x | parameters, NOISE^2 I)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        standardised = (value - parameters) / NOISE
        constant = math.log(NOISE) + 0.5 * math.log(2 * math.pi)
        return (-0.5 * standardised.square() - constant).sum(-1)

    def mean(self, parameters: Tensor) -> Tensor:
        return parameters

    def sample(self, parameters: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return parameters + NOISE * torch.randn(parameters.shape, generator=generator, dtype=parameters.dtype)


def exact_posterior(batch: Batch, inputs: tuple[str, ...]) -> DiagonalGaussian:
    """Return the exact p(z | inputs): precision I + sum W'W / s^2, mean C sum W'x / s^2."""
    precision = torch.ones(2, dtype=torch.float64)
    weighted = torch.zeros(batch.size, 2, dtype=torch.float64)
    for name in inputs:
        gram = WEIGHTS[name].T @ WEIGHTS[name]
        assert torch.allclose(gram, torch.diag(gram.diagonal()))
        precision = precision + gram.diagonal() / NOISE**2
        weighted = weighted + batch.values[name] @ WEIGHTS[name] / NOISE**2
    mean = weighted / precision
    return DiagonalGaussian(mean, (-0.5 * precision.log()).expand_as(mean))


def exact_log_marginal(batch: Batch, names: tuple[str, ...]) -> Tensor:
    """Return the exact log p(x_names), Gaussian with covariance W W' + s^2 I."""
    weights = torch.cat([WEIGHTS[name] for name in names])
    observed = torch.cat([batch.values[name] for name in names], -1)
    covariance = weights @ weights.T + NOISE**2 * torch.eye(len(weights), dtype=torch.float64)
    zero = torch.zeros(len(weights), dtype=torch.float64)
    return torch.distributions.MultivariateNormal(zero, covariance).log_prob(observed)


class OffsetInference(Inference):
    """Inference with the exact posteriors plus trainable offsets (0: exact), one pair for each set of inputs."""

    def __init__(self, mean_offset: float = 0.0, log_sd_offset: float = 0.0) -> None:
        super().__init__()
        keys = ("image", "attributes", "attributes_image")
        self.mean = nn.ParameterDict(
            {k: nn.Parameter(torch.full((2,), mean_offset, dtype=torch.float64)) for k in keys}
        )
        self.log_sd = nn.ParameterDict(
            {k: nn.Parameter(torch.full((2,), log_sd_offset, dtype=torch.float64)) for k in keys}
        )

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return "_".join(sorted(inputs)) in self.mean

    def infer(self, batch: Batch, inputs: tuple[str, ...]) -> DiagonalGaussian:
        exact = exact_posterior(batch, inputs)
        key = "_".join(sorted(inputs))
        return DiagonalGaussian(exact.mean + self.mean[key], exact.log_sd + self.log_sd[key])

    def infer_subsets(
        self, batch: Batch, units: Sequence[Unit], membership: Sequence[Sequence[bool]]
    ) -> DiagonalGaussian:
        names = [name for name, _ in units]
        subsets = [self.infer(batch, tuple(itertools.compress(names, subset))) for subset in membership]
        return DiagonalGaussian(torch.stack([q.mean for q in subsets]), torch.stack([q.log_sd for q in subsets]))


def make_linear_gaussian(mean_offset: float = 0.0, log_sd_offset: float = 0.0) -> MultimodalVAE:
    """Return a linear Gaussian model in float64, whose posteriors and likelihoods are known in closed form."""
    decoders: dict[str, nn.Module] = {}
    for name, weights in WEIGHTS.items():
        decoder = nn.Linear(2, len(weights), bias=False, dtype=torch.float64)
        decoder.weight.data.copy_(weights)
        decoders[name] = decoder
    modalities: dict[str, Modality] = {name: Normal(name) for name in WEIGHTS}
    return MultimodalVAE(LatentSpace.flat(2), modalities, decoders, OffsetInference(mean_offset, log_sd_offset))


def draw_observations(size: int, seed: int = 0) -> Batch:
    """Draw observations from the model of :func:`make_linear_gaussian`."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(size, 2, generator=generator, dtype=torch.float64)
    values = {}
    for name, weights in WEIGHTS.items():
        noise = torch.randn(size, len(weights), generator=generator, dtype=torch.float64)
        values[name] = z @ weights.T + NOISE * noise
    return Batch(values, {name: torch.ones(size, dtype=torch.bool) for name in WEIGHTS})


class ShiftedPosterior(Inference):
    """Inference with the exact q(z | x, y) of x = W z + B d(y) + noise, plus trainable offsets (0: exact)."""

    def __init__(
        self, shift: nn.Linear, condition: Attributes, mean_offset: float = 0.0, log_sd_offset: float = 0.0
    ) -> None:
        super().__init__()
        self.shift: nn.Linear = shift
        self.condition = condition
        self.mean_offset, self.log_sd_offset = mean_offset, log_sd_offset

    def has_posterior(self, inputs: tuple[str, ...]) -> bool:
        return set(inputs) == set(WEIGHTS)

    def infer(self, batch: Batch, inputs: tuple[str, ...]) -> DiagonalGaussian:
        described = self.condition.describe(batch.values["attributes"], batch.present["attributes"]).double()
        moved = Batch({"image": batch.values["image"] - self.shift(described)}, {"image": batch.present["image"]})
        exact = exact_posterior(moved, ("image",))
        return DiagonalGaussian(exact.mean + self.mean_offset, exact.log_sd + self.log_sd_offset)


def make_conditional_linear_gaussian(mean_offset: float = 0.0, log_sd_offset: float = 0.0) -> MultimodalVAE:
    """Return a model p(z) p(x | z, y) in float64 with x = W z + B d(y) + noise, y one attribute of two values."""
    condition = Attributes("attributes", ("a",), (("no", "yes"),))
    width = condition.description_size
    decoder = nn.Linear(2 + width, 4, bias=False, dtype=torch.float64)
    shift = nn.Linear(width, 4, bias=False, dtype=torch.float64)
    shift.weight.data.copy_(torch.linspace(-1, 1, 4 * width).reshape(4, width))
    decoder.weight.data.copy_(torch.cat([WEIGHTS["image"], shift.weight.data], 1))
    inference = ShiftedPosterior(shift, condition, mean_offset, log_sd_offset)
    return MultimodalVAE(LatentSpace.flat(2), {"image": Normal("image")}, {"image": decoder}, inference, condition)


def draw_conditional_observations(size: int, seed: int = 0) -> Batch:
    """Draw images with attribute codes for :func:`make_conditional_linear_gaussian`."""
    images = draw_observations(size, seed)
    codes, known = (torch.arange(size) % 2)[:, None], torch.ones(size, 1, dtype=torch.bool)
    values = {"image": images.values["image"], "attributes": codes}
    return Batch(values, {"image": images.present["image"], "attributes": known})


def exact_log_conditional(model: MultimodalVAE, batch: Batch) -> Tensor:
    """Return the exact log p(x | y) = log N(x; B d(y), W W' + s^2 I) of the conditional model."""
    inference = model.inference
    assert isinstance(inference, ShiftedPosterior)
    described = inference.condition.describe(batch.values["attributes"], batch.present["attributes"]).double()
    moved = batch.values["image"] - described @ inference.shift.weight.detach().T
    return exact_log_marginal(Batch({"image": moved}, {}), ("image",))

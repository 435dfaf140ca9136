"""A ladder of two layers whose every density has a closed form: z2 ~ N(0, I), z1 = A z2 + noise, x = W z1 + noise."""

import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.models.hierarchical_vae import HierarchicalVAE
from mmgen.testing.linear_gaussian import NOISE, WEIGHTS, Normal

UP = torch.tensor([[0.9, 0.0, 0.2], [-0.4, 0.7, 0.3]], dtype=torch.float64)  # A: [2, 3]
LAYER_SD = 0.6


class Fixed(nn.Module):
    """[..., D] -> N(D M', sd^2 I)."""

    def __init__(self, matrix: Tensor, sd: float) -> None:
        super().__init__()
        self.matrix, self.log_sd = nn.Parameter(matrix.clone()), torch.tensor(sd, dtype=torch.float64).log()

    def forward(self, x: Tensor) -> DiagonalGaussian:
        mean = x @ self.matrix.T
        return DiagonalGaussian(mean, self.log_sd.expand_as(mean))


def linear_ladder(sd: float = 0.5) -> HierarchicalVAE:
    """The model in float64; q is near its posterior, and not it, so that bounds have gaps."""
    decoder = nn.Linear(2, 4, bias=False, dtype=torch.float64)
    decoder.weight.data.copy_(WEIGHTS["image"])
    inverse = torch.linalg.pinv(WEIGHTS["image"]) * 0.8
    return HierarchicalVAE(
        LatentSpace({"z1": 2, "z2": 3}),
        {"image": Normal("image")},
        {"image": decoder},
        "image",
        nn.Identity(),
        Fixed(inverse, sd),
        [Fixed(torch.linalg.pinv(UP) * 0.5, 0.9)],
        [Fixed(UP, LAYER_SD)],
    )


def ladder_observations(size: int, seed: int = 0) -> Batch:
    """Draws from the model itself."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    lower = draw(size, 3) @ UP.T + LAYER_SD * draw(size, 2)
    return Batch(
        {"image": lower @ WEIGHTS["image"].T + NOISE * draw(size, 4)}, {"image": torch.ones(size, dtype=torch.bool)}
    )


def lower_covariance() -> Tensor:
    """Covariance of z1 under p: A A' + s^2 I."""
    return UP @ UP.T + LAYER_SD**2 * torch.eye(2, dtype=torch.float64)


def exact_log_image(batch: Batch) -> Tensor:
    """log p(x) = log N(x; 0, W (A A' + s^2 I) W' + noise^2 I) [B], nats."""
    weights = WEIGHTS["image"]
    covariance = weights @ lower_covariance() @ weights.T + NOISE**2 * torch.eye(4, dtype=torch.float64)
    zero = torch.zeros(4, dtype=torch.float64)
    return torch.distributions.MultivariateNormal(zero, covariance).log_prob(batch.values["image"])

"""A Gaussian of each description with a full covariance, against torch's."""

import pytest
import torch

from mmgen.densities.full_gaussian import FullGaussian
from mmgen.latent.space import LatentSpace


@pytest.mark.parametrize("described", [0, 2])
def test_its_density_and_draws_are_those_of_a_multivariate_normal(described: int) -> None:
    torch.manual_seed(0)
    density = FullGaussian(hidden=(8,)).build_density(LatentSpace.flat(3), described).double()
    context = torch.randn(1, described, dtype=torch.float64) if described else None
    mean = density.carry_noise(torch.zeros(1, 3, dtype=torch.float64), context)
    columns = density.carry_noise(torch.eye(3, dtype=torch.float64)[:, None], context)[:, 0] - mean  # rows of factor'
    exact = torch.distributions.MultivariateNormal(mean[0], columns.T @ columns)
    u = torch.randn(7, 1, 3, dtype=torch.float64)
    torch.testing.assert_close(density.log_prob(u, context)[:, 0], exact.log_prob(u[:, 0]))
    assert exact.covariance_matrix.tril(-1).abs().max() > 1e-3, "no correlation"


def test_it_learns_correlations_that_a_diagonal_one_cannot() -> None:
    torch.manual_seed(0)
    exact = torch.distributions.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 0.9], [0.9, 1.0]]))
    density = FullGaussian(hidden=(8,)).build_density(LatentSpace.flat(2), 0)
    optimizer = torch.optim.Adam(density.parameters(), 0.02)
    for _ in range(200):
        optimizer.zero_grad()
        (-density.log_prob(exact.sample((256, 1)), None).mean()).backward()
        optimizer.step()
    u = exact.sample((4_000, 1))
    lost = float((exact.log_prob(u) - density.log_prob(u, None)).detach().mean())
    assert lost < 0.05  # a diagonal Gaussian loses -log(1 - .9^2) / 2 = .83 nats

"""Checks of likelihoods of dense data."""

import math

import torch

import mmgen.likelihoods

__all__ = ["check_likelihood"]


def check_likelihood(name: str) -> None:
    """Check a likelihood: one value per image, broadcasting, fp32 densities, and draws whose mean is ``mean``."""
    likelihood = mmgen.likelihoods.get(name)()
    torch.manual_seed(0)
    parameters = torch.randn(7, 4, likelihood.parameters_per_value, 3, 3, dtype=torch.float64)
    value = likelihood.sample(parameters[0], torch.Generator().manual_seed(0))
    broadcast = likelihood.log_prob(parameters, value)
    assert broadcast.shape == (7, 4), (
        f"log_prob of parameters [7, 4, ...] and values [4, ...] is {tuple(broadcast.shape)}, expected (7, 4)"
    )
    torch.testing.assert_close(broadcast[3], likelihood.log_prob(parameters[3], value))
    with_gradient = likelihood.log_prob(parameters.clone().requires_grad_(), value)
    torch.testing.assert_close(broadcast, with_gradient.detach())
    single, many = parameters.float().repeat(1, 1, 1, 8, 8), value.float().repeat(1, 1, 8, 8)
    exact = likelihood.log_prob(single, many)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(likelihood.log_prob(single, many), exact)
        torch.testing.assert_close(likelihood.log_prob(single.clone().requires_grad_(), many).detach(), exact)
    draws = likelihood.sample(parameters[:1, :1].expand(20_000, 1, -1, -1, -1), torch.Generator().manual_seed(1))
    error = (draws.mean(0) - likelihood.mean(parameters[0, :1])).abs().max()
    assert error < 5 * draws.std(0).max() / math.sqrt(20_000), f"the mean of draws differs from mean by {error:.3g}"

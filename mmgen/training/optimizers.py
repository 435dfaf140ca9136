"""Optimisers by name: functions that make one of torch's optimisers for groups of parameters.

Parameters of a function after the ``*`` are settings of ``training`` by the same name. Groups have their own weight
decay, and may have any further option of torch's optimiser.

References:
    Adam: A Method for Stochastic Optimization (Kingma, Ba, 2015), arXiv:1412.6980
    Decoupled Weight Decay Regularization (Loshchilov, Hutter, 2019), arXiv:1711.05101
    On the importance of initialization and momentum in deep learning (Sutskever, Martens, Dahl, Hinton, 2013)
    Adaptive Subgradient Methods for Online Learning and Stochastic Optimization (Duchi, Hazan, Singer, 2011)
    RMSProp: Lecture 6.5 of Neural Networks for Machine Learning (Tieleman, Hinton, 2012)
    Muon: An optimizer for hidden layers in neural networks (Jordan et al., 2024), https://kellerjordan.github.io/posts/muon
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mmgen.training.muon import Muon, MuonParameters, check_muon, is_orthogonalised

__all__ = ["OPTIMIZERS", "Groups", "adagrad", "adam", "adamw", "optimizer_state", "muon", "rmsprop", "sgd"]

Groups = list[dict[str, Any]]


def adam(groups: Groups, rate: float, *, adam_betas: tuple[float, float], adam_epsilon: float) -> Optimizer:
    """Return the optimiser Adam, with weight decay as part of the gradient (Kingma, Ba, 2015)."""
    return torch.optim.Adam(groups, lr=rate, betas=adam_betas, eps=adam_epsilon, fused=True)


def adamw(groups: Groups, rate: float, *, adam_betas: tuple[float, float], adam_epsilon: float) -> Optimizer:
    """Return the optimiser AdamW, whose weight decay multiplies weights by 1 - rate * decay (Loshchilov, Hutter)."""
    return torch.optim.AdamW(groups, lr=rate, betas=adam_betas, eps=adam_epsilon, fused=True)


def rmsprop(groups: Groups, rate: float, *, momentum: float) -> Optimizer:
    """Return the optimiser RMSprop: the gradient over the root of its running mean square (Tieleman, Hinton, 2012)."""
    return torch.optim.RMSprop(groups, lr=rate, momentum=momentum)


def sgd(groups: Groups, rate: float, *, momentum: float) -> Optimizer:
    """Return stochastic gradient descent, with a velocity if momentum is above 0 (Sutskever et al., 2013)."""
    return torch.optim.SGD(groups, lr=rate, momentum=momentum)


def adagrad(groups: Groups, rate: float, *, adagrad_epsilon: float) -> Optimizer:
    """Return the optimiser Adagrad: the gradient over the root of all its squares' sum (Duchi, Hazan, Singer, 2011)."""
    return torch.optim.Adagrad(groups, lr=rate, eps=adagrad_epsilon)


def muon(
    groups: Groups,
    rate: float,
    *,
    adam_betas: tuple[float, float],
    adam_epsilon: float,
    muon_parameters: MuonParameters,
    muon_scale: float,
) -> Optimizer:
    """Return the optimiser Muon for kernels of convolutions or all matrices (Jordan et al.); other parameters use
    AdamW.

    Raises:
        SettingsError: There is none of them.
    """
    groups = [{**group, "params": list(group["params"])} for group in groups]
    check_muon([p for group in groups for p in group["params"]], muon_parameters)
    groups_by_rule = [
        {**group, "params": parameters, "orthogonal": orthogonal}
        for group in groups
        for orthogonal in (True, False)
        if (parameters := [p for p in group["params"] if is_orthogonalised(p, muon_parameters) is orthogonal])
    ]
    return Muon(groups_by_rule, rate, adam_betas, adam_epsilon, scale=muon_scale)


OPTIMIZERS = {one.__name__: one for one in (adam, adamw, rmsprop, sgd, adagrad, muon)}
"""Choices of ``training.optimizer`` by name."""


def optimizer_state(optimizer: Optimizer, group: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors that an optimiser stores for one parameter, found by a trial step on a single number.

    Args:
        optimizer: One of torch's optimisers.
        group: One of its groups of parameters.

    Example:
        >>> found = sgd([{"params": [nn.Parameter(torch.zeros(3))]}], 0.1, momentum=0.9)
        >>> list(optimizer_state(found, found.param_groups[0]))
        ['momentum_buffer']
    """
    probe = nn.Parameter(torch.zeros(1))
    probe.grad = torch.ones(1)
    optimizer_class: Callable[..., Optimizer] = type(optimizer)
    copy = optimizer_class([{**group, "params": [probe]}])
    copy.step()
    return dict(copy.state[probe])

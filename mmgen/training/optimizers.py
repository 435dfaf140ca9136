"""Optimisers by name: functions from groups of parameters to one of torch's.

An optimiser is a function of this file: groups and the learning rate come first, and what stands after the ``*`` are
settings of ``training`` by the same name. Groups bring their own weight decay, and may bring any option of torch's
optimiser besides, as the players of a game do that learn with other betas.

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

from mmgen.training.muon import Muon, Own, check_muon, is_own

__all__ = ["OPTIMIZERS", "Groups", "adagrad", "adam", "adamw", "kept_by", "muon", "rmsprop", "sgd"]

Groups = list[dict[str, Any]]


def adam(groups: Groups, rate: float, *, adam_betas: tuple[float, float], adam_epsilon: float) -> Optimizer:
    """Adam; weight decay is part of the gradient (Kingma, Ba, 2015)."""
    return torch.optim.Adam(groups, lr=rate, betas=adam_betas, eps=adam_epsilon, fused=True)


def adamw(groups: Groups, rate: float, *, adam_betas: tuple[float, float], adam_epsilon: float) -> Optimizer:
    """Adam whose weight decay is no part of the gradient: weights shrink by rate times decay (Loshchilov, Hutter)."""
    return torch.optim.AdamW(groups, lr=rate, betas=adam_betas, eps=adam_epsilon, fused=True)


def rmsprop(groups: Groups, rate: float, *, momentum: float) -> Optimizer:
    """The gradient over the root of its running mean square (Tieleman, Hinton, 2012)."""
    return torch.optim.RMSprop(groups, lr=rate, momentum=momentum)


def sgd(groups: Groups, rate: float, *, momentum: float) -> Optimizer:
    """Steps along the gradient, with a velocity where there is momentum (Sutskever et al., 2013)."""
    return torch.optim.SGD(groups, lr=rate, momentum=momentum)


def adagrad(groups: Groups, rate: float, *, adagrad_epsilon: float) -> Optimizer:
    """The gradient over the root of the sum of its squares so far (Duchi, Hazan, Singer, 2011)."""
    return torch.optim.Adagrad(groups, lr=rate, eps=adagrad_epsilon)


def muon(
    groups: Groups,
    rate: float,
    *,
    adam_betas: tuple[float, float],
    adam_epsilon: float,
    muon_parameters: Own,
    muon_scale: float,
) -> Optimizer:
    """Kernels of convolutions, or all matrices, along momentum made orthogonal (Jordan et al.), all else as adamw.

    Raises:
        SettingsError: There is none of them.
    """
    groups = [{**group, "params": list(group["params"])} for group in groups]
    check_muon([p for group in groups for p in group["params"]], muon_parameters)
    parted = [
        {**group, "params": parameters, "orthogonal": orthogonal}
        for group in groups
        for orthogonal in (True, False)
        if (parameters := [p for p in group["params"] if is_own(p, muon_parameters) is orthogonal])
    ]
    return Muon(parted, rate, adam_betas, adam_epsilon, scale=muon_scale)


OPTIMIZERS = {one.__name__: one for one in (adam, adamw, rmsprop, sgd, adagrad, muon)}
"""What ``training.optimizer`` chooses from, by name."""


def kept_by(optimizer: Optimizer, group: Mapping[str, Any]) -> dict[str, Tensor]:
    """What an optimiser keeps of a parameter that it has moved: here of a single number, moved once.

    Args:
        optimizer: One of torch's.
        group: One of its groups, whose options may be its own.

    Example:
        >>> found = sgd([{"params": [nn.Parameter(torch.zeros(3))]}], 0.1, momentum=0.9)
        >>> list(kept_by(found, found.param_groups[0]))
        ['momentum_buffer']
    """
    probe = nn.Parameter(torch.zeros(1))
    probe.grad = torch.ones(1)
    alike: Callable[..., Optimizer] = type(optimizer)
    twin = alike([{**group, "params": [probe]}])
    twin.step()
    return dict(twin.state[probe])

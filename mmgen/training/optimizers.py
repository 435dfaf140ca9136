"""Optimisers by name, Muon among them, and schedules of their learning rate."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adamw import adamw as adamw_step

from mmgen.core.errors import SettingsError

MuonParameters = Literal["kernels", "matrices"]
"""Parameters with orthogonalised steps: kernels of convolutions, or those and all other matrices."""

_ITERATIONS = 5
_POLYNOMIAL = (3.4445, -4.7750, 2.0315)
"""Coefficients of s, s^3 and s^5 (Jordan et al., 2024), which carry singular values to about 1 in few iterations."""


def is_orthogonalised(parameter: Tensor, muon_parameters: MuonParameters) -> bool:
    """Return whether Muon updates a parameter by orthogonalised momentum; it updates others as AdamW does."""
    if parameter.dim() < (3 if muon_parameters == "kernels" else 2) or not parameter.numel():
        return False
    return 1 < len(parameter) < parameter.numel()


def check_muon(parameters: Iterable[Tensor], muon_parameters: MuonParameters) -> None:
    """Refuse Muon for parameters none of which it would update by orthogonalised momentum.

    Raises:
        SettingsError: There is no kernel, or no matrix.
    """
    if not any(is_orthogonalised(parameter, muon_parameters) for parameter in parameters):
        advice = "use adamw" if muon_parameters == "matrices" else "set training.muon_parameters=matrices, or use adamw"
        raise SettingsError(
            f"training.optimizer got muon, which is for {muon_parameters}, but the trained parameters have none; "
            f"{advice}"
        )


def orthogonalise(matrix: Tensor) -> Tensor:
    r"""Set all singular values of a matrix [R, C] to about 1, U S V^T -> U V^T, by a few Newton-Schulz iterations.

    Each iteration maps every singular value s to a s + b s^3 + c s^5, which is done by products of matrices alone.
    Singular values from 0.002 of the Frobenius norm end between 0.68 and 1.21; smaller ones have grown up to 485-fold.

    Args:
        matrix: Any matrix [R, C]; zeros stay zeros.
    """
    a, b, c = _POLYNOMIAL
    is_tall = matrix.shape[0] > matrix.shape[1]
    result = matrix.T if is_tall else matrix
    result = result / result.norm().clamp(min=1e-7)  # singular values are at most the norm
    for _ in range(_ITERATIONS):
        gram = result @ result.T
        result = torch.addmm(result, torch.addmm(gram, gram, gram, beta=b, alpha=c), result, beta=a)
    return result.T if is_tall else result


class Muon(Optimizer):
    r"""Optimiser Muon for groups of parameters marked ``"orthogonal"``, AdamW for all others; weight decay is
    decoupled.

    .. math:: m \leftarrow \mu m + (1 - \mu) g, \quad
              W \leftarrow W - \eta \, r \sqrt{\max(R, C)} \; \mathrm{orthogonalise}(\mu m + (1 - \mu) g)

    A kernel counts as a matrix with as many rows as its first axis has places.

    Args:
        groups: Groups of parameters; see :func:`mmgen.training.optimizers.muon`.
        lr: The learning rate eta of either kind.
        betas: Decays of Adam's running means.
        eps: What Adam adds to the root of the mean square.
        momentum: mu.
        scale: r, the root mean square of what a matrix moves by where all singular values of its momentum become 1, in
            learning rates.

    Raises:
        ValueError: A group has an option that is none of these.
    """

    def __init__(
        self,
        groups: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        momentum: float = 0.95,
        scale: float = 0.2,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "momentum": momentum, "scale": scale}
        # Torch keeps counts of steps where a fused optimiser wants them if the option is there.
        super().__init__(groups, {**options, "weight_decay": 0.0, "orthogonal": False, "fused": True})
        for group in self.param_groups:
            foreign = sorted(group.keys() - {"params", "rate"} - self.defaults.keys())
            if foreign:
                raise ValueError(
                    f"a group of parameters got {', '.join(foreign)}, expected options of muon; leave them out"
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient.

        Args:
            closure: Computes the loss anew, which is then returned.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if group["orthogonal"]:
                for parameter in parameters:
                    self._update_by_muon(parameter, group)
            elif parameters:
                self._update_by_adam(parameters, group)
        return loss

    def _update_by_muon(self, parameter: nn.Parameter, group: dict[str, Any]) -> None:
        """Update a parameter by its orthogonalised momentum."""
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        if not state:
            state["step"] = torch.zeros((), device=parameter.device)
            state["momentum_buffer"] = torch.zeros_like(parameter)
        state["step"] += 1  # of no use here; by it a saved state is known to be whole
        momentum: Tensor = state["momentum_buffer"].lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(momentum, group["momentum"]).reshape(len(gradient), -1)
        length = group["scale"] * max(ahead.shape) ** 0.5
        parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.add_(orthogonalise(ahead).view_as(parameter), alpha=-group["lr"] * length)

    def _update_by_adam(self, parameters: list[nn.Parameter], group: dict[str, Any]) -> None:
        """Update parameters as AdamW does."""
        for parameter in parameters:
            if not self.state[parameter]:
                self.state[parameter] = {
                    "step": torch.zeros((), device=parameter.device),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        states = [self.state[p] for p in parameters]
        adamw_step(
            params=list(parameters),
            grads=[p.grad for p in parameters if p.grad is not None],
            exp_avgs=[state["exp_avg"] for state in states],
            exp_avg_sqs=[state["exp_avg_sq"] for state in states],
            max_exp_avg_sqs=[],
            state_steps=[state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


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


_ROUNDING = 1e-9  # a stage begins at its step, whatever the last bit of a quotient says
_LEAST = 0.01  # where cosine and linear end


def constant(fraction: float) -> float:
    """Return the learning rate's factor 1 at every fraction of the run."""
    return 1.0


def cosine(fraction: float) -> float:
    """Return the learning rate's factor at a fraction of the run: it falls from 1 to 0.01 along half a cosine.

    Example:
        >>> [round(cosine(fraction), 6) for fraction in (0.0, 0.5, 1.0)]
        [1.0, 0.505, 0.01]
    """
    return _LEAST + (1 - _LEAST) * 0.5 * (1 + math.cos(math.pi * fraction))


def linear(fraction: float) -> float:
    """Return the learning rate's factor at a fraction of the run: it falls from 1 to 0.01 linearly.

    Example:
        >>> [round(linear(fraction), 6) for fraction in (0.0, 0.5, 1.0)]
        [1.0, 0.505, 0.01]
    """
    return 1 - (1 - _LEAST) * fraction


def stages(fraction: float, *, stages: tuple[tuple[float, float], ...]) -> float:
    """Return the learning rate's factor at a fraction of the run; ``stages`` are pairs (duration, factor).

    Args:
        fraction: Part of the run that is done, 0 to 1.
        stages: Pairs of a duration and a factor; all durations together are the run.

    Example:
        >>> [stages(fraction, stages=((1, 1.0), (3, 0.5))) for fraction in (0.0, 0.24, 0.25, 1.0)]
        [1.0, 1.0, 0.5, 0.5]
    """
    ends = list(accumulate(duration for duration, _ in stages))
    return stages[min(bisect_right(ends, fraction * ends[-1] + _ROUNDING * ends[-1]), len(ends) - 1)][1]


def warmup_factor(step: int, steps: int) -> float:
    """Return the learning rate's factor at a step of a warm-up: it rises linearly to 1 at step ``steps``.

    Example:
        >>> [warmup_factor(step, 4) for step in (0, 1, 3, 4)], warmup_factor(0, 0)
        ([0.25, 0.5, 1.0, 1.0], 1.0)
    """
    return min(1.0, (step + 1) / max(1, steps))


def decay_factor(step: int, factor: float) -> float:
    """Return the learning rate's factor after ``step`` steps that each multiply it by ``factor``.

    Example:
        >>> [decay_factor(step, 0.5) for step in (0, 1, 2)]
        [1.0, 0.5, 0.25]
    """
    return factor**step


SCHEDULES = {one.__name__: one for one in (constant, cosine, linear, stages)}
"""Choices of ``training.schedule`` by name."""

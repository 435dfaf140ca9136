"""Muon: matrices and kernels move along their momentum, made orthogonal; all other parameters move as AdamW's.

References:
    Muon: An optimizer for hidden layers in neural networks (Jordan et al., 2024), https://kellerjordan.github.io/posts/muon
    Muon is Scalable for LLM Training (Liu et al., 2025), arXiv:2502.16982: the length of a step by the shape
"""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from mmgen.core.errors import SettingsError

__all__ = ["Muon", "MuonParameters", "check_muon", "is_orthogonalised", "orthogonalise"]

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
        adamw(
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

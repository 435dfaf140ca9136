r"""Balanced guidance: attributes that a description leaves out keep the shares that they had.

Guidance favours what the model reads clearly. Among draws for "scale=big" those of digits whose size is hard to tell
become fewer, though nobody asked for that. Of all densities in which each value v of each attribute k that is left out
has its share s_kv, the one nearest to q_w is (I-projection; "raking" in surveys)

.. math:: q_w^b(z|y) \propto q_w(z|y) \exp\Big(\sum_{k,v} \lambda_{kv}\, p(a_k = v \mid z)\Big), \quad
          E_{q_w^b}[p(a_k = v \mid z)] = s_{kv}.

Shares are those in q(z|y) itself where q reads the description; where no description changes q, those at w = 1, which
is the model's own conditional.

References:
    I-Divergence Geometry of Probability Distributions and Minimization Problems (Csiszar, 1975), Ann. Probability 3
    Calibration Estimators in Survey Sampling (Deville, Sarndal, 1992), JASA 87
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mmgen.batch import Batch
from mmgen.errors import UsageError
from mmgen.expressions import Expression
from mmgen.generation._readings import attributes_of, readings
from mmgen.generation.files import ModelFiles

__all__ = ["Balance", "Candidates", "multipliers"]

_RIDGE = 1e-3
"""Weight of |lambda|^2 / 2: where few draws say anything of a share, lambda stays small, and shares miss by a ridge."""
_STEPS, _CLOSE = 100, 1e-9


def multipliers(log_weights: Tensor, readings: Tensor, shares: Tensor) -> Tensor:
    """lambda [S] such that weighed draws have the shares, by Newton's method on the convex dual.

    Args:
        log_weights: Log weights of K draws [K], up to a constant.
        readings: p(a_k = v | z) of each draw [K, S], over values of all attributes that are left out.
        shares: What their weighed mean is to be [S].

    Example:
        >>> two = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> found = multipliers(torch.tensor([2.0, 0.0]), two, torch.tensor([0.5, 0.5]))
        >>> (torch.tensor([2.0, 0.0]) + two.double() @ found).softmax(0)
        tensor([0.5005, 0.4995], dtype=torch.float64)
    """
    weights, readings, shares = log_weights.double(), readings.double(), shares.double()
    found = torch.zeros_like(shares)
    ridge = _RIDGE * torch.eye(len(shares), dtype=found.dtype, device=found.device)

    def dual(at: Tensor) -> Tensor:
        return (weights + readings @ at).logsumexp(0) - at @ shares + _RIDGE / 2 * at @ at

    value = dual(found)
    for _ in range(_STEPS):
        part = (weights + readings @ found).softmax(0)
        mean = part @ readings
        slope = mean - shares + _RIDGE * found
        bend = (readings * part[:, None]).T @ readings - torch.outer(mean, mean) + ridge
        step = torch.linalg.solve(bend, slope)
        decrement = float(slope @ step)
        if decrement < _CLOSE:
            break
        length = 1.0
        while (new := dual(found - length * step)) > value - 0.25 * length * decrement and length > 1e-6:
            length /= 2
        found, value = found - length * step, new
    return found


class Candidates(NamedTuple):
    """Draws of q(z|y) that a description is balanced by.

    Attributes:
        z: [K, D].
        weights: Their log weights under guidance [K].
        before: Log weights [K] under which attributes have the shares that they are to keep.
        parameters: What the decoder of attributes makes of them, where that is known.
    """

    z: Tensor
    weights: Tensor
    before: Tensor
    parameters: Tensor | None = None


class Balance:
    """What balanced guidance adds to the log weights of latents, for any description.

    Args:
        files: The model or aggregate.
        posterior: What is guided.
        draw: Gives the draws that one description is balanced by; the last argument tells descriptions apart.

    Raises:
        UsageError: The model generates no attributes, or the posterior was fitted with guidance.
    """

    def __init__(
        self, files: ModelFiles, posterior: str, draw: Callable[[Batch, Expression | None, str], Candidates]
    ) -> None:
        if files.attributes is None or files.attributes.name not in files.generated_words:
            raise UsageError(
                f"balanced guidance needs p(attributes | z), but {files.model_path} generates "
                f"{' and '.join(files.generated_words)} alone; guide without :balanced"
            )
        if files.fitted_guidance and posterior == files.target:
            raise UsageError(
                f"{files.path} is fitted with guidance, which has changed the shares that balanced guidance keeps; "
                "balance the plain q_agg, or guide this one without :balanced"
            )
        self._files = files
        self._draw = draw
        self._known: dict[str, Tensor] = {}

    def __call__(
        self, z: Tensor, condition: Batch, expression: Expression | None, parameters: Tensor | None = None
    ) -> Tensor:
        """sum of lambda p(a_k = v | z), nats, fp64: z [..., B, D] -> [..., B], or [K, D] of one description -> [K].

        Args:
            z: Latents.
            condition: The B descriptions.
            expression: Negation and alternatives, in their place.
            parameters: What the decoder of attributes makes of z [K, D], where that is known already.
        """
        if z.dim() == 2:
            return self._added(z, condition, expression, parameters)
        rows = [self._added(z[..., b, :], condition[slice(b, b + 1)], expression) for b in range(condition.size)]
        return torch.stack(rows, -1)

    def _added(
        self, z: Tensor, condition: Batch, expression: Expression | None, parameters: Tensor | None = None
    ) -> Tensor:
        asked = self._left_out(condition, expression)
        if not asked:
            return torch.zeros(z.shape[:-1], dtype=torch.float64, device=z.device)
        name = attributes_of(self._files).name
        said = torch.where(condition.present[name], condition.values[name], -1).tolist() if not expression else None
        key = repr((said, None if expression is None else [part.tolist() for part in expression.parts]))
        if key not in self._known:
            drawn = self._draw(condition, expression, key)
            read = readings(self._files, drawn.z, asked, drawn.parameters)
            self._known[key] = multipliers(drawn.weights, read, drawn.before.softmax(0) @ read)
        return readings(self._files, z, asked, parameters) @ self._known[key]

    def _left_out(self, condition: Batch, expression: Expression | None) -> tuple[int, ...]:
        """Attributes of which a description says nothing; none where it says nothing at all."""
        name = attributes_of(self._files).name
        said = condition.present[name][0].cpu().numpy() if expression is None else np.asarray(expression.mentioned)
        return tuple(np.flatnonzero(~said).tolist()) if said.any() else ()

r"""Target: the exact posterior p(y|z)^w p(z) of the model, the baseline of the aggregated posterior.

CK print Eq. 3 without a weight of the text. Their published code has one (``w_logpy``, 200 in the runs on Two
Objects), the weight that the text had in training. A model trained with lambda and beta has the posterior
p(y|z)^(lambda / beta) p(z) of its words; with weight 1 it is p(z|y).

References:
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Eq. 3
"""

import math
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.models import Model
from mmgen.objectives import CONFIG, Bound
from mmgen.posteriors._aggregate import Aggregate
from mmgen.posteriors._base import DensityTask, FitParts, Request, Target
from mmgen.results.naming import Weights, format_weight
from mmgen.training.task import ALONE, Task

__all__ = ["ExactTarget"]


def _parse_text_weight(value: Any) -> Any:
    """Convert the setting to a weight, or to "training"; refuse anything else."""
    if value is None or value == "training":
        return value
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"got {value!r}, expected training or a number of at least 0")
    return number


class ExactTask(DensityTask):
    """Training task that fits a density to the frozen model's own p(y|z)^w p(z).

    Args:
        aggregate: The density.
        model: The frozen model.
        keep_all: Probability that a description stays whole.
        text_weight: w; with 1 the target is p(z|y).
    """

    quantity = "bound"

    def __init__(self, aggregate: Aggregate, model: Model, keep_all: float, text_weight: float = 1.0) -> None:
        super().__init__(aggregate, keep_all)
        self.text_weight = text_weight
        # In a list, so that the frozen model's weights are neither trained nor saved with the density.
        self._model = [model]

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        """Return E_q(z|y)[w log p(y|z) + log p(z) - log q(z|y)] [B] in nats.

        It is at most the log of the integral of p(y|z)^w p(z), which for w = 1 alone is log p(y).
        """
        model, batch = self._model[0], self.hide_attributes(batch)
        z, weights, log_q = self.aggregate.sample_with_log_prob(batch, batch.size)
        log_prior = model.posterior(batch, ()).log_prob(z)
        condition = self.aggregate.condition
        log_likelihood = torch.zeros_like(log_q)
        if condition and condition.name in model.modalities:
            log_likelihood = model.log_likelihood(condition.name, z, batch)

        def weighted_sum(values: Tensor) -> Tensor:
            return (weights * values).sum(0)

        terms = {
            "log p(y|z)": weighted_sum(log_likelihood),
            "log p(z)": weighted_sum(log_prior),
            "log q(z|y)": weighted_sum(log_q),
        }
        value = weighted_sum(self.text_weight * log_likelihood + log_prior - log_q)
        return Bound(value, terms, is_bound=self.text_weight == 1)


@dataclass(frozen=True, config=CONFIG)
class ExactTarget(Target):
    """Target: the exact posterior p(y|z)^w p(z) of the frozen model (CK Eq. 3)."""

    posterior: ClassVar[str] = "true"
    needs_likelihood: ClassVar[bool] = True

    text_weight: Annotated[float | Literal["training"] | None, BeforeValidator(_parse_text_weight)] = None
    """Power w of p(y|z). training is lambda / beta of the model's objective, 1 the exact p(z|y); left out, training."""

    @property
    def weights(self) -> Weights:
        assert isinstance(self.text_weight, float), "the weight is still to be completed"
        return {"text_weight": self.text_weight}

    @property
    def file_name_parts(self) -> list[str]:
        return [f"w{format_weight(self.weights['text_weight'])}"]

    def complete_settings(self, request: Request) -> Self:
        """Return the target with its weight as a number, also for the weight "training".

        If z does not depend on the description, because there is none or decoders see it (CVAE), there is no p(y|z) to
        weight: the target is p(z), with weight 1.

        Raises:
            UsageError: There is no p(y|z) to weight, or its weight in training is no number to fit with.
        """
        given, objective = request.given, request.objective
        if request.description is None or not request.is_generated:
            if request.description is not None and request.description.name not in objective.demands.conditions_on:
                raise UsageError(
                    f"--target true needs p({given} | z), but this model generates no {given}; use --target aggregate"
                )
            if self.text_weight is None:
                return type(self)(1.0)
            reason = f"this model has no p({given} | z)"
            reason = "with --given nothing there is none" if request.description is None else reason
            raise UsageError(
                f"--text-weight got {self._weight_in_words}, but it weighs p(words | z), and {reason}; leave it out"
            )
        if isinstance(self.text_weight, float):
            return self
        weight = objective.training_weight(request.description.name, given)
        if weight is None or not math.isfinite(weight) or weight <= 0:
            reason = "no single weight" if weight is None else "no weight" if weight == 0 else "no divergence to p(z)"
            raise UsageError(
                f"--text-weight training needs the weight that the model's training gave its {given}, but its "
                f"objective has {reason}; give a number, such as --text-weight 1 for the exact p(z | {given})"
            )
        return type(self)(weight)

    @property
    def _weight_in_words(self) -> str:
        """Return the weight as users set it: "training", or a number."""
        return format_weight(self.text_weight) if isinstance(self.text_weight, float) else str(self.text_weight)

    def build_task(self, parts: FitParts) -> Task:
        return ExactTask(parts.aggregate, parts.model, parts.keep_all, self.weights["text_weight"])

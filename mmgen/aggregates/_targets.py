"""What an aggregate is fitted to: CK Eq. 5 (aggregate of image posteriors) or CK Eq. 3 (true posterior of the text).

CK print Eq. 3 without a weight of the text, and their published code has one (``w_logpy``, 200 in the runs on Two
Objects): q_true is fitted there to p(y|z)^200 p(z), with the weight that the text had in training. A model that was
trained with lambda and beta calls the posterior of its words p(y|z)^(lambda / beta) p(z); with weight 1 it is p(z|y).
"""

from typing import Literal

import torch
from torch import Tensor

from mmgen.aggregates._base import Aggregate
from mmgen.core.batch import Batch
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import Attributes
from mmgen.models import Model
from mmgen.objectives import Bound
from mmgen.training.task import ALONE, Task

__all__ = ["FitTask", "Target", "drop_attributes"]

Target = Literal["aggregate", "true"]


def drop_attributes(batch: Batch, name: str, keep_all: float) -> Batch:
    """Hide attributes at random, so that one aggregate answers any partial description.

    A description stays whole with probability ``keep_all``; otherwise the number of attributes kept is uniform on
    0 .. A, and which ones are kept is uniform too. What is unknown in the data stays unknown.
    """
    present = batch.present[name]
    examples, count = present.shape
    kept = torch.randint(0, count + 1, (examples, 1), device=present.device)
    whole = torch.rand(examples, 1, device=present.device) < keep_all
    rank = torch.rand(examples, count, device=present.device).argsort(1)
    mask = present & (whole | (rank < kept))
    values = batch.values[name].masked_fill(~mask, 0)
    return batch | Batch({name: values}, {name: mask})


class FitTask(Task):
    """Fits an aggregate to cached encodings, or to the frozen model's own p(y|z)^w p(z).

    Args:
        aggregate: What is fitted.
        target: "aggregate" or "true".
        model: The frozen model; only "true" uses it.
        keep_all: Probability that a description stays whole.
        text_weight: w, the power of p(y|z) in target "true"; None for 1, with which it is p(z|y).
    """

    def __init__(
        self,
        aggregate: Aggregate,
        target: Target,
        model: Model,
        keep_all: float,
        text_weight: float | None = None,
    ) -> None:
        super().__init__()
        self.aggregate = aggregate
        self.target = target
        self.quantity = "bound" if target == "true" else "minus KL"
        self.keep_all = keep_all
        self.text_weight = 1.0 if text_weight is None else text_weight
        # In a list, so that the frozen model's weights are neither trained nor saved with the aggregate.
        self._model = [model]

    def forward(self, batch: Batch, step: int | None, player: str = ALONE) -> Bound:
        condition = self.aggregate.condition
        # Attributes are left out at random, sentences are whole.
        described = (
            drop_attributes(batch, condition.name, self.keep_all) if isinstance(condition, Attributes) else batch
        )
        return self._to_encodings(described) if self.target == "aggregate" else self._to_true_posterior(described)

    def _to_encodings(self, batch: Batch) -> Bound:
        r"""Minus KL(q(z|x) || q(z|y)), fresh noise at every step (CK Eq. 5); for q(z), E log q(z) (CK Section 3)."""
        encoding = DiagonalGaussian(batch.values["mean"], batch.values["log_sd"])
        log_q = self.aggregate.log_fitted(encoding.sample(), batch)
        entropy = encoding.entropy()
        return Bound(log_q + entropy, {"log q(z|y)": log_q, "entropy of q(z|x)": entropy})

    def _to_true_posterior(self, batch: Batch) -> Bound:
        r"""CK Eq. 3 with the weight of CK's code: E_q(z|y)[w log p(y|z) + log p(z) - log q(z|y)]; the model is frozen.

        It is at most log of the integral of p(y|z)^w p(z), which at w = 1 alone is log p(y).
        """
        model = self._model[0]
        z, weights, log_q = self.aggregate.with_density(batch, batch.size)
        log_prior = model.log_prior(z)
        condition = self.aggregate.condition
        log_likelihood = torch.zeros_like(log_q)
        if condition and condition.name in model.modalities:
            log_likelihood = model.log_likelihood(condition.name, z, batch)

        def mean(values: Tensor) -> Tensor:
            return (weights * values).sum(0)

        terms = {"log p(y|z)": mean(log_likelihood), "log p(z)": mean(log_prior), "log q(z|y)": mean(log_q)}
        value = mean(self.text_weight * log_likelihood + log_prior - log_q)
        return Bound(value, terms, is_bound=self.text_weight == 1)

    def saved_tensors(self) -> dict[str, Tensor]:
        return dict(self.aggregate.state_dict())

"""Number of trained parameters, of the inference networks and of the whole model.

References:
    Multimodal Generative Models for Scalable Weakly-Supervised Learning (Wu, Goodman, 2018), arXiv:1802.05335, Table 1
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

from mmgen.metrics._base import Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Parameters"]


class Parameters(Metric):
    """Number of trained parameters: of all inference networks together (WG Table 1), and of the whole model."""

    unit = "parameters"
    better = "lower"
    posteriors = "none"
    reads = ()

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        model = evaluation.loaded.model
        parts = {"inference networks": model.inference_parameters(), "whole model": list(model.parameters())}
        yield 1.0
        return [
            self.score(evaluation, sum(parameter.numel() for parameter in part), None, 1, quantity=quantity)
            for quantity, part in parts.items()
        ]

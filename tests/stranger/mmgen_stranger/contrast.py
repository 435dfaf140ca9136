"""Contrast: how far the lightest and the darkest place of a reconstructed picture lie apart."""

import math
from collections.abc import Generator
from typing import TYPE_CHECKING

import torch

from mmgen.evaluation import needs
from mmgen.metrics import Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Contrast"]


class Contrast(Metric):
    """Mean over data points of max - min of E[x | z] at the mean of q(z | what the decoders were trained from)."""

    unit = "%"
    better = "higher"
    posteriors = "none"
    points = "seen"
    needs = (needs.explain_missing_drawings,)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        """Measure: yields the fraction done and returns the scores."""
        loaded = evaluation.loaded
        assert loaded.image is not None
        points = evaluation.data_points
        z = loaded.model.posterior(points, loaded.encoder_inputs).mean
        pictures = 100 * loaded.model.mean(loaded.image.name, z).flatten(1)
        spread = (pictures.amax(1) - pictures.amin(1)).double()
        yield 1.0
        return [
            self.score(
                evaluation,
                spread.mean().item(),
                spread.std().item() / math.sqrt(len(spread)) if len(spread) > 1 else None,
                len(spread),
                quantity="lightest - darkest",
            )
        ]

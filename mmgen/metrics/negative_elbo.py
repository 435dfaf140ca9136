"""The negative evidence lower bound of pictures, and its two parts: reconstruction error and KL.

References:
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114, Eq. 3
    Disentangling by Factorising (Kim, Mnih, 2018), arXiv:1802.05983, Figure 4: reconstruction error
"""

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from mmgen.core.seeding import torch_generator
from mmgen.evaluation import needs
from mmgen.evaluation.importance import latents_per_pass
from mmgen.evaluation.proposals import mean_and_error
from mmgen.evaluation.provenance import kind_of_pixels
from mmgen.evaluation.settings import POINTS
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.posteriors import encode_points

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["NegativeElbo"]


_AT_ONCE = 512
"""Examples encoded together."""


def _missing_gaussian_posterior(evaluation: "Evaluation") -> str:
    """Return why the model has no p(image | z) or no q(z | x) that is one Gaussian; "" if it has both."""
    main, model = evaluation.loaded.observation, evaluation.loaded.model
    if not {"gaussian", "density"} <= model.capabilities:
        return (
            "needs a model whose q(z | x) is one Gaussian; use --metric log-likelihood, whose bound on log p(x) is "
            "known for other models too"
        )
    if main is None or main.name not in model.generates or model.conditional_on:
        return "needs p(image | z), and this model has none; use another metric or model"
    return ""


class NegativeElbo(Metric):
    r"""Negative ELBO of pictures in nats per picture, without the weights beta or lambda of training.

    .. math:: -E_{q(z|x)}[\log p(x|z)] + KL(q(z|x) \,\|\, p(z))

    Quantities: ``negative ELBO``, and its parts ``reconstruction error`` (the expectation, over K draws of z) and
    ``KL`` (in closed form). A lower sum is better; each part falls as the other rises. The standard error is over
    pictures, each the mean of its K draws.
    """

    unit = "nats"
    better = "lower"
    posteriors = "none"
    points = "averaged"
    reads = ("samples", *POINTS)
    columns: ClassVar = {"pixels": "pixels", "draws of z": "samples"}
    needs = (_missing_gaussian_posterior, needs.explain_missing_image_encoder)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, points, settings = evaluation.loaded, evaluation.data_points, evaluation.settings
        assert loaded.observation is not None
        model, name = loaded.model, loaded.observation.name
        generator = torch_generator(settings.seed, "negative ELBO", device=loaded.device)
        errors: list[Tensor] = []
        costs: list[Tensor] = []
        for start in range(0, points.size, _AT_ONCE):
            batch = points[slice(start, start + _AT_ONCE)]
            q = encode_points(model, batch, (name,), settings.precision)
            prior = model.posterior(batch, ())
            assert isinstance(prior, DiagonalGaussian)  # needs refuse all others
            costs.append(q.kl(prior).double())
            total = torch.zeros(batch.size, dtype=torch.float64, device=loaded.device)
            step = max(1, latents_per_pass(math.prod(loaded.observation.event_shape)) // batch.size)
            for first in range(0, settings.samples, step):
                z = q.sample(generator, (min(step, settings.samples - first),))
                total -= model.log_likelihood(name, z, batch).double().sum(0)
                yield (start + batch.size * min(1.0, (first + step) / settings.samples)) / points.size
            errors.append(total / settings.samples)
        error, cost = torch.cat(errors).cpu(), torch.cat(costs).cpu()
        parts = {"negative ELBO": error + cost, "reconstruction error": error, "KL": cost}
        return [
            self.score(
                evaluation,
                *mean_and_error(values),
                len(values),
                quantity=quantity,
                posterior=name,
                points=ExampleValues.from_values(values.tolist()),
                details={"samples": settings.samples, "pixels": kind_of_pixels(evaluation)},
            )
            for quantity, values in parts.items()
        ]

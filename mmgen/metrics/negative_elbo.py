"""The negative evidence lower bound of pictures and its two parts: what reconstruction costs, and what z costs.

References:
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114, Eq. 3
    Disentangling by Factorising (Kim, Mnih, 2018), arXiv:1802.05983, Figure 4: reconstruction error
"""

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.core.seeding import torch_generator
from mmgen.evaluation.errors import summarise
from mmgen.evaluation.importance import passes
from mmgen.evaluation.settings import POINTS
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics._base import Metric, Score
from mmgen.posteriors import encode_points
from mmgen.results.score import Points

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["NegativeElbo"]

_AT_ONCE = 512
"""Examples encoded together."""


class NegativeElbo(Metric):
    r"""-ELBO of pictures alone, nats a picture, without the beta or lambda of training.

    .. math:: -E_{q(z|x)}[\log p(x|z)] + KL(q(z|x) \,\|\, p(z))

    Quantities: ``negative ELBO``, and its parts ``reconstruction error`` (the expectation, over K draws of z) and
    ``KL`` (in closed form). Less is better of the sum; of the parts alone each falls as the other rises. The error is
    over pictures, each the mean of its K draws.
    """

    unit = "nats"
    better = "lower"
    takes_guidance = False
    per_posterior = False
    scores_points = True
    values_of_points = True
    reads = ("samples", *POINTS)
    columns: ClassVar = {"pixels": "pixels", "draws of z": "samples"}

    def check(self, evaluation: "Evaluation") -> None:
        loaded = evaluation.loaded
        main, model = loaded.observation, loaded.model
        if not {"gaussian", "density"} <= model.capabilities:
            raise UsageError(
                "negative-elbo is of models whose q(z | x) is one Gaussian; of others, --metric log-likelihood has the "
                "bound on log p(x)"
            )
        if main is None or main.name not in model.generates or model.conditional_on:
            raise UsageError("negative-elbo is of a model with p(image | z); this one has none")
        if not model.answers((main.name,)):
            raise UsageError("negative-elbo is of a model with q(z | image); this one has none")
        evaluation.check_images((main.name,))

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, points, settings = evaluation.loaded, evaluation.points, evaluation.settings
        assert loaded.observation is not None
        model, name = loaded.model, loaded.observation.name
        generator = torch_generator(settings.seed, "negative ELBO", device=loaded.device)
        errors: list[Tensor] = []
        costs: list[Tensor] = []
        for start in range(0, points.size, _AT_ONCE):
            batch = points[slice(start, start + _AT_ONCE)]
            q = encode_points(model, batch, (name,), settings.precision)
            prior = model.posterior(batch, ())
            assert isinstance(prior, DiagonalGaussian)  # check() has refused all others
            costs.append(q.kl(prior).double())
            total = torch.zeros(batch.size, dtype=torch.float64, device=loaded.device)
            step = max(1, passes(math.prod(loaded.observation.event_shape)) // batch.size)
            for first in range(0, settings.samples, step):
                z = q.sample(generator, (min(step, settings.samples - first),))
                total -= model.log_likelihood(name, z, batch).double().sum(0)
                yield (start + batch.size * min(1.0, (first + step) / settings.samples)) / points.size
            errors.append(total / settings.samples)
        error, cost = torch.cat(errors).cpu(), torch.cat(costs).cpu()
        return [
            _score(evaluation, quantity, values)
            for quantity, values in (("negative ELBO", error + cost), ("reconstruction error", error), ("KL", cost))
        ]


def _score(evaluation: "Evaluation", quantity: str, values: Tensor) -> Score:
    mean, stderr = summarise(values)
    assert evaluation.loaded.observation is not None
    return Score(
        metric="negative-elbo",
        quantity=quantity,
        value=mean,
        stderr=stderr,
        unit="nats",
        better="lower",
        n=len(values),
        posterior=evaluation.loaded.observation.name,
        ids=evaluation.ids,
        points=Points.of(values.tolist()),
        details={
            "samples": evaluation.settings.samples,
            "pixels": evaluation.pixels,
        },
    )

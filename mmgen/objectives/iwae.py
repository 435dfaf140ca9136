"""Importance-weighted autoencoder: a bound by k draws of z, which gets tighter with k.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), Eq. 8, arXiv:1509.00519
"""

import math
from typing import Annotated

from pydantic import Field
from torch import Tensor

from mmgen.core.batch import Batch
from mmgen.models import USUAL_NEEDS, Demands, Model
from mmgen.objectives._base import Bound, Modalities, WeightedObjective

__all__ = ["Iwae"]


class Iwae(WeightedObjective, settings=True):
    r"""Importance-weighted bound: log of the mean of k importance weights, with draws from one posterior.

    .. math:: E_{z_1, \ldots, z_k \sim q(z|g)}\Big[\log \frac{1}{k} \sum_{i=1}^k
              \frac{p(z_i) \prod_m p(x_m|z_i)^{\lambda_m}}{q(z_i|g)}\Big] \qquad \text{(Burda Eq. 8)}

    With k = 1 it is the ELBO, and its divergence to p(z) is then taken in closed form, as ``elbo`` takes it: the same
    value for the same noise. With unit weights it is a bound on log p(x) for every k; other weights make it a bound on
    the log of the same integral with p(x_m|z)^lambda_m, which is no log-likelihood of anything.

    There is no ``beta`` and no ``kl_warmup_steps``: the weights of k draws hold the divergence within a logarithm, from
    where no weight of its own can be taken out. For a posterior that is trained with either, train with ``elbo`` first
    and continue from that model (``mmgen train --from``).
    """

    samples: Annotated[int, Field(ge=1)] = 5
    """k, draws of z of each example (Burda: 5 and 50)."""
    modalities: Modalities = ("image", "attributes")
    """What is generated: image, attributes, text or further images by name; ("image",) is the paper's model."""
    given: tuple[str, ...] = ("image",)
    """What the posterior sees."""

    @property
    def demands(self) -> Demands:
        inference = "image-only" if self.given == ("image",) else "joint"
        needs = USUAL_NEEDS | {"independent"} if self.samples > 1 else USUAL_NEEDS
        return Demands(frozenset([self.given]), self.modalities, inference=inference, needs=needs)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return lambda_m: for every k the bound is greatest where q(z|g) is p(z) times the product of
        p(x_m|z)^lambda_m.
        """
        return self.weight(name, kind)

    def __call__(self, model: Model, batch: Batch, step: int | None = None) -> Bound:
        trace = model.trace(batch, self.given, self.samples, self.modalities)
        weights = self.weights_of(model, self.modalities)
        likely = trace.expected_log_likelihood
        if self.samples == 1:
            value = sum((weights[name] * term for name, term in likely.items()), -trace.total_divergence)
        else:
            value = log_mean_weight(trace.log_weight(weights))
        terms = {f"log p({name}|z)": term for name, term in likely.items()} | trace.layer_divergences
        return Bound(value, terms, is_bound=all(weight == 1 for weight in weights.values()))


def log_mean_weight(log_weights: Tensor) -> Tensor:
    """Return the log of the mean weight [B] over K draws, from log weights [K, B]."""
    if len(log_weights) == 1:
        return log_weights[0]  # to the last bit
    return log_weights.logsumexp(0) - math.log(len(log_weights))

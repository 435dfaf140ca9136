"""The evidence lower bound: VAE, beta-VAE, joint VAE, and with inference from images alone CK's model.

References:
    Auto-Encoding Variational Bayes (Kingma, Welling, 2014), arXiv:1312.6114
    beta-VAE (Higgins et al., 2017)
    On the Importance of Learning Aggregate Posteriors (Cremer, Kushman, 2018), Eq. 2
"""

from typing import Annotated

from pydantic import Field

from mmgen.core.batch import Batch
from mmgen.models import Demands, Model
from mmgen.objectives._base import Bound, Modalities, WeightedObjective, relative_weight, warmup_weight

__all__ = ["Elbo"]


class Elbo(WeightedObjective, settings=True):
    r"""Evidence lower bound on the log-likelihood of all modalities, through one posterior.

    .. math:: E_{q(z|g)}\Big[\sum_m \lambda_m \log p(x_m|z)\Big] - \beta \, KL(q(z|g) \,\|\, p(z))  \qquad \text{(VE
    Eq. 1)}
    """

    modalities: Modalities = ("image", "attributes")
    """What is generated: image, attributes, text or further images by name; ("image",) is the plain VAE."""
    given: tuple[str, ...] = ("image",)
    """What the posterior sees; ("image",) with both modalities generated is CK Eq. 2."""
    beta: Annotated[float, Field(ge=0)] = 1.0
    """Weight of the divergence; above 1 is beta-VAE."""
    kl_warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps over which the divergence is switched on."""
    samples: Annotated[int, Field(ge=1)] = 1
    """Draws of z of each example, over which the likelihoods are averaged: the same bound with quieter gradients
    (Burda et al., 2016, Table 1: "VAE, k = 5"). For a tighter bound from k draws see the objective iwae."""

    @property
    def demands(self) -> Demands:
        inference = "image-only" if self.given == ("image",) else "joint"
        return Demands(frozenset([self.given]), generates=self.modalities, inference=inference)

    def training_weight(self, name: str, kind: str | None = None) -> float | None:
        """Return lambda_m / beta: the bound weighs modality m against the divergence by this ratio.

        Maximised over all densities, q(z|g) is p(z) times the product of p(x_m|z)^(lambda_m / beta); of the description
        alone that leaves p(y|z)^(lambda_y / beta) p(z).
        """
        return relative_weight(self.weight(name, kind), self.beta)

    def __call__(self, model: Model, batch: Batch, step: int | None = None) -> Bound:
        trace = model.trace(batch, self.given, None if self.samples == 1 else self.samples, self.modalities)
        likely = trace.expected_log_likelihood
        weights = self.weights_of(model, self.modalities)
        scale = self.beta * warmup_weight(step, self.kl_warmup_steps)
        value = sum((weights[name] * term for name, term in likely.items()), -scale * trace.total_divergence)
        exact = all(weight == 1 for weight in weights.values()) and scale >= 1
        return Bound(
            value, {f"log p({name}|z)": term for name, term in likely.items()} | trace.layer_divergences, exact
        )

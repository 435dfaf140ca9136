r"""The cost of z in three parts: information on the example, total correlation, and how each dimension is spread.

References:
    ELBO surgery: yet another way to carve up the variational evidence lower bound (Hoffman, Johnson, 2016)
    Isolating Sources of Disentanglement in Variational Autoencoders (Chen et al., 2018), arXiv:1802.04942, Eq. 2
"""

import math
from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.core.seeding import numpy_generator, torch_generator
from mmgen.evaluation import needs
from mmgen.evaluation.settings import ENCODINGS
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics._base import Metric, Score
from mmgen.posteriors import encode_in_slices
from mmgen.training.batches import DatasetRows

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["TotalCorrelation"]


_READ = 4096
"""Examples encoded together."""
_PAIRS = 2**17
"""Densities computed at a time, which fit into a processor's cache."""
_OF_EXAMPLES = ("mutual information", "total correlation")
"""Quantities that depend on the number of examples."""
_NEAR = 1.0
"""Nats below log N from which I(x; z) counts as cut off."""
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


def _missing_single_gaussian(evaluation: "Evaluation") -> str:
    """Return why q(z | image) of the model is no single Gaussian; "" if it is one."""
    model = evaluation.loaded.model
    noisy = "density" in model.capabilities
    if noisy and len(model.latent.layers) == 1:
        return ""
    several = "has labels beside z" if model.latent_modalities else "has several layers of z"
    kind = several if noisy else "encodes without noise"
    return f"needs a q(z | image) that is one Gaussian; this model {kind}"


class TotalCorrelation(Metric):
    r"""Decomposition of the mean divergence from q(z|x) to p(z), in nats:

    .. math:: E_x KL(q(z|x) \,\|\, p(z)) = I(x; z) + KL(q(z) \,\|\, \prod_d q(z_d)) + \sum_d KL(q(z_d) \,\|\, p(z_d))

    q(z) is the mixture of all N encodings, summed exactly, not over batches. Only z is drawn, once for each example;
    standard errors are those of these draws and do not include the choice of examples. I(x; z) is at most log N
    (``log_examples``), and a model that comes near it would have more with more examples. The missing part is counted
    in the total correlation, which is biased upwards: it is large for posteriors much narrower than the distances
    between them, even where q(z) factorises. Where I(x; z) is within a nat of log N, both scores carry a warning that
    they are bounds. The divergence in closed form stands beside the parts, whose sum equals it within their errors.
    Neither direction is better, since the parts trade off.
    """

    unit = "nats"
    better = "neither"
    posteriors = "none"
    points = "seen"
    reads = ENCODINGS
    columns: ClassVar = {"N": "examples", "log N": "log_examples"}
    conditions = ("examples",)
    needs = (needs.explain_missing_image_encoder, _missing_single_gaussian)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        assert evaluation.loaded.observation is not None
        q = _encode_images(evaluation)
        z = q.sample(torch_generator(evaluation.settings.seed, "total correlation", device=q.mean.device))
        parts = []
        for rows, found in mixture_log_densities(z, q):
            parts.append(found)
            yield rows.stop / len(z)
        joint, marginals = (torch.cat([part[k] for part in parts]).double() for k in (0, 1))
        prior = DiagonalGaussian.standard(*z.shape, like=z)
        standard = (-0.5 * z.double().square() - _HALF_LOG_2_PI).sum(1)
        quantities = {
            "kl of q(z|x) to p(z)": q.kl(prior).double(),
            "mutual information": q.log_prob(z).double() - joint,
            "total correlation": joint - marginals.sum(1),
            "dimension-wise kl": marginals.sum(1) - standard,
        }
        count = len(z)
        bounds = _bound_warnings(float(quantities["mutual information"].mean()), count)
        return [
            self.score(
                evaluation,
                float(values.mean()),
                float(values.std() / math.sqrt(count)),
                count,
                quantity=quantity,
                posterior=evaluation.loaded.observation.name,
                protocol=f"mixture of {count:,}",
                warnings=(bounds[quantity],) if quantity in bounds else (),
                details={"latent_size": z.shape[1], "examples": count}
                | ({"log_examples": math.log(count)} if quantity in _OF_EXAMPLES else {}),
            )
            for quantity, values in quantities.items()
        ]


def _bound_warnings(information: float, count: int) -> dict[str, str]:
    """Return a warning for each quantity of which these few examples can estimate only a bound."""
    if information < math.log(count) - _NEAR:
        return {}
    reason = f"I(x; z) comes near log N = {math.log(count):.2f}, the most that N = {count:,} encodings can show"
    return {
        "mutual information": f"at least this, not an estimate: {reason}",
        "total correlation": f"at most this, not an estimate: {reason}, and what it lacks is counted here",
    }


def _encode_images(evaluation: "Evaluation") -> DiagonalGaussian:
    """Return q(z | image) of a random half of the images, as many as in a repeat of other disentanglement metrics."""
    settings, loaded = evaluation.settings, evaluation.loaded
    assert loaded.observation is not None
    rows = evaluation.rows()
    count = (settings.encodings + 1) // 2
    chosen = numpy_generator(settings.seed, "encodings").permutation(len(rows))[:count]
    if len(chosen) < 2:
        raise UsageError(
            f"total-correlation got {len(chosen)} images, expected at least two; choose others with --part or --split"
        )
    source = DatasetRows(evaluation.dataset, rows[np.sort(chosen)], loaded.device, seed=settings.seed)
    fixed = (
        (loaded.observation.name,),
        settings.precision,
        torch_generator(settings.seed, "layers", device=loaded.device),
    )
    found = [
        posterior
        for some in torch.arange(len(source)).split(_READ)
        for _, posterior in encode_in_slices(loaded.model, source.batch(some), *fixed)
    ]
    return DiagonalGaussian(*(torch.cat([getattr(one, name) for one in found]) for name in ("mean", "log_sd")))


def mixture_log_densities(z: Tensor, q: DiagonalGaussian) -> Generator[tuple[slice, tuple[Tensor, Tensor]], None, None]:
    """Yield slices of rows with log q(z) [n] and log q(z_d) [n, D] of one draw each, in nats; q mixes the posteriors of
    all rows.

    q(z) is the mixture of all N posteriors with equal weights.

    Args:
        z: One draw of each posterior [N, D]. Its own posterior has density there, so that densities of single
            dimensions can be added without underflow.
        q: The N posteriors [N, D].
    """
    count, size = q.mean.shape
    mean, precise = q.mean.T.contiguous(), (-q.log_sd).exp().T.contiguous()
    constant = (-q.log_sd - _HALF_LOG_2_PI).T.contiguous()
    at_once = max(1, _PAIRS // count)
    for start in range(0, len(z), at_once):
        rows = slice(start, min(start + at_once, len(z)))
        joint = z.new_zeros(rows.stop - start, count)
        marginals = []
        for d in range(size):
            density = z[rows, d, None] - mean[d]
            density.mul_(precise[d]).square_().mul_(-0.5).add_(constant[d])
            joint += density
            marginals.append(density.exp_().sum(1).log() - math.log(count))
        yield rows, (joint.logsumexp(1) - math.log(count), torch.stack(marginals, 1))

"""Active units: how many latent dimensions carry information about the data.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5.2
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mmgen.core.seeding import torch_generator
from mmgen.evaluation import needs
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import Metric, Score
from mmgen.posteriors import means_in_slices

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["ActiveUnits"]


_THRESHOLD = 0.01
_RESAMPLES = 200


def unit_activity(means: Tensor) -> Tensor:
    """Return the activity of each latent dimension, Var_x(E_q[z_u]) [D], from posterior means [N, D], in float64."""
    return means.double().var(0)


class ActiveUnits(Metric):
    r"""Number of latent dimensions u that are in use: :math:`A_u = Var_x(E_{q(z|x)}[z_u]) > 0.01`; error by bootstrap.

    A model with several layers has a count for each too. The mean of a layer above the first is given one draw of the
    layers below, as in the code of Burda et al. (2016): its variance holds some of that of the draw, so that a unit
    that follows only the draw can count.
    """

    unit = "units"
    better = "higher"
    posteriors = "none"
    points = "seen"
    reads = POINTS
    needs = (needs.explain_missing_encodings,)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, points, settings = evaluation.loaded, evaluation.data_points, evaluation.settings
        parts, draws = [], torch_generator(settings.seed, "layers of active units", device=loaded.device)
        for rows, part in means_in_slices(
            loaded.model, points, evaluation.source_modalities, settings.precision, draws
        ):
            parts.append(part.double())
            yield rows.stop / points.size
        means = torch.cat(parts).cpu()
        active = unit_activity(means)
        generator = torch_generator(settings.seed, "active units", device=means.device)
        choices = (torch.randint(len(means), (len(means),), generator=generator) for _ in range(_RESAMPLES))
        resampled = torch.stack([unit_activity(means[rows]) > _THRESHOLD for rows in choices])  # [resamples, D]
        quantities = {"active units": slice(None)}
        start, layers = 0, loaded.model.latent.layers
        for layer, size in layers.items() if len(layers) > 1 else ():
            quantities[f"active units of {layer}"] = slice(start, start + size)
            start += size
        return [
            self.score(
                evaluation,
                float((active[units] > _THRESHOLD).sum()),
                float(resampled[:, units].sum(1).double().std()),
                points.size,
                quantity=quantity,
                posterior="+".join(evaluation.source_modalities),
                protocol=f"variance above {_THRESHOLD}",
                details={"latent_size": len(active[units]), "activity": active[units].tolist()},
            )
            for quantity, units in quantities.items()
        ]

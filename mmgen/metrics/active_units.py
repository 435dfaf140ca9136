"""Active units: how many latent dimensions carry information about the data.

References:
    Importance Weighted Autoencoders (Burda, Grosse, Salakhutdinov, 2016), arXiv:1509.00519, Section 5.2
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mmgen.core.errors import UsageError
from mmgen.core.seeding import torch_generator
from mmgen.evaluation.settings import POINTS
from mmgen.metrics._base import Metric, Score
from mmgen.posteriors import mean_parts

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["ActiveUnits"]

_THRESHOLD = 0.01
_RESAMPLES = 200


def activity(means: Tensor) -> Tensor:
    """A_u = Var_x(E_q[z_u]) [D] of posterior means [N, D], in float64."""
    return means.double().var(0)


def _given(evaluation: "Evaluation") -> tuple[str, ...]:
    """Return what the posterior is given: the main modality, or the decoders' where there is no q(z | x)."""
    loaded = evaluation.loaded
    assert loaded.observation is not None
    return (loaded.observation.name,) if loaded.model.answers((loaded.observation.name,)) else loaded.encoder_given


class ActiveUnits(Metric):
    r"""Number of units u with :math:`A_u = Var_x(E_{q(z|x)}[z_u]) > 0.01`; standard error by bootstrap over points.

    Of several layers, each is counted too; the mean of a layer above the first is given one draw of those below, as in
    the code of Burda et al. (2016), so that counts stand beside theirs: its variance holds some of that of the draw,
    and a unit of such a layer that only follows the draw, and nothing of the data, can count.
    """

    unit = "units"
    better = "higher"
    takes_guidance = False
    per_posterior = False
    scores_points = True
    reads = POINTS

    def check(self, evaluation: "Evaluation") -> None:
        known = evaluation.loaded.settings.data.modalities
        joined = [name for name, described in known.items() if not described.by_rows]
        if evaluation.loaded.observation is None or joined:
            raise UsageError("active units are of a model that encodes examples by themselves; this one does not")
        evaluation.check_images(_given(evaluation))

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        loaded, points = evaluation.loaded, evaluation.points
        given = _given(evaluation)
        parts, draws = [], torch_generator(evaluation.settings.seed, "layers of active units", device=loaded.device)
        for rows, part in mean_parts(loaded.model, points, given, evaluation.settings.precision, draws):
            parts.append(part.double())
            yield rows.stop / points.size
        means = torch.cat(parts).cpu()
        active = activity(means)
        generator = torch_generator(evaluation.settings.seed, "active units", device=means.device)
        chosen = (torch.randint(len(means), (len(means),), generator=generator) for _ in range(_RESAMPLES))
        resampled = torch.stack([activity(means[rows]) > _THRESHOLD for rows in chosen])  # [resamples, D]
        quantities = {"active units": slice(None)}
        start, layers = 0, loaded.model.latent.layers
        for layer, size in layers.items() if len(layers) > 1 else ():
            quantities[f"active units of {layer}"] = slice(start, start + size)
            start += size
        return [
            Score(
                metric="active-units",
                quantity=quantity,
                value=float((active[units] > _THRESHOLD).sum()),
                stderr=float(resampled[:, units].sum(1).double().std()),
                unit=self.unit,
                better="higher",
                n=points.size,
                posterior="+".join(given),
                protocol=f"variance above {_THRESHOLD}",
                ids=evaluation.ids,
                details={"latent_size": len(active[units]), "activity": active[units].tolist()},
            )
            for quantity, units in quantities.items()
        ]

"""Reconstruction: how much of a held-out picture's description survives the way through z, as the judge reads it.

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Section 5.4: the judge, which is told the relation
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import torch_generator
from mmgen.evaluation.settings import POINTS
from mmgen.generation.decode import means, means_and_draws
from mmgen.metrics._base import Metric, Score
from mmgen.posteriors import posterior_of
from mmgen.results.score import Points
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation.evaluation import Evaluation

__all__ = ["Reconstruction"]

_CHUNK = 256


class Reconstruction(Metric):
    r"""Mean over data points and known attributes of [judge of the decoded picture = true].

    .. math:: \frac{1}{N} \sum_n \frac{1}{|O_n|} \sum_{k \in O_n} I(\hat y_k(E[x | z_n]) = y_{nk}), \quad
              z_n = E_{q(z|x_n)}[z]

    It is the ceiling of every posterior fitted to encodings: what the decoder does not draw from a picture's own z, it
    draws from no description. ``details`` hold what the same judge reads off the real pictures of the same points.

    Protocol ``exact`` is over the words that the judge says. One that is told words (CK 5.4: the relation) gives
    ``paper`` too, over all words, the told ones among them, which always match.
    """

    unit = "%"
    better = "higher"
    judged = True
    takes_guidance = False
    per_posterior = False
    scores_points = True
    values_of_points = True
    reads = POINTS

    def check(self, evaluation: "Evaluation") -> None:
        loaded = evaluation.loaded
        if loaded.observation is None or loaded.observation.name not in loaded.model.modalities:
            raise UsageError(
                "reconstruction is of a model that draws pictures, and this one does not; use another metric"
            )
        if not loaded.model.answers(_given(evaluation)):
            raise UsageError(
                f"reconstruction needs q(z | {loaded.observation.name}), and this model has no such posterior"
            )

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        points, codes = evaluation.points, _codes(evaluation)
        decoded: list[NDArray[np.uint8]] = []
        real: list[NDArray[np.uint8]] = []
        loaded, precision = evaluation.loaded, evaluation.settings.precision
        seed = evaluation.settings.seed
        encoded = posterior_of(loaded.model, points, _given(evaluation), precision, seed).mean
        for start in range(0, points.size, _CHUNK):
            part = points[slice(start, start + _CHUNK)]
            told = codes[start : start + _CHUNK]
            pictures = _decoded(evaluation, part, encoded[start : start + _CHUNK], start)
            assert evaluation.loaded.observation is not None
            for shown, read in ((pictures, decoded), (part.values[evaluation.loaded.observation.name], real)):
                seen = evaluation.judge.predict(shown, torch.from_numpy(told), evaluation.settings.precision)
                read.append(seen.cpu().numpy())
            yield min(1.0, (start + _CHUNK) / points.size)
        read_of, read_real = np.concatenate(decoded), np.concatenate(real)
        scores = [_score(evaluation, codes, read_of, read_real, "exact", evaluation.told)]
        if evaluation.told:
            scores.insert(0, _score(evaluation, codes, read_of, read_real, "paper", ()))
        return scores


def _given(evaluation: "Evaluation") -> tuple[str, ...]:
    """What z is inferred from: the picture alone where the model can, else what it was trained to infer from."""
    loaded = evaluation.loaded
    assert loaded.observation is not None
    alone = (loaded.observation.name,)
    return alone if loaded.model.answers(alone) else loaded.encoder_given


def _codes(evaluation: "Evaluation") -> NDArray[np.uint8]:
    """True attributes of the points, uint8 [N, A], ``UNKNOWN`` where the data do not say."""
    points, name = evaluation.points, evaluation.info.name
    codes = points.values[name].masked_fill(~points.present[name], UNKNOWN)
    return codes.cpu().numpy().astype(np.uint8)


def _decoded(evaluation: "Evaluation", points: Batch, z: torch.Tensor, number: int) -> torch.Tensor:
    """Pictures [B, C, H, W] of encodings z [B, D], as the judge is to see them."""
    loaded, settings = evaluation.loaded, evaluation.settings
    assert loaded.observation is not None
    if not evaluation.draws.sampled:
        return means(loaded, loaded.observation.name, z, points, settings.precision)
    generator = torch_generator(settings.seed, "reconstruction", number, device=str(loaded.device))
    return means_and_draws(loaded, loaded.observation.name, z, points, generator, settings.precision)[1]


def _score(
    evaluation: "Evaluation",
    codes: NDArray[np.uint8],
    decoded: NDArray[np.uint8],
    real: NDArray[np.uint8],
    protocol: str,
    left_out: tuple[int, ...],
) -> Score:
    """Agreement of what is read with the true codes, all [N, A]; the error is over points."""
    known = codes != UNKNOWN
    known[:, list(left_out)] = False
    points = known.any(1)
    if not points.any():
        raise UsageError(
            f"no data point of the {evaluation.settings.part} part has a known attribute that the judge reads; choose "
            "another with --part"
        )

    def shares(read: NDArray[np.uint8]) -> NDArray[np.float64]:
        right = ((read == codes) & known)[points]
        return np.asarray(100.0 * right.sum(1) / known[points].sum(1), np.float64)

    of_point, of_real = shares(decoded), shares(real)
    count = len(of_point)
    spread = float(of_point.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0
    names = evaluation.info.names
    return Score(
        metric="reconstruction",
        quantity="reconstruction",
        value=float(of_point.mean()),
        stderr=share_error(float(of_point.mean()), spread, count),
        unit="%",
        better="higher",
        n=count,
        posterior="+".join(_given(evaluation)),
        protocol=protocol,
        judge_accuracy=evaluation.judge.accuracy or None,
        ids=evaluation.judged_ids,
        by_attribute={
            name: 100 * float((decoded == codes)[known[:, k], k].mean())
            for k, name in enumerate(names)
            if known[:, k].any()
        },
        points=Points.of(of_point),
        details={
            "real": float(of_real.mean()),
            "pixels": "sampled" if evaluation.draws.sampled else "mean",
        },
    )

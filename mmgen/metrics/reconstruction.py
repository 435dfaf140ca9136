"""Reconstruction: the share of a picture's attributes that a classifier still sees after encoding and decoding.

References:
    On the Importance of Learning Aggregate Posteriors in Multimodal Variational Autoencoders (Cremer, Kushman, 2018),
    Section 5.4: the classifier, which gets the relation as input
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import torch_generator
from mmgen.evaluation import needs
from mmgen.evaluation.settings import POINTS
from mmgen.generation.decode import decode_means, decode_means_and_draws
from mmgen.metrics._base import ExampleValues, Metric, Score
from mmgen.metrics._worst import RIGHT_COLUMNS, count_right
from mmgen.posteriors import posterior_of
from mmgen.results.standard_errors import share_error

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Reconstruction"]


_CHUNK = 256


def _missing_autoencoder(evaluation: "Evaluation") -> str:
    """Return why the model cannot reconstruct images, without p(image | z) or q(z | image); "" if it can."""
    loaded = evaluation.loaded
    if loaded.observation is None or loaded.observation.name not in loaded.model.modalities:
        return "needs a model that draws pictures, and this one does not; use another metric"
    if not loaded.model.has_posterior(evaluation.source_modalities):
        return f"needs q(z | {loaded.observation.name}), and this model has no such posterior"
    return ""


class Reconstruction(Metric):
    r"""Percentage of an image's known attributes that the classifier also finds in the model's reconstruction of it.

    .. math:: \frac{1}{N} \sum_n \frac{1}{|O_n|} \sum_{k \in O_n} I(\hat y_k(E[x | z_n]) = y_{nk}), \quad
              z_n = E_{q(z|x_n)}[z]

    It is an upper limit for every posterior fitted to encodings: an attribute that the decoder does not draw from a
    picture's own z is drawn for no description. ``real pictures`` is the same share of these themselves; ``all right``,
    ``worst word`` and ``worst pair`` are as of correctness. With ``--part train`` it asks what training has learned.

    Protocol ``exact`` is over the words that the classifier predicts. One that gets words as input (CK 5.4: the
    relation) gives ``paper`` too, over all words; its input always matches.
    """

    unit = "%"
    better = "higher"
    posteriors = "none"
    points = "averaged"
    reads = POINTS
    columns: ClassVar = {"real pictures": "real", **RIGHT_COLUMNS}
    needs = (needs.explain_missing_classifier, _missing_autoencoder)

    @torch.inference_mode()
    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        points, codes = evaluation.data_points, _attribute_codes(evaluation)
        decoded: list[NDArray[np.uint8]] = []
        real: list[NDArray[np.uint8]] = []
        loaded, precision = evaluation.loaded, evaluation.settings.precision
        assert loaded.observation is not None
        encoded = posterior_of(
            loaded.model, points, evaluation.source_modalities, precision, evaluation.settings.seed
        ).mean
        for start in range(0, points.size, _CHUNK):
            part = points[slice(start, start + _CHUNK)]
            true = torch.from_numpy(codes[start : start + _CHUNK])
            pictures = _decode_for_judge(evaluation, part, encoded[start : start + _CHUNK], start)
            for images, codes_of in ((pictures, decoded), (part.values[loaded.observation.name], real)):
                codes_of.append(evaluation.judge.predict(images, true, precision).cpu().numpy())
            yield min(1.0, (start + _CHUNK) / points.size)
        of_decoded, of_real = np.concatenate(decoded), np.concatenate(real)
        hints = evaluation.questions.hints
        protocols: dict[str, tuple[int, ...]] = {**({"paper": ()} if hints else {}), "exact": hints}
        return [
            self._score(evaluation, codes, of_decoded, of_real, protocol, left_out)
            for protocol, left_out in protocols.items()
        ]

    def _score(
        self,
        evaluation: "Evaluation",
        codes: NDArray[np.uint8],
        decoded: NDArray[np.uint8],
        real: NDArray[np.uint8],
        protocol: str,
        left_out: tuple[int, ...],
    ) -> Score:
        """Score how often predicted attribute codes [N, A] equal the true ones; the standard error is over images."""
        known = codes != UNKNOWN
        known[:, list(left_out)] = False
        points = known.any(1)
        if not points.any():
            raise UsageError(
                f"no data point of the {evaluation.settings.part} part has a known attribute that the classifier "
                "predicts; choose another with --part"
            )

        def percent_correct(predicted: NDArray[np.uint8]) -> NDArray[np.float64]:
            right = ((predicted == codes) & known)[points]
            return np.asarray(100.0 * right.sum(1) / known[points].sum(1), np.float64)

        of_point, of_real = percent_correct(decoded), percent_correct(real)
        counted = np.where(known, codes, np.uint8(UNKNOWN))[points]
        count = len(of_point)
        spread = float(of_point.std(ddof=1) / np.sqrt(count)) if count > 1 else 0.0
        names = evaluation.attributes.names
        return self.score(
            evaluation,
            float(of_point.mean()),
            share_error(float(of_point.mean()), spread, count),
            count,
            posterior="+".join(evaluation.source_modalities),
            protocol=protocol,
            by_attribute={
                name: 100 * float((decoded == codes)[known[:, k], k].mean())
                for k, name in enumerate(names)
                if known[:, k].any()
            },
            points=ExampleValues.from_values(of_point),
            details={
                "real": float(of_real.mean()),
                **count_right(counted, (decoded == codes)[points], evaluation.attributes),
                "pixels": evaluation.drawn_pictures.pixels,
            },
        )


def _attribute_codes(evaluation: "Evaluation") -> NDArray[np.uint8]:
    """Return the true attribute codes of the evaluated images, uint8 [N, A]; ``UNKNOWN`` if the data lack them."""
    points, name = evaluation.data_points, evaluation.attributes.name
    codes = points.values[name].masked_fill(~points.present[name], UNKNOWN)
    return codes.cpu().numpy().astype(np.uint8)


def _decode_for_judge(evaluation: "Evaluation", points: Batch, z: torch.Tensor, start: int) -> torch.Tensor:
    """Decode encodings z [B, D] to the pictures [B, C, H, W] that the classifier reads."""
    loaded, settings = evaluation.loaded, evaluation.settings
    assert loaded.observation is not None
    if not evaluation.drawn_pictures.sampled:
        return decode_means(loaded, loaded.observation.name, z, points, settings.precision)
    generator = torch_generator(settings.seed, "reconstruction", start, device=str(loaded.device))
    return decode_means_and_draws(loaded, loaded.observation.name, z, points, generator, settings.precision)[1]

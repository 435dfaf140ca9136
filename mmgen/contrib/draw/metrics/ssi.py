"""SSI: structural similarity of drawn pictures to the real picture of the same description.

References:
    Image Quality Assessment: From Error Visibility to Structural Similarity (Wang, Bovik, Sheikh, Simoncelli, 2004),
    https://doi.org/10.1109/TIP.2003.819861
    Generating Images from Captions with Attention (Mansimov, Parisotto, Ba, Salakhutdinov, 2015), arXiv:1511.02793,
    Section 4.3
"""

import importlib.util
from collections.abc import Generator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmgen.core.errors import UsageError
from mmgen.core.extras import how_to_install
from mmgen.core.notation import UNKNOWN
from mmgen.core.seeding import numpy_generator
from mmgen.evaluation import needs
from mmgen.evaluation.queries import Queries
from mmgen.metrics._base import ExampleValues, Metric, Score

if TYPE_CHECKING:
    from mmgen.evaluation import Evaluation

__all__ = ["Ssi"]


_WINDOW = 7


def _missing_pictures_or_library(evaluation: "Evaluation") -> str:
    """Return why drawn pictures cannot be compared with real ones by scikit-image; "" if they can."""
    loaded = evaluation.loaded
    described = loaded.observation
    if described is None or described.picture_shape != described.event_shape:
        return "needs a model that draws pictures, and this one does not; use another metric"
    if loaded.text is None and loaded.attributes is None:
        return "needs a description of each picture, and this model has none; use another metric"
    if min(described.event_shape[1:]) < _WINDOW:
        height, width = described.event_shape[1:]
        return f"compares windows of {_WINDOW} x {_WINDOW} pixels, and these pictures have {height} x {width}"
    needs.check_modalities(evaluation, [described.name])
    if importlib.util.find_spec("skimage") is None:
        raise UsageError(f"ssi needs scikit-image, which is not installed; {how_to_install('ssi')}")
    return ""


class Ssi(Metric):
    r"""Structural similarity of drawn pictures and the real picture of the same description, from -1 to 1.

    .. math:: \frac{(2 \mu_x \mu_y + c_1)(2 \sigma_{xy} + c_2)}
              {(\mu_x^2 + \mu_y^2 + c_1)(\sigma_x^2 + \sigma_y^2 + c_2)}, \quad c_1 = 0.01^2, \; c_2 = 0.03^2

    of windows of 7 x 7 pixels, as scikit-image has it for values from 0 to 1, each colour for itself; mean over
    windows, over ``--draws`` pictures of each description (``drawn``), and over at most ``--queries`` random examples.
    Pictures are means of p(x|z), of black and white data too. Standard errors are over examples. ``other descriptions``
    is the same of real pictures and pictures drawn for another example: what all pictures have in common.
    """

    unit = "SSI"
    better = "higher"
    points = "seen"
    reads = ("queries", "draws", "split", "part")
    columns: ClassVar = {"drawn": "images_per_query", "other descriptions": "shuffled"}
    needs = (_missing_pictures_or_library,)

    def __call__(self, evaluation: "Evaluation", posterior: str) -> Generator[float, None, list[Score]]:
        draws = evaluation.settings.draws
        rows, queries, of = _choose_examples(evaluation)
        observation = evaluation.loaded.observation
        assert observation is not None
        real = evaluation.dataset.read_values(observation.name, rows, evaluation.settings.seed)
        # Every example is also compared with the pictures of the next one in a random order.
        order = numpy_generator(evaluation.settings.seed, "ssi").permutation(len(rows))
        other = np.empty(len(rows), np.int64)
        other[order] = of[np.roll(order, 1)]
        own, shuffled = np.zeros(len(rows)), np.zeros(len(rows))
        for piece in evaluation.drawn_pictures.draw_pictures(queries, posterior, draws):
            means = piece.means.float().cpu().numpy()
            for query in range(piece.rows.start, piece.rows.stop):
                drawn = means[query - piece.rows.start]
                for total, asked in ((own, of), (shuffled, other)):
                    for example in np.flatnonzero(asked == query):
                        total[example] += sum(_similarity(real[example], one) for one in drawn)
            yield (piece.rows.stop - 1 + piece.draws.stop / draws) / len(queries)
        values, apart = own / draws, shuffled / draws
        spread = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
        details = {"images_per_query": draws, "shuffled": float(apart.mean()), "window": _WINDOW, "pixels": "mean"}
        return [
            self.score(
                evaluation,
                float(values.mean()),
                spread,
                len(values),
                quantity="structural similarity",
                posterior=posterior,
                points=ExampleValues.from_values(values),
                details=details,
            )
        ]


def _similarity(real: NDArray[np.float32], drawn: NDArray[np.float32]) -> float:
    """Return the structural similarity of two pictures [C, H, W] with values from 0 to 1."""
    from skimage.metrics import structural_similarity

    return float(structural_similarity(real, drawn, win_size=_WINDOW, data_range=1.0, channel_axis=0))


def _choose_examples(evaluation: "Evaluation") -> tuple[NDArray[np.int64], Queries, NDArray[np.int64]]:
    """Return rows [N] of random examples with a description, distinct descriptions [Q], and which is whose [N]."""
    loaded, settings, dataset = evaluation.loaded, evaluation.settings, evaluation.dataset
    rows = evaluation.rows()
    by_text = loaded.text is not None and (loaded.attributes is None or evaluation.questions.free_captions)
    if by_text:
        assert loaded.text is not None
        words = dataset.read_text(loaded.text.name, rows)
        described = words[:, 0] != len(loaded.text.vocabulary)
    else:
        assert loaded.attributes is not None
        words = dataset.read_attributes(loaded.attributes.name, rows)
        described = (words != UNKNOWN).any(1)
    chosen = np.flatnonzero(described)
    if not len(chosen):
        raise UsageError(f"ssi needs examples with a description, and part '{settings.part}' has none; choose another")
    chosen = np.sort(numpy_generator(settings.seed, "ssi examples").permutation(chosen)[: settings.queries])
    distinct, of = np.unique(words[chosen], axis=0, return_inverse=True)
    weights = np.ones(len(distinct))
    if by_text:
        queries = Queries(np.zeros((len(distinct), 0), np.uint8), weights, 0, np.ascontiguousarray(distinct))
    else:
        queries = Queries(np.ascontiguousarray(distinct), weights, 0)
    return rows[chosen], queries, of.reshape(-1)

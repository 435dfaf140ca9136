"""Structural similarity: values in closed form, means over draws and examples, and refusals."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mmgen.contrib.draw.metrics.ssi import Ssi, _similarity
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.evaluation.queries import Queries
from mmgen.generation.decode import DecodedPictures
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription

pytest.importorskip("skimage")

SIDE = 9
TONES = AttributesDescription(names=("tone",), values=(("0", "1", "2", "3"),))


def grey(level: float) -> np.ndarray:
    return np.full((1, SIDE, SIDE), level, np.float32)


def test_pictures_of_one_grey_level_have_the_similarity_of_their_means() -> None:
    """Without variance only the first factor is left: (2 a b + c1) / (a^2 + b^2 + c1)."""
    for a, b in ((0.2, 0.2), (0.1, 0.9), (0.0, 1.0), (0.5, 0.3)):
        assert _similarity(grey(a), grey(b)) == pytest.approx((2 * a * b + 1e-4) / (a * a + b * b + 1e-4), rel=1e-4)


def test_one_window_against_the_formula() -> None:
    """Pictures of 7 x 7 pixels are one window; variances are those of samples; colours are averaged."""
    x, y = np.random.default_rng(0).random((2, 3, 7, 7)).astype(np.float32)
    expected = []
    for a, b in zip(x.reshape(3, -1).astype(float), y.reshape(3, -1).astype(float), strict=True):
        cov = np.cov(a, b)
        first = (2 * a.mean() * b.mean() + 1e-4) / (a.mean() ** 2 + b.mean() ** 2 + 1e-4)
        expected.append(first * (2 * cov[0, 1] + 9e-4) / (cov[0, 0] + cov[1, 1] + 9e-4))
    assert _similarity(x, y) == pytest.approx(np.mean(expected), rel=1e-4)


def evaluation(codes: np.ndarray, drawn: Any, shape: tuple[int, ...] = (1, SIDE, SIDE), **settings: Any) -> Any:
    """Examples whose picture is a quarter of their code; ``drawn`` makes the pictures of a description."""

    def draw_pictures(queries: Queries, posterior: str, n: int) -> Any:
        for row, query in enumerate(queries.codes):
            means = torch.from_numpy(np.stack([drawn(int(query[0]), number) for number in range(n)]))[None]
            yield DecodedPictures(slice(row, row + 1), slice(0, n), means)

    image = ImageDescription(shape=shape, layout="bytes")
    return SimpleNamespace(
        loaded=SimpleNamespace(observation=image, observed={}, text=None, attributes=TONES, path="m"),
        settings=EvaluationSettings(**settings),
        dataset=SimpleNamespace(
            read_values=lambda name, rows, seed: np.stack([grey(code / 4) for code in codes[rows, 0]]),
            read_attributes=lambda name, rows: codes[rows],
        ),
        rows=lambda: np.arange(len(codes)),
        questions=SimpleNamespace(free_captions=False),
        drawn_pictures=SimpleNamespace(draw_pictures=draw_pictures),
        content_ids={},
        judge=None,
        posteriors=("own",),
        guidance=None,
        completes=True,
    )


def measured(of: Any) -> Any:
    (score,) = run_generator(Ssi()(of, "own"))
    return score


CODES = np.array([[0], [1], [2], [2], [3], [255]], np.uint8)


def test_a_perfect_model_has_one_and_examples_without_description_are_left_out() -> None:
    score = measured(evaluation(CODES, lambda code, _: grey(code / 4), draws=3))
    assert (score.value, score.n, score.details["images_per_query"]) == (pytest.approx(1), 5, 3)
    assert score.details["shuffled"] < 0.9


def test_the_score_is_the_mean_over_draws_and_examples() -> None:
    score = measured(evaluation(CODES, lambda code, number: grey(number / 4), draws=2))
    values = [np.mean([_similarity(grey(code / 4), grey(n / 4)) for n in range(2)]) for code in (0, 1, 2, 2, 3)]
    assert score.value == pytest.approx(np.mean(values))
    assert score.stderr == pytest.approx(np.std(values, ddof=1) / 5**0.5)
    assert score.points.values == pytest.approx(values, abs=1e-4)
    assert score.details["shuffled"] == pytest.approx(score.value), "a model that ignores descriptions"


def test_what_cannot_be_compared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    small = evaluation(CODES, None, shape=(1, 6, 9))
    with pytest.raises(UsageError, match="windows of 7 x 7 pixels, and these pictures have 6 x 9"):
        _refuse(small)
    nothing = evaluation(np.full((3, 1), 255, np.uint8), None)
    with pytest.raises(UsageError, match="needs examples with a description"):
        measured(nothing)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs scikit-image, which is not installed; .*\[ssi\]"):
        _refuse(evaluation(CODES, None))


def _refuse(of: Any) -> None:
    if missing := Ssi.needs[0](of):
        raise UsageError(f"ssi {missing}")

"""Correctness of models that read captions in free words, on pictures that show what their words mean.

A picture is two grey levels, of a colour and of a size; a caption may call a colour by either of two words, or not say
the size.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.queries import make_caption_queries
from mmgen.metrics._base import evaluate
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.results.standard_errors import share_error, widen_error
from tests.metrics.toy import Plain, stand_in_model
from tests.posteriors.stand_in import stand_ins
from tests.small_data import write_small

INFO = AttributesDescription(name="attributes", names=("colour", "size"), values=(("red", "blue"), ("big", "small")))
TEXT = TextDescription(vocabulary=("a", "red", "crimson", "blue", "big", "small"), length=3)
CAPTIONS = {"a red": [1, 6], "a crimson big": [2, 4], "a blue small": [3, 5], "a blue big": [3, 4]}


class Judge:
    names, values, content_id, hints = INFO.names, INFO.values, "j", ()
    network_name, described = "reader", SimpleNamespace(name="image")
    accuracy: ClassVar = {"colour": 90.0, "size": 90.0, "mean": 90.0}

    def predict(self, images: Tensor, hints: Tensor, precision: str = "auto") -> Tensor:
        return images.flatten(1).round().to(torch.uint8)


class Painter:
    """z is the picture."""

    latent_size, conditional_on = 2, ()
    modalities: ClassVar = {"image": Plain(), "text": None}

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return z[..., None, None, :]


def loaded_painter(blind_to: str = "") -> Any:
    """Draws what a caption says, red where it is ``blind_to`` a word, and big where it says no size."""

    def draw(condition: Batch, n: int, generator: Any) -> Tensor:
        assert set(condition.values) == {"attributes", "text"} and not condition.present["attributes"].any()
        words = [[TEXT.vocabulary[code] for code in row if code < 6] for row in condition.values["text"].tolist()]
        blue = torch.tensor([float("blue" in row and blind_to != "blue") for row in words])
        small = torch.tensor([float("small" in row) for row in words])
        return torch.stack([blue, small], -1).expand(n, -1, -1)

    posteriors = stand_ins(("prior", "aggregate"), lambda name: draw, fitted="aggregate", reads=("text",))
    return stand_in_model(
        header=SimpleNamespace(kind="aggregate", content_id="a", parents=(), members=(), seed=0, settings={}),
        model=Painter(),
        observation=ImageDescription(shape=(1, 1, 2), layout="bytes"),
        attributes=INFO,
        text=TEXT,
        description_kind="text",
        posteriors=posteriors,
        fitted=posteriors["aggregate"],
    )


def write(path: Path, codes: np.ndarray, tokens: np.ndarray) -> Path:
    pictures = np.zeros((len(codes), 1, 1, 2), np.uint8)
    return write_small(path, {"image": pictures, "attributes": codes, "text": tokens}, INFO, (TEXT.vocabulary, ()))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """40 examples, ten of each caption; the colour of the blue big ones is not known, of one example nothing is."""
    codes = np.array([[0, 1], [0, 0], [1, 1], [255, 0]] * 10, np.uint8)
    codes[1] = 255
    tokens = np.array([[0, *words] for words in CAPTIONS.values()] * 10, np.uint16)
    with Dataset.open(write(tmp_path_factory.mktemp("free") / "toy.h5", codes, tokens)) as opened:
        yield opened


def score_of(dataset: Dataset, loaded: Any, judge: Any = None, **settings: Any) -> Any:
    evaluation = Evaluation(loaded, dataset, judge or Judge(), ("aggregate",), EvaluationSettings(draws=2, **settings))
    (score,) = evaluate(evaluation, ["correctness"]).run()
    return score


def test_pictures_are_compared_with_the_example_that_the_caption_is_of(dataset: Dataset) -> None:
    """ "a red" is of small things, which it does not say and the painter does not draw: half right; all others are
    wholly right, of the blue big ones the size alone is known. 10, 9, 10 and 10 examples count."""
    score = score_of(dataset, loaded_painter())
    assert score.protocol == "free-captions" and score.given is None and score.judge_accuracy == Judge.accuracy
    assert score.value == pytest.approx((10 * 50 + 9 * 100 + 10 * 100 + 10 * 100) / 39)
    assert score.by_attribute == pytest.approx({"colour": 100, "size": 100 * 29 / 39})
    values, weights = np.array([50, 100, 100, 100.0]), np.array([10, 9, 10, 10])
    expected = widen_error(np.sqrt((weights**2 * (values - score.value) ** 2).sum() * 4 / 3) / 39, 4)
    assert score.stderr == pytest.approx(share_error(score.value, expected, 8, 4)), "captions are the independent units"


def test_pictures_of_one_caption_count_once(tmp_path: Path) -> None:
    """ "a red" of four kinds of examples, as many of each: its two pictures are red and big, half of all is right."""
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, np.uint8)
    tokens = np.array([[0, *CAPTIONS["a red"]]] * 20, np.uint16)
    drawn: list[int] = []

    def predict(images: Tensor, hints: Tensor, precision: str = "auto") -> Tensor:
        drawn.append(len(images))
        return Judge().predict(images, hints)

    fields = ("names", "values", "content_id", "hints", "accuracy", "network_name", "described")
    judge = SimpleNamespace(**{name: getattr(Judge, name) for name in fields})
    judge.predict = predict
    with Dataset.open(write(tmp_path / "one.h5", codes, tokens)) as opened:
        score = score_of(opened, loaded_painter(), judge)
    assert (score.value, score.stderr, score.n, sum(drawn)) == (50.0, None, 2, 2)
    assert (score.details["queries"], score.points.values) == (1, [50.0])


def test_a_painter_blind_to_a_word(dataset: Dataset) -> None:
    score = score_of(dataset, loaded_painter("blue"))
    assert score.by_attribute["colour"] == pytest.approx(100 * 19 / 29)


def test_captions_of_examples_with_what_is_known_of_them(dataset: Dataset) -> None:
    tokens = np.array([[0, 1], [0, 1], [0, 2]], np.uint16)
    found = make_caption_queries(tokens, np.array([[0, 255], [0, 255], [255, 255]], np.uint8))
    assert found.tokens is not None and found.tokens.tolist() == [[0, 1]] and found.weights.tolist() == [2]
    assert found.codes.tolist() == [[0, 255]] and found.given_count is None
    with pytest.raises(UsageError, match="no example of this part of the split has a known attribute"):
        make_caption_queries(tokens, np.full((3, 2), 255, np.uint8))
    with pytest.raises(UsageError, match="no example"):
        make_caption_queries(tokens, np.array([[0, 255]] * 3, np.uint8), required=[1])


def test_nothing_can_be_left_out_of_a_caption(dataset: Dataset) -> None:
    with pytest.raises(UsageError, match="reads whole captions; use --given-count"):
        score_of(dataset, loaded_painter(), dropped=(0, 1))

"""Correctness of models of text by a judge that is told the relation, on pictures that spell out their captions.

A scene is a pair of shapes, left and right; a caption "cube left ball" says so, and so does "ball right cube".
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.descriptions import attributes_to_caption, batch_of_captions
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.metrics._base import evaluate
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.results.standard_errors import share_error, widen_error
from tests.metrics.toy import Plain, stand_in_model
from tests.posteriors.stand_in import stand_ins
from tests.small_data import write_small

SHAPES = ("cube", "ball", "cone")
INFO = AttributesDescription(
    name="attributes", names=("shape_1", "relation", "shape_2"), values=(SHAPES, ("left", "right"), SHAPES)
)
WORDS = (*SHAPES, "left", "right")
TEXT = TextDescription(vocabulary=WORDS, length=3, slots=INFO.names)


def caption(left: Tensor, right: Tensor, relation: Tensor) -> Tensor:
    """Codes [..., 3] of "A left B" (relation 0) or "B right A" (1)."""
    first, second = torch.where(relation == 0, left, right), torch.where(relation == 0, right, left)
    return torch.stack([first, relation, second], -1)


class Judge:
    names, values, content_id, hints = INFO.names, INFO.values, "j", ("relation",)
    network_name, described, device = "reader", SimpleNamespace(name="image"), torch.device("cpu")
    accuracy: ClassVar = {"shape_1": 90.0, "shape_2": 90.0, "mean": 90.0, "words": 93.33}

    def predict(self, images: Tensor, hints: Tensor, precision: str = "auto") -> Tensor:
        left, right = (images.flatten(1) * 4).round().long().unbind(1)
        codes = caption(left, right, torch.where(hints[:, 1] == 255, 0, hints[:, 1].long()))
        codes[:, 1] = hints[:, 1]
        return codes.to(torch.uint8)


class Painter:
    """z is the picture: shapes left and right. Says what it draws, from a side chosen by chance."""

    latent_size, conditional_on = 2, ()
    modalities: ClassVar = {"image": Plain(), "text": None}
    wrong_words = False

    def mean(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return (z / 4)[..., None, None, :]

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return self.mean(name, z, condition)

    def sample(self, name: str, z: Tensor, generator: Any = None, condition: Batch | None = None) -> Tensor:
        relation = torch.randint(0, 2, z.shape[:-1], generator=generator)
        codes = caption(z[..., 0].long(), z[..., 1].long(), relation)
        tokens = torch.from_numpy(attributes_to_caption(codes.numpy().astype(np.uint8), TEXT, INFO).astype(np.int64))
        if self.wrong_words:  # a shape where a relation belongs, nothing where a shape does
            tokens[..., 1], tokens[..., 2] = 0, len(WORDS)
        return tokens


def loaded_painter(draws: Any, given: str = "text") -> Any:
    """A loaded ``Painter``: ``draws(left, right)`` says what "true" draws when asked for them; "prior" ignores it."""

    def of_text(condition: Batch, n: int, generator: Any) -> Tensor:
        tokens = condition.values["text"]
        turned = tokens[:, 1] == WORDS.index("right")
        left, right = (torch.where(turned, tokens[:, a], tokens[:, b]) for a, b in ((2, 0), (0, 2)))
        return torch.stack(draws(left, right), -1).float().expand(n, -1, -1)

    def of_prior(condition: Batch, n: int, generator: Any) -> Tensor:
        return torch.randint(0, 3, (n, condition.size, 2), generator=generator).float()

    samplers = {"prior": of_prior, "true": of_text}
    posteriors = stand_ins(("prior", "true"), samplers.__getitem__, fitted="true", reads=(given,))
    return stand_in_model(
        header=SimpleNamespace(kind="aggregate", content_id="a", parents=(), members=(), seed=0, settings={}),
        model=Painter(),
        observation=ImageDescription(shape=(1, 1, 2), layout="bytes"),
        attributes=INFO,
        text=TEXT,
        description_kind=given,
        posteriors=posteriors,
        fitted=posteriors["true"],
        describe_codes=lambda codes: batch_of_captions(attributes_to_caption(codes, TEXT, INFO)),
    )


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """60 examples: "cube left ball" three times as often in the test part as any other of its captions."""
    codes = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 1], [2, 1, 0], [1, 0, 1], [1, 1, 2]] * 10, np.uint8)
    values = {"image": np.zeros((60, 1, 1, 2), np.uint8), "attributes": codes}
    values["text"] = attributes_to_caption(codes, TEXT, INFO)
    path = write_small(tmp_path_factory.mktemp("told") / "toy.h5", values, INFO, (WORDS, INFO.names), (20, 10))
    with Dataset.open(path) as opened:
        yield opened


def scores_of(
    dataset: Dataset, loaded: Any, posteriors: tuple[str, ...] = ("true",), metric: str = "correctness", **settings: Any
) -> dict[tuple[str, str], Any]:
    evaluation = Evaluation(loaded, dataset, Judge(), posteriors, EvaluationSettings(**settings))
    return {(score.posterior, score.protocol): score for score in evaluate(evaluation, [metric]).run()}


def test_right_pictures_are_right_whichever_object_comes_first(dataset: Dataset) -> None:
    scores = scores_of(dataset, loaded_painter(lambda left, right: (left, right)), draws=2)
    assert {protocol: score.value for (_, protocol), score in scores.items()} == {"paper": 100, "exact": 100}
    assert scores["true", "paper"].given == 3
    assert scores["true", "paper"].judge_accuracy == Judge.accuracy
    assert {role: scores["true", "paper"].ids[role] for role in ("model", "aggregate")} == {
        "model": "m",
        "aggregate": "a",
    }


def test_one_wrong_object_by_hand(dataset: Dataset) -> None:
    """The right one is always drawn as a cube, which no caption of the test part asks for: one shape of two is right,
    and with the relation two words of three. ("cone right cube" asks for a cube on the left.)"""
    scores = scores_of(dataset, loaded_painter(lambda left, right: (left, 0 * right)), draws=3)
    assert scores["true", "exact"].value == pytest.approx(50)
    assert scores["true", "paper"].value == pytest.approx(100 * 2 / 3)
    assert scores["true", "exact"].by_attribute.keys() == {"shape_1", "shape_2"}


def test_captions_weigh_as_often_as_they_occur_and_errors_are_clustered(dataset: Dataset) -> None:
    """Wrong only where the left one is a cube and the right one a ball: half of the examples, one caption of four."""

    def draws(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        spoiled = (left == 0) & (right == 1)
        return torch.where(spoiled, 2, left), torch.where(spoiled, 2, right)

    score = scores_of(dataset, loaded_painter(draws), draws=50)["true", "exact"]
    assert score.value == pytest.approx(50)
    assert score.details["queries"] == 4
    # Four captions are four independent things to know, however many pictures each has.
    values, weights = np.array([0, 100, 100, 100.0]), np.array([15, 5, 5, 5])
    expected = widen_error(np.sqrt((weights**2 * (values - 50) ** 2).sum() * 4 / 3) / 30, 4)
    assert score.stderr == pytest.approx(share_error(50.0, expected, 200, 4))


def test_pictures_are_compared_with_the_words_of_the_same_z(dataset: Dataset) -> None:
    loaded = loaded_painter(lambda left, right: (left, right))
    scores = scores_of(dataset, loaded, ("prior",), dropped=(0,))
    assert scores["prior", "generated-text"].value == 100
    assert scores["prior", "generated-text-exact"].value == 100
    assert scores["prior", "paper"].value < 80  # the captions of the data, which the prior does not know of
    loaded.model.wrong_words = True
    scores = scores_of(dataset, loaded, ("prior",), dropped=(0,))
    # The relation is none, so the judge is told nothing and takes "left"; half of the first shapes are of that side.
    first = scores["prior", "generated-text"].by_attribute
    assert (first["relation"], first["shape_2"]) == (0, 0)
    assert first["shape_1"] == pytest.approx(100 * (1 / 2 + 1 / 2 / 3), abs=4)
    assert scores["prior", "generated-text-exact"].value == pytest.approx(first["shape_1"] / 2)


def test_captions_are_asked_whole(dataset: Dataset) -> None:
    loaded = loaded_painter(lambda left, right: (left, right))
    with pytest.raises(UsageError, match=r"reads whole captions; use --given-count \d, .*--given attributes"):
        scores_of(dataset, loaded, dropped=(1,))
    with pytest.raises(UsageError, match=r"coverage needs .* --given attributes"):
        scores_of(dataset, loaded, metric="coverage")
    loaded.text = TEXT.model_copy(update={"slots": ()})
    with pytest.raises(UsageError, match=r"needs captions that spell the attributes.*retrieval"):
        scores_of(dataset, loaded, metric="compositionality", dropped=(0,))


def test_a_description_of_what_the_judge_is_told_alone_is_no_question(dataset: Dataset) -> None:
    """Two of three words are left open: the one that is given is the relation, which always matches."""
    loaded = loaded_painter(lambda left, right: (left, right), "attributes")
    evaluation = Evaluation(loaded, dataset, Judge(), ("prior",), EvaluationSettings(draws=2, dropped=(0, 2)))
    assert {score.given for score in evaluate(evaluation, ["correctness"]).run() if score.protocol == "exact"} == {3}

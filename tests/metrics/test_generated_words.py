"""Pictures beside the words that a model says of the same z (CK Table 2), where the words are a set of names."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset, DatasetWriter
from mmgen.core.batch import Batch
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.metrics._base import evaluate
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from tests.metrics.toy import Plain, stand_in_model
from tests.posteriors.stand_in import stand_ins

YES_NO = ("no", "yes")
NAMES = ("hat", "bald")


class Judge:
    names, values, content_id, hints = NAMES, (YES_NO, YES_NO), "j", ()
    device = torch.device("cpu")
    network_name, described = "reader", SimpleNamespace(name="image")
    accuracy: ClassVar = {"hat": 90.0, "bald": 90.0, "mean": 90.0}

    def predict(self, images: Tensor, hints: Tensor, precision: str = "auto") -> Tensor:
        return images.flatten(1).round().to(torch.uint8)


class Speaker:
    """z is the picture [hat, bald]. Says "hat" of hats, "a" of what is bald alone, and "bald" of what is neither."""

    latent_size, conditional_on = 2, ()
    modalities: ClassVar = {"image": Plain(), "text": None}

    def decode(self, name: str, z: Tensor, condition: Batch | None = None) -> Tensor:
        return z[..., None, None, :]

    def sample(self, name: str, z: Tensor, generator: Any = None, condition: Batch | None = None) -> Tensor:
        words = torch.where(z[..., 0] > 0, 1, torch.where(z[..., 1] > 0, 0, 2))
        return torch.stack([words, torch.full_like(words, 3)], -1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # Pictures in turn: hat, bald, neither, both.
        ((YES_NO, YES_NO), {"hat": 100.0, "bald": 0.0}),
        ((("yes", "no"), ("yes", "no")), {"hat": 0.0, "bald": 100.0}),
        ((YES_NO, ("bald", "hairy")), {"hat": 100.0}),
        ((("big", "small"), ("bald", "hairy")), None),
    ],
    ids=["named", "yes is the first value", "of one the values are others", "no value is yes"],
)
def test_words_of_a_set_count_where_they_are_said(
    tmp_path: Path, values: Any, expected: dict[str, float] | None
) -> None:
    info = AttributesDescription(name="attributes", names=NAMES, values=values)
    text = TextDescription(vocabulary=("a", "hat", "bald"), length=2)
    with DatasetWriter(tmp_path / "toy.h5", size=24, settings={"recipe": "toy"}, seed=0, command="make") as writer:
        writer.add_image("image", shape=(1, 1, 2), layout="bytes")
        writer.add_attributes("attributes", dict(zip(NAMES, map(list, values), strict=True)))
        writer.add_text("text", text.vocabulary, 2)
        codes = np.array([[0, 1], [1, 0]] * 12, np.uint8)
        writer.write(
            0, {"image": np.zeros((24, 1, 1, 2), np.uint8), "attributes": codes, "text": np.full((24, 2), 1, np.uint16)}
        )
        writer.add_splits("iid", train=np.arange(8), val=np.arange(8, 12), test=np.arange(12, 24))

    def draw(condition: Batch, n: int, generator: Any) -> Tensor:
        turns = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
        return turns[torch.arange(n) % 4][:, None].expand(n, condition.size, 2)

    posteriors = stand_ins(("prior", "aggregate"), lambda name: draw, fitted="aggregate", reads=())
    loaded = stand_in_model(
        header=SimpleNamespace(kind="aggregate", content_id="a", parents=(), members=(), seed=0, settings={}),
        model=Speaker(),
        observation=ImageDescription(shape=(1, 1, 2), layout="bytes"),
        attributes=info,
        text=text,
        description_kind="attributes",
        posteriors=posteriors,
        fitted=posteriors["aggregate"],
    )
    judge = Judge()
    judge.values = values  # type: ignore[misc]
    with Dataset.open(tmp_path / "toy.h5") as dataset:
        evaluation = Evaluation(loaded, dataset, judge, ("prior",), EvaluationSettings(draws=2))  # type: ignore[arg-type]
        scores = {score.protocol: score for score in evaluate(evaluation, ["correctness"]).run()}
    if expected is None:
        assert "generated-text" not in scores
        return
    said = scores["generated-text"]
    assert said.by_attribute == pytest.approx(expected)
    hats, others = 1200, 600 * ("bald" in expected)
    assert (said.given, said.n) == (0, hats + others)
    assert said.value == pytest.approx((hats * expected["hat"] + others * expected.get("bald", 0)) / (hats + others))

"""Coherence against planted models: perfect ones, ones that always say "3", and ones whose modalities ignore z."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.artifacts import Dataset
from mmgen.core.errors import UsageError
from mmgen.evaluation.real import jensen_shannon
from mmgen.metrics._base import evaluate, evaluate_with_classifiers
from mmgen.results.score import Score
from tests.metrics.toy import INFO
from tests.metrics.views import VIEWS, Plan, asked, write_views
from tests.posteriors.stand_in import StandIn


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_views(tmp_path_factory.mktemp("views") / "toy.h5")


def measure(dataset: Dataset, plan: Plan, **options: Any) -> dict[tuple[str, int | None], Score]:
    scores = evaluate(asked(dataset, plan, **options), ["coherence"]).run()
    return {(score.quantity, score.given): score for score in scores}


def fixed(view: str, z: Tensor) -> Tensor:
    """Always a big "2"."""
    return torch.tensor([2.0, 0.0]).expand_as(z)


def test_a_perfect_model_is_right_coherent_and_covers(dataset: Dataset) -> None:
    """Its prior is uniform, where half of the real digits are 0: JS(p, uniform) is what coverage lacks."""
    scores = measure(dataset, lambda view, z: z)
    ones = {
        (f"right given {n} of 3 pictures", None): 100.0 for n in (1, 2)
    } | {("joint coherence", 0): 100.0, ("coherence", 1): 100.0, ("coherence", 2): 100.0,
         ("agreement of open words", 1): 100.0}  # fmt: skip
    assert {key: score.value for key, score in scores.items() if "coverage" not in key[0]} == ones
    assert all(score.details["ceiling"] == 100 for key, score in scores.items() if key in ones)
    assert all(score.stderr is not None and 0 < score.stderr < 8 for score in scores.values())  # five descriptions
    frequencies = np.bincount(dataset.read_attributes("attributes", np.arange(600))[:, 0]) / 600
    lost = 50 * float(jensen_shannon(frequencies, np.full(3, 1 / 3)))  # one of two attributes
    assert scores["joint coverage", 0].value == pytest.approx(100 - lost, abs=1.0)
    assert scores["right given 1 of 3 pictures", None].details["subsets"] == "3 of 3"
    assert scores["right given 1 of 3 pictures", None].n == 6 * 400


def test_always_the_same_is_coherent_and_covers_little(dataset: Dataset) -> None:
    scores = measure(dataset, fixed)
    frequencies = np.bincount(dataset.read_attributes("attributes", np.arange(600))[:, 0]) / 600
    lost = [float(jensen_shannon(p, q)) for p, q in (
        (frequencies, np.array([0.0, 0.0, 1.0])), (np.array([0.5, 0.5]), np.array([1.0, 0.0])),
    )]  # fmt: skip
    assert scores["joint coherence", 0].value == 100
    assert scores["joint coverage", 0].value == pytest.approx(100 - 50 * sum(lost), abs=0.5)
    codes = dataset.read_attributes("attributes", asked(dataset, fixed).rows_of_points)
    right = 100 * (codes == [2, 0]).all(1).mean()
    assert scores["right given 1 of 3 pictures", None].value == pytest.approx(right) == pytest.approx(12.5, abs=4)
    by_attribute = scores["right given 2 of 3 pictures", None].by_attribute
    assert by_attribute == {name: pytest.approx(100 * (codes[:, k] == c).mean()) for k, (name, c) in enumerate(
        zip(INFO.names, (2, 0), strict=True))}  # fmt: skip


def test_one_modality_that_ignores_z_spoils_its_share(dataset: Dataset) -> None:
    """m2 always shows the same: two of three targets of one given picture are right where z is given by m0 or m1."""
    scores = measure(dataset, lambda view, z: fixed(view, z) if view == "m2" else z)
    codes = dataset.read_attributes("attributes", asked(dataset, fixed).rows_of_points)
    chance = (codes == [2, 0]).all(1).mean()
    # Pairs: m0 -> m1, m2; m1 -> m0, m2; m2 -> m0, m1; and of two given ones the third.
    assert scores["right given 1 of 3 pictures", None].value == pytest.approx(100 * (4 + 2 * chance) / 6)
    assert scores["right given 2 of 3 pictures", None].value == pytest.approx(100 * (2 + chance) / 3)
    assert scores["joint coherence", 0].value == pytest.approx(100 / 6, abs=6)  # a digit of three, a size of two
    # An open digit is "2" in a third of the draws of m0 and m1, as it always is in m2, and an open size big in half.
    assert scores["agreement of open words", 1].value == pytest.approx((100 / 3 + 50) / 2, abs=10)
    assert scores["agreement of open words", 1].details["ceiling"] == 100


def test_subsets_without_a_posterior_are_left_out(dataset: Dataset) -> None:
    scores = measure(dataset, lambda view, z: z, blind=("m2",))
    assert scores["right given 1 of 3 pictures", None].details["subsets"] == "2 of 2"
    none = measure(dataset, lambda view, z: z, blind=VIEWS)
    assert not any(quantity.startswith("right") for quantity, _ in none) and ("joint coherence", 0) in none


def test_an_aggregate_of_any_subset_draws_given_pictures_and_given_nothing(dataset: Dataset) -> None:
    """q_agg sees size alone in a picture, and is random in what it does not see."""
    evaluation = asked(dataset, lambda view, z: z)

    def draw(given: Any, n: int, generator: Any) -> torch.Tensor:
        z = torch.stack([torch.randint(0, v, (n, given.size), generator=generator) for v in INFO.sizes], -1).float()
        pictures = [given.values[view].flatten(1)[:, 1] * 255 / 60 for view in VIEWS if view in given.values]
        z[..., 1] = pictures[0] if pictures else z[..., 1]
        return z

    evaluation.loaded.posteriors["aggregate"] = StandIn("aggregate", draw, fitted=True, reads=VIEWS)
    evaluation.posteriors = ("aggregate",)
    scores = {(score.quantity, score.posterior): score for score in evaluate(evaluation, ["coherence"]).run()}
    given = scores["right given 1 of 3 pictures", "aggregate"]
    assert given.by_attribute == {"digit": pytest.approx(100 / 3, abs=3), "size": 100}
    assert scores["joint coherence", "aggregate"].value == scores["right given 1 of 3 pictures", ""].value == 100


def test_real_tuples_that_judges_misread_lower_the_ceiling(dataset: Dataset) -> None:
    evaluation = asked(dataset, lambda view, z: z)
    judge = evaluation.judges_of_views["m1"]
    judge.predict = lambda images, hints=None, precision="": torch.zeros(len(images), 2, dtype=torch.uint8)  # type: ignore[method-assign]
    scores = {score.quantity: score for score in evaluate(evaluation, ["coherence"]).run() if not score.given}
    codes = dataset.read_attributes("attributes", evaluation.rows_of_points)
    blind = (codes == 0).all(1).mean()
    one, joint = scores["right given 1 of 3 pictures"], scores["joint coherence"]
    assert one.details["ceiling"] == pytest.approx(100 * (2 + blind) / 3) == one.value
    assert joint.details["ceiling"] == pytest.approx(100 * blind)


@pytest.mark.parametrize("judged", [("m0",), ("m0", "m2")])
def test_a_missing_judge_is_named_with_its_command(judged: tuple[str, ...], dataset: Dataset) -> None:
    missing = [view for view in VIEWS if view not in judged]
    with pytest.raises(UsageError) as refused:
        evaluate(asked(dataset, fixed, judged=judged), ["coherence"])
    assert str(refused.value) == (
        f"coherence needs a judge of each modality of pictures, got none that reads {', '.join(missing)}; make one "
        f"with: mmgen train-classifier {dataset.path} --modality {missing[0]}, and name it with --judge"
    )


def test_a_judge_of_another_picture_does_not_judge_the_main_one(dataset: Dataset) -> None:
    with pytest.raises(
        UsageError, match="the judge reads m1, expected one that reads m0; train one with mmgen train-class"
    ):
        evaluate_with_classifiers(asked(dataset, fixed, judged=("m1",)), ["correctness"], [])


def test_one_modality_of_pictures_is_not_enough(dataset: Dataset) -> None:
    evaluation = asked(dataset, fixed)
    evaluation.loaded.observed = {"m0": evaluation.loaded.observation}
    with pytest.raises(UsageError, match="coherence needs a model that draws several modalities of pictures"):
        evaluate(evaluation, ["coherence"])

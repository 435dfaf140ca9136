"""What every metric promises, over all members of the room; and active units."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mmgen import metrics
from mmgen.artifacts import Dataset
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.metrics._base import evaluate
from mmgen.metrics.active_units import unit_activity
from mmgen.testing.metrics import (
    accepts_evaluation,
    check_scores,
    evaluation_makers,
)
from tests.metrics.toy import Judge, loaded_painter, write_dataset
from tests.metrics.views import asked, write_views

SETTINGS = EvaluationSettings(draws=4, samples=5, text_samples=20, number=10, dropped=(0, 1, 2))


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    dataset = Dataset.open(write_dataset(tmp_path_factory.mktemp("toy") / "toy.h5"))
    loaded = loaded_painter(Path("m.safetensors"), split="compositional")
    return Evaluation(loaded, dataset, Judge(), ("prior", "own"), SETTINGS)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> list[Evaluation]:
    """Trained models of pictures, whose test part has every combination, of pictures of two objects, and of the kinds
    of worlds beside the core; and a model of several pictures of each example.
    """
    views = asked(write_views(tmp_path_factory.mktemp("views") / "toy.h5"), lambda view, z: z)
    return [*(make(tmp_path_factory.mktemp(make.__name__)) for make in evaluation_makers()), views]


@pytest.mark.parametrize("name", metrics.names())
def test_member_keeps_its_promises(name: str, evaluation: Evaluation, others: list[Evaluation]) -> None:
    assert metrics.describe(name)
    if name == "bleu":
        pytest.importorskip("sacrebleu")
    used = next(each for each in [evaluation, *others] if accepts_evaluation(name, each))
    for score in check_scores(name, used):
        if name != "parameters":  # which does not depend on them
            assert [score.conditions["split"], score.conditions["part"], score.seed] == [used.split, "test", 0]


def test_scores_come_in_the_order_asked_for(evaluation: Evaluation) -> None:
    names = ["active-units", "correctness", "coverage"]
    scores = evaluate(evaluation, [*names, "correctness"]).run()
    assert list(dict.fromkeys(score.metric for score in scores)) == names


def test_likelihood_of_the_prior_and_of_the_text(evaluation: Evaluation) -> None:
    scores = evaluate(evaluation, ["log-likelihood"]).run()
    assert len(scores) == len({(score.posterior, score.quantity, score.protocol) for score in scores}), "asked once"
    under: dict[str, set[Any]] = {"prior": set(), "own": set()}
    for score in scores:
        under[score.posterior].add((score.quantity, score.protocol))
    both = {
        (quantity, protocol)
        for quantity in ("log p(x)", "log p(x,y)", "log p(y)")
        for protocol in ("importance", "bound")
    }
    ratios = {("log p(x|y)", "importance"), ("log p(y|x)", "importance")}
    assert under["prior"] == both | ratios | {("log p(y)", "importance-text")}
    assert under["own"] == {("log p(x|y)", "importance"), ("log p(x|y)", "bound")}


def test_activity_of_linear_encoder() -> None:
    """E[z_u | x] = w_u x with x of variance s^2: A_u = w_u^2 s^2."""
    x = 2 * torch.randn(50_000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    slopes = torch.tensor([[1.0, 0.1, 0.04, 0.0]], dtype=torch.float64)
    found = unit_activity(x @ slopes)
    torch.testing.assert_close(found, 4 * slopes[0].square(), rtol=0.03, atol=1e-12)
    assert int((found > 0.01).sum()) == 2  # 4, 0.04 | 0.0064, 0


def test_active_units_of_painter(evaluation: Evaluation) -> None:
    (score,) = evaluate(evaluation, ["active-units"]).run()
    # The compositional test part shows one combination only, so that nothing varies.
    assert score.value == 0
    assert score.details["latent_size"] == 2

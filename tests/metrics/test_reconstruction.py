"""Reconstruction against a model whose every mistake is known."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics._base import evaluate
from mmgen.results.standard_errors import share_error
from tests.metrics.toy import Judge, loaded_painter, write_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return Dataset.open(write_dataset(tmp_path_factory.mktemp("toy") / "toy.h5"))


class SizeJudge(Judge):
    """A judge that is told the digit."""

    hints = ("digit",)


def measured(dataset: Dataset, judge: Judge, posterior: Any = None, **settings: Any) -> list[Any]:
    loaded = loaded_painter(Path("m.safetensors"), split="iid")
    if posterior is not None:
        loaded.model.posterior = posterior
    evaluation = Evaluation(loaded, dataset, judge, ("prior",), EvaluationSettings(number=30, **settings))
    return evaluate(evaluation, ["reconstruction"]).run()


def all_small(batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
    """Encodings that keep the digit and lose the size."""
    mean = batch.values["attributes"].float().clone()
    mean[:, 1] = 1.0
    return DiagonalGaussian(mean, torch.full_like(mean, -2.0))


def test_what_an_encoding_keeps_is_read_and_what_it_loses_is_not(dataset: Dataset) -> None:
    (whole,) = measured(dataset, Judge())
    assert (whole.value, whole.n, whole.details["real"]) == (100.0, 30, 100.0)
    assert whole.stderr == pytest.approx(share_error(100.0, 0.0, 30))  # no proof that none is ever lost
    (lossy,) = measured(dataset, Judge(), all_small)
    small = lossy.by_attribute["size"]  # right where the size was small, as about half of them are
    assert 20 < small < 80
    assert lossy.by_attribute["digit"] == 100
    assert lossy.value == pytest.approx((100 + small) / 2)
    assert lossy.details["real"] == 100


def test_words_that_the_judge_is_told_count_in_the_paper_protocol_alone(dataset: Dataset) -> None:
    paper, exact = measured(dataset, SizeJudge(), all_small)
    assert (paper.protocol, exact.protocol) == ("paper", "exact")
    assert set(exact.by_attribute) == {"size"}
    assert exact.value == pytest.approx(2 * paper.value - 100)


def test_a_model_that_infers_nothing_from_pictures_is_refused(dataset: Dataset) -> None:
    loaded = loaded_painter(Path("m.safetensors"), split="iid")
    loaded.model.has_posterior = lambda given: False
    with pytest.raises(UsageError, match="no such posterior"):
        evaluate(Evaluation(loaded, dataset, Judge(), ("prior",), EvaluationSettings()), ["reconstruction"])

"""Names of posteriors: the encoder is typed "own" or "encoder"."""

from types import SimpleNamespace

import pytest
import torch

from mmgen.core.errors import UsageError
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.generation.descriptions import parse_descriptions, select_posterior
from mmgen.generation.draws import draw
from tests.generation.toy import loaded


def test_both_words_are_the_same_posterior() -> None:
    toy = loaded()
    assert list(toy.posteriors) == ["prior", "own", "aggregate"] and "encoder" in toy.posteriors
    asked = parse_descriptions(toy, ["colour=red"])
    assert select_posterior(toy, asked, "encoder") == "own" == select_posterior(toy, asked, "own")
    torch.testing.assert_close(
        toy.sample("colour=red", 3, posterior="encoder", seed=0), toy.sample("colour=red", 3, posterior="own", seed=0)
    )
    for each in (toy, toy.guided(2.0)):
        assert each.posteriors["encoder"].named == each.posteriors["own"].named
        assert each.reads("encoder") == each.reads("own") == ("attributes",)
    assert draw(toy, asked, 2, posterior="encoder").posterior == "own"
    with pytest.raises(UsageError, match="Available: prior, own, aggregate"):
        toy.posteriors["txt"]


def test_a_posterior_asked_for_by_both_words_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmgen.training.model_run.check_data", lambda *_: None)
    asked = Evaluation(loaded(), SimpleNamespace(), None, ("prior", "encoder", "own"), EvaluationSettings())  # type: ignore[arg-type]
    assert asked.posteriors == ("prior", "own")

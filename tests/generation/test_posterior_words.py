"""The model's own posterior is called "own"; "text", its word in earlier versions, still means it."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mmgen.core.errors import UsageError
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.experiments._tables import Column
from mmgen.generation.descriptions import chosen_posterior, parse
from mmgen.generation.draws import draw
from mmgen.results.score import Score, read_scores
from tests.generation.toy import loaded


def test_the_former_word_draws_the_same() -> None:
    toy = loaded()
    assert toy.posteriors == ["prior", "own", "aggregate"]
    asked = parse(toy, ["colour=red"])
    assert chosen_posterior(toy, asked, "text") == "own" == chosen_posterior(toy, asked, "own")
    torch.testing.assert_close(
        toy.sample("colour=red", 3, posterior="text"), toy.sample("colour=red", 3, posterior="own")
    )
    torch.testing.assert_close(
        toy.posterior("colour=red", "text").mean, toy.posterior("colour=red", posterior="own").mean
    )
    for each in (toy, toy.guided(2.0)):
        z, batch = torch.zeros(1, 2), toy.describe("colour=red")
        assert each.latent_log_prob("text")(z, batch) == each.latent_log_prob("own")(z, batch)
        assert each.reads("text") == each.reads("own") == ("attributes",)
    assert draw(toy, asked, 2, posterior="text").posterior == "own"
    with pytest.raises(UsageError, match="Available: prior, own, aggregate"):
        toy.latent_sampler("txt")


def test_scores_and_lists_of_before_read_as_own(tmp_path: Path) -> None:
    score = Score("correctness", "exact", 90.0, 1.0, "%", "higher", 100, "own")
    lines = [score.to_json(), score.to_json() | {"posterior": "text"}]
    lines.append(score.to_json() | {"posterior": "guided", "guidance": 3.0, "base": "text"})
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    new, old, guided = read_scores(tmp_path / "scores.jsonl")
    assert new == old == score and old.source == "q(z|y)"
    assert guided.base == "own" and guided.source == "q(z|y) guided (w = 3)"
    assert Column(name="ours", posterior="text").matches("scores.jsonl", new)


def test_a_posterior_asked_for_by_both_words_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmgen.training.model_run.check_data", lambda *_: None)
    asked = Evaluation(loaded(), SimpleNamespace(), None, ("prior", "text", "own"), EvaluationSettings())
    assert asked.posteriors == ("prior", "own")

"""Sentences in several languages: likelihoods against enumeration and quadrature, and what translations are worth."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from mmgen.contrib.translation.languages import (
    complete_points,
    count_tokens,
    draws_given,
    languages,
    log_likelihood_in_parts,
    shuffled_rows,
    source_languages,
    unigram_cost,
)
from mmgen.contrib.translation.metrics.bleu import _bleu
from mmgen.contrib.translation.testing.cases import small_translation_evaluation
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation import Evaluation, EvaluationSettings
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics import Score, evaluate, get
from mmgen.testing.metrics import small_evaluation


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    small = small_translation_evaluation(tmp_path_factory.mktemp("sentences") / "0")
    settings = EvaluationSettings(samples=1000, number=10)
    return Evaluation(small.loaded, small.dataset, None, ("prior", "own"), settings)


@pytest.fixture(scope="module")
def scores(evaluation: Evaluation) -> dict[tuple[str, str, str, str], Score]:
    found = evaluate(evaluation, ["sentences", "translation"]).run()
    return {(each.quantity, each.posterior, each.protocol, each.unit): each for each in found}


def test_a_log_likelihood_is_the_sum_over_tokens(evaluation: Evaluation) -> None:
    loaded, points = evaluation.loaded, complete_points(evaluation)
    assert languages(loaded) == ["one", "other"]
    text = loaded.model.modalities["other"]
    z = torch.randn(4, points.size, 2, generator=torch.Generator().manual_seed(0))
    whole = run_generator(log_likelihood_in_parts(loaded, ["other"], z, points, "32-true"))["other"]
    table = loaded.model.word_probabilities("other", z, points.values["other"].expand(4, -1, -1))
    tokens = points.values["other"].expand(4, -1, -1).unsqueeze(-1)
    by_token = table.gather(-1, tokens).squeeze(-1).log()
    torch.testing.assert_close(whole, by_token.sum(-1).double(), rtol=1e-4, atol=1e-4)
    counts = count_tokens(loaded, points, "other")
    assert counts.tolist() == [min(3, 1 + int((row != text.padding).sum())) for row in points.values["other"]]
    assert (by_token[0] != 0).sum(-1).tolist() == counts.tolist(), "what follows the end is certain"


def test_importance_sampling_is_above_the_bound_and_near_quadrature(
    evaluation: Evaluation, scores: dict[tuple[str, str, str, str], Score]
) -> None:
    loaded, points = evaluation.loaded, complete_points(evaluation)
    axis = torch.linspace(-6, 6, 61)
    grid = torch.cartesian_prod(axis, axis)
    prior = torch.distributions.Normal(0.0, 1.0).log_prob(grid).sum(-1) + 2 * math.log(0.2)
    for names in (("one",), ("other",), ("one", "other")):
        with torch.no_grad():
            log_p = sum(
                loaded.model.log_likelihood(name, grid.unsqueeze(1).expand(-1, points.size, 2), points)
                for name in names
            )
        exact = float((log_p + prior.unsqueeze(1)).logsumexp(0).mean())
        quantity = f"log p({','.join(names)})"
        estimate = scores[quantity, "own", "importance", "nats"]
        bound = scores[quantity, "own", "bound", "nats"]
        assert bound.value <= estimate.value + 1e-9
        assert estimate.value == pytest.approx(exact, abs=0.05)
        per_token = scores[f"{quantity} per token", "own", "importance", "nats a token"]
        assert per_token.value == pytest.approx(estimate.value / estimate.details["tokens"])


def test_the_sum_is_of_the_terms_of_training(scores: dict[tuple[str, str, str, str], Score]) -> None:
    terms = ("log p(one)", "log p(other)", "log p(one,other)")
    total = scores[" + ".join(terms), "own", "importance", "nats"]
    assert total.value == pytest.approx(sum(scores[term, "own", "importance", "nats"].value for term in terms))
    assert "probably" in total.details["terms"]
    assert total.details["tokens"] == pytest.approx(2 * scores[terms[2], "own", "bound", "nats"].details["tokens"])


def test_a_vanished_divergence_is_said(scores: dict[tuple[str, str, str, str], Score]) -> None:
    for inputs in ("one", "other", "one,other"):
        score = scores[f"KL(q(z|{inputs}))", "own", "closed form", "nats of KL"]
        assert (score.value < 1) == any("this is a language model" in words for words in score.warnings)
    assert any(score.warnings for score in scores.values()), "four steps teach no use of z"


def test_translations_are_scored_from_each_language(scores: dict[tuple[str, str, str, str], Score]) -> None:
    for source, target in itertools.permutations(("one", "other")):
        true, other, beside = (
            scores[quantity, "own", "predictive", "nats"]
            for quantity in (
                f"log p({target}|{source})", f"log p({target}|shuffled {source})",
                f"beside another sentence, {source} to {target}",
            )
        )  # fmt: skip
        assert beside.value == pytest.approx(true.value - other.value)
    assert ("log p(one)", "prior", "predictive", "nats") in scores


def test_the_gain_is_what_the_sentence_says_of_its_translation(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With sentences that are numbers y ~ N(z, sd^2) of z ~ N(0, 1), log p(t | s) - log p(t) has a closed form."""
    model, points, sd = evaluation.loaded.model, complete_points(evaluation), 0.3
    normal = torch.distributions.Normal

    def number(name: str, batch: Batch) -> Tensor:
        return batch.values[name][:, 0] / 2 - 1.0

    def posterior(batch: Batch, names: tuple[str, ...]) -> DiagonalGaussian:
        mean = number(names[0], batch) / (1 + sd**2)
        log_sd = torch.full_like(mean, math.log(sd / (1 + sd**2) ** 0.5))
        return DiagonalGaussian(torch.stack([mean, 0 * mean], -1), torch.stack([log_sd, 0 * mean], -1))

    monkeypatch.setattr(
        model, "log_likelihood", lambda name, z, batch: normal(z[..., 0], sd).log_prob(number(name, batch))
    )
    monkeypatch.setattr(model, "posterior", posterior)
    asked = Evaluation(evaluation.loaded, evaluation.dataset, None, ("own",), evaluation.settings)
    found = {score.quantity: score for score in evaluate(asked, ["translation"]).run()}
    for source, target in itertools.permutations(("one", "other")):
        wider = (sd**2 / (1 + sd**2) + sd**2) ** 0.5
        given = normal(number(source, points) / (1 + sd**2), wider).log_prob(number(target, points))
        gain = given - normal(0.0, (1 + sd**2) ** 0.5).log_prob(number(target, points))
        score = found[f"gain, {source} to {target}"]
        assert score.value == pytest.approx(float(gain.mean()), abs=0.15) and abs(score.value) > 0.3
        assert score.points is not None
        torch.testing.assert_close(torch.tensor(score.points.values), gain, atol=0.8, rtol=0)


def test_decoders_that_ignore_z_gain_nothing(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow q(z | s): draws of q(z | t) alone put log p(t) some nats too low, and made a gain of them."""
    model = evaluation.loaded.model

    def posterior(batch: Batch, names: tuple[str, ...]) -> DiagonalGaussian:
        mean = batch.values[names[0]][:, :1].float() - 2.0
        return DiagonalGaussian(torch.cat([mean, -mean], 1), torch.full((batch.size, 2), math.log(0.02)))

    monkeypatch.setattr(model, "log_likelihood", lambda name, z, batch: -7.0 - batch.values[name][:, 0] + 0 * z[..., 0])
    monkeypatch.setattr(model, "posterior", posterior)
    settings = evaluation.settings.model_copy(update={"samples": 50})
    asked = Evaluation(evaluation.loaded, evaluation.dataset, None, ("own",), settings)
    scores = [score for score in evaluate(asked, ["translation"]).run() if score.quantity.startswith("gain")]
    assert len(scores) == 4
    assert all(abs(score.value) < 0.05 for score in scores)
    assert all(score.details["effective_sample_size"] > 20 and not score.warnings for score in scores if score.points)


def test_shuffling_gives_every_sentence_another_one() -> None:
    for size in (2, 3, 50):
        rows = shuffled_rows(size, 0)
        assert sorted(rows.tolist()) == list(range(size)) and all(row != place for place, row in enumerate(rows))


def test_unigrams_cost_their_entropy_on_training_sentences(evaluation: Evaluation) -> None:
    rows = evaluation.rows("train")
    codes = torch.from_numpy(evaluation.dataset.read("one", rows).astype(np.int64))
    tokens = [word for row in codes.tolist() for word in row[: row.index(6) + 1 if 6 in row else 3]]
    shares = np.bincount(tokens) / len(tokens)
    entropy = -float(sum(share * math.log(share) for share in shares if share))
    points = Batch({"one": codes}, {"one": torch.ones(len(codes), dtype=torch.bool)})
    assert unigram_cost(evaluation, "one", points) == pytest.approx(entropy, abs=1e-5)


def test_posteriors_read_what_they_can(evaluation: Evaluation) -> None:
    loaded, points = evaluation.loaded, complete_points(evaluation)
    assert source_languages(loaded, "own") == ["one", "other"] and source_languages(loaded, "prior") == []
    z = draws_given(loaded, "own", "one", points, 1000, precision="32-true")
    mean = loaded.model.posterior(points, ("one",)).mean
    torch.testing.assert_close(z.mean(0), mean, atol=0.25, rtol=0)
    assert draws_given(loaded, "prior", None, points, 3).shape == (3, points.size, 2)


@pytest.mark.slow
def test_models_of_pictures_are_refused(tmp_path: Path) -> None:
    asked = small_evaluation(tmp_path / "pictures")
    with pytest.raises(UsageError, match="sentences needs a model of sentences in two or more languages"):
        evaluate(asked, ["sentences"])


def test_a_rare_word_counts_as_right_nowhere(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a copied source and in the commonest sentence no more than in a translation."""
    pytest.importorskip("sacrebleu")
    for text in evaluation.loaded.observed.values():
        monkeypatch.setattr(type(text), "words", lambda self, row: "<unk> cat sat on a mat")
    found = run_generator(get("bleu")()(evaluation, "own"))
    assert {score.protocol for score in found} == {"translated", "copied", "commonest"}
    assert max(score.value for score in found) == pytest.approx(
        _bleu(["<?> cat sat on a mat"] * 4, ["<unk> cat sat on a mat"] * 4, 0)[0]
    )


def test_bleu_of_the_truth_is_100_and_of_nothing_0() -> None:
    pytest.importorskip("sacrebleu")
    right = ["a man rides a red bike .", "two dogs run in the snow ."]
    assert _bleu(right, right, 0)[0] == pytest.approx(100)
    assert _bleu(["x y z w v"] * 2, right, 0)[0] < 10
    half = _bleu([right[0], "x y z w v u t"], right, 0)
    assert 20 < half[0] < 80 and half[1] > 0

"""The guided aggregate, fitted: q_agg(z|y) p(y|z)^w by quadrature, for attributes and for captions."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import mmgen
import mmgen.densities
from mmgen.artifacts import Dataset, DatasetWriter, read_header
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.generation.draws import draw
from mmgen.generation.samples import save_samples
from mmgen.latent.space import LatentSpace
from mmgen.metrics._base import evaluate
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.posteriors import Aggregate, complete_fit_settings, fit_aggregate, load_aggregate
from mmgen.posteriors.guided import GuidedTarget, GuidedTask, draw_candidates, few_candidates_warning
from mmgen.testing.densities import ATTRIBUTES
from mmgen.training.model_run import load_model
from mmgen.training.state import state_path
from tests.models.test_vlvae import DATA, folder
from tests.networks.test_text import PADDING, make_batch, model, reading_aggregate
from tests.posteriors.test_text_weight import speaking, trained_with
from tests.program import exit_code

__all__ = ["folder"]  # a fixture: captions of squares and a model of them

AXIS = torch.linspace(-7, 7, 141, dtype=torch.float64)
GRID = torch.cartesian_prod(AXIS, AXIS).unsqueeze(1)
CELL = (AXIS[1] - AXIS[0]).item() ** 2


def log_guided(base: Aggregate, speaker: MultimodalVAE, one: Batch, guidance: float) -> Tensor:
    """q_agg(z|y) p(y|z)^w of one description on the grid, normalised there."""
    assert base.condition is not None
    with torch.no_grad():
        log_p = speaker.log_likelihood(base.condition.name, GRID, one).squeeze(1)
        value = base.log_prob(GRID, one).squeeze(1) + guidance * log_p
    return value - value.logsumexp(0) - torch.tensor(CELL).log()


def divergence(truth: Tensor, fitted: Aggregate, one: Batch) -> float:
    """KL(truth || fitted) by quadrature, nats."""
    with torch.no_grad():
        log_q = fitted.log_prob(GRID, one).squeeze(1)
    return ((truth.exp() * (truth - log_q)).sum() * CELL).item()


def guide(base: Aggregate, fitted: Aggregate, speaker: MultimodalVAE, batch: Batch, guidance: float) -> Aggregate:
    """A copy of ``base`` fitted by itself, whole descriptions."""
    fitted.load_state_dict(base.state_dict())
    task = GuidedTask(fitted, base, speaker, keep_all=1.0, guidance=guidance, candidate_count=64)
    optimiser = torch.optim.Adam(task.parameters(), lr=1e-2)
    torch.manual_seed(0)
    for step in range(250):
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * (1 - step / 250)
        optimiser.zero_grad()
        (-task(batch, step).value.mean()).backward()
        optimiser.step()
    return fitted.eval()


def attribute_base() -> Aggregate:
    torch.manual_seed(1)
    mixture = mmgen.densities.get("mixture")(components=6, hidden=(32,))
    return Aggregate(LatentSpace.flat(2), ATTRIBUTES, mixture).double().eval()


DESCRIPTIONS = Batch(
    {"attributes": torch.tensor([[0, 0], [1, 1], [0, 0], [0, 0]])},
    {"attributes": torch.tensor([[True, True], [True, True], [True, False], [False, False]])},
)
"""Red and big, blue and small, red alone, nothing at all."""


@pytest.mark.slow
def test_the_guided_aggregate_of_attributes_is_what_it_says() -> None:
    """Each description, one with an attribute unknown and one with none known, reaches its own q_w."""
    base, speaker = attribute_base().requires_grad_(False), speaking()
    order = torch.arange(4).repeat(64)
    fitted = guide(base, attribute_base(), speaker, DESCRIPTIONS[order], 3.0)
    for row in range(4):
        one = DESCRIPTIONS[row : row + 1]
        truth = log_guided(base, speaker, one, 3.0)
        far = divergence(truth, base, one)
        assert divergence(truth, fitted, one) < max(0.03, 0.1 * far)
        assert (far > 0.15) == (row < 3), "with words given there is something to learn"


@pytest.mark.slow
def test_the_guided_aggregate_of_captions_is_what_it_says() -> None:
    """Captions that hardly repeat are guided as well as those that do: one is 15 times as frequent."""
    speaker, base = model(), reading_aggregate("mixture", components=6, hidden=(32,)).requires_grad_(False)
    captions = make_batch(torch.tensor([[0, 1, 2], [2, PADDING, PADDING]]))
    order = torch.zeros(256, dtype=torch.int64)
    order[::16] = 1
    fitted = guide(
        base,
        reading_aggregate("mixture", components=6, hidden=(32,)),
        speaker,
        captions[order[torch.randperm(256)]],
        2.0,
    )
    for row in range(2):
        one = captions[row : row + 1]
        truth = log_guided(base, speaker, one, 2.0)
        far = divergence(truth, base, one)
        assert far > 0.15, "there is something to learn"
        assert divergence(truth, fitted, one) < 0.2 * far


def test_candidates_of_no_guidance_are_all_alike() -> None:
    base = attribute_base()
    z, log_share = draw_candidates(base, speaking(), DESCRIPTIONS, 0.0, 16)
    assert z.shape == (16, 4, 2)
    assert torch.equal(log_share, torch.full_like(log_share, -torch.tensor(16.0).double().log().item()))
    guided = GuidedTask(attribute_base(), base, speaking(), 1.0, 3.0, 16)(DESCRIPTIONS.repeat(8), 0)
    assert not guided.is_bound and guided.value.shape == (4,)
    effective = guided.terms["log of effective candidates"].exp()
    assert (effective <= 16 + 1e-9).all() and (effective[:3] < 16).all()


def test_validation_looks_at_every_description_and_a_step_at_an_eighth() -> None:
    """What a file calls the number of validation examples is how many there are values of, one left over included."""
    task = GuidedTask(attribute_base(), attribute_base(), speaking(), 1.0, 3.0, 16)
    for copies, learned in ((8, 4), (5, 2), (1, 1)):
        batch = DESCRIPTIONS.repeat(copies)[: 4 * copies - (copies == 5)]
        step, validation = task(batch, 0), task(batch, None)
        for bound, count in ((step, learned), (validation, batch.size)):
            assert bound.value.shape == (count,)
            assert all(term.shape == (count,) for term in bound.terms.values())
    # Values are in the order of the descriptions, of which the last knows nothing: there all candidates count.
    effective = validation.terms["log of effective candidates"]
    assert effective[3].item() == pytest.approx(math.log(16)) and (effective[:3] < math.log(16) - 1e-6).all()


def test_too_few_candidates_are_told() -> None:
    target = GuidedTarget()
    few = {"validation_terms": {"log of effective candidates": math.log(2.5)}}
    assert "effective number of 64 candidates is 2.5" in few_candidates_warning(few, target)
    assert few_candidates_warning({"validation_terms": {"log of effective candidates": math.log(20)}}, target) == ""
    assert few_candidates_warning({}, target) == ""
    guided = GuidedTask(attribute_base(), attribute_base(), speaking(), 1.0, 3.0, 16)(DESCRIPTIONS, None)
    assert few["validation_terms"].keys() <= guided.terms.keys()


GUIDED = {"target": {"name": "guided", "guidance": 3.0}}


def run(folder: Path, name: str, asked: dict[str, Any], base: Path | None = None, steps: int = 10) -> Path:
    family = {"name": "realnvp", "steps": 1, "hidden": [8]}
    values = {
        "aggregate": {"family": family, **asked},
        "training": {"steps": steps, "batch": 64, "validate_every": steps, "device": "cpu"},
    }
    settings = complete_fit_settings(values, load_model(folder / "m.safetensors")[1])
    out = folder / f"{name}.safetensors"
    for work in fit_aggregate(
        folder / "m.safetensors", folder / "d.h5", settings, out, folder / "latents.h5", base_path=base
    ):
        work.run()
    return out


def test_a_guided_fit_is_written_and_named_with_its_weight(folder: Path) -> None:
    base = run(folder, "base", {})
    guided = run(folder, "guided", GUIDED, base)
    header, settings, fitted = load_aggregate(guided)
    assert settings.aggregate.target == {"name": "guided", "guidance": 3.0, "candidates": 64}
    assert settings.file_name_part == "aggregate-guided-w3-realnvp-text"
    assert {parent.role: parent.content_id for parent in header.parents}["base"] == read_header(base).content_id
    before = load_aggregate(base)[2].state_dict()
    assert any(not torch.equal(before[name], value) for name, value in fitted.state_dict().items())
    loaded = mmgen.load(guided)
    assert (
        str(loaded.posteriors["aggregate"].named) == "q_agg guided (w = 3)"
        and str(loaded.posteriors["prior"].named) == "p(z)"
    )
    with Dataset.open(folder / "d.h5") as data:
        evaluation = Evaluation(loaded, data, None, ("aggregate", "prior"), EvaluationSettings(samples=4, number=8))
        scores = evaluate(evaluation, ["log-likelihood"]).run()
    told = {(score.posterior, score.source, score.to_json().get("guidance")) for score in scores}
    assert told == {("guided", "q_agg guided (w = 3)", 3.0), ("prior", "p(z)", None)}
    for posterior, weights in (("aggregate", {"guidance": 3.0}), ("prior", {})):
        said = [[1, 1]] if loaded.reads(posterior) else [[255, 255]]
        drawn = draw(loaded, np.array(said, np.uint8), 2, posterior=posterior)
        assert drawn.name == loaded.posteriors[posterior].named.title
        settings = save_samples(folder / "drawn.h5", drawn, loaded).settings
        assert {key: settings[key] for key in ("text_weight", "guidance") if key in settings} == weights


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"target": {"name": "true", "guidance": 3}}, "aggregate.target.guidance"),
        ({"target": {"name": "guided"}, "given": "nothing"}, "expected attributes or text, by which to guide"),
        ({"target": {"name": "guided", "guidance": -1}}, "got -1, expected a number above 0"),
        ({"target": {"name": "guided", "guidance": 1e20}}, "got 1e.20, expected a number above 0, at most 1,000,000"),
        ({"target": {"name": "guided", "guidance": "inf"}}, "got 'inf', expected a number"),
        ({"target": {"name": "aggregate", "candidates": 8}}, "aggregate.target.candidates"),
        ({"target": {"name": "guided", "candidates": 1}}, "candidates' got 1"),
    ],
)
def test_guidance_that_means_nothing_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises((UsageError, SettingsError), match=message):
        complete_fit_settings({"aggregate": asked}, trained_with("elbo"))
    with pytest.raises(UsageError, match="generates no attributes"):
        complete_fit_settings({"aggregate": {"target": {"name": "guided"}}}, trained_with("elbo", modalities=["image"]))


def test_only_a_plain_aggregate_of_the_model_is_guided(folder: Path) -> None:
    base = run(folder, "base", {})
    guided = run(folder, "guided", GUIDED, base)
    exact = run(folder, "true", {"target": {"name": "true"}})
    for other, message in ((guided, r"is a fit q_agg guided \(w = 3\)"), (exact, r"is a fit q_true\(w = 20\)")):
        with pytest.raises(UsageError, match=f"{message}, expected the fit q_agg to start from"):
            run(folder, "again", GUIDED, other)
    with pytest.raises(UsageError, match="expected the family, target, condition and keep_all"):
        run(folder, "again", {**GUIDED, "family": {"name": "gaussian"}}, base)
    with pytest.raises(UsageError, match="guided fits and SCAN with operators need --from"):
        run(folder, "again", GUIDED)
    assert not (folder / "again.safetensors").exists()


@pytest.mark.slow
def test_the_command_fits_what_it_guides(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Left out, q_agg is fitted first and taken the next time; its family is that of the file where one is named."""
    model_path = str(folder / "m.safetensors")
    common = ["fit-aggregate", model_path, "--steps", "4", "--batch", "32", "--device", "cpu"]
    assert exit_code(*common, "--guidance", "2") == 0
    assert capsys.readouterr().out.strip() == str(folder / "m-aggregate-guided-w2-realnvp-text.safetensors")
    base = folder / "m-aggregate-realnvp-text.safetensors"
    made = base.stat().st_mtime_ns
    assert exit_code(*common, "--guidance", "4") == 0
    assert base.stat().st_mtime_ns == made
    assert exit_code(*common, "--family", "gaussian") == 0
    gaussian = folder / "m-aggregate-gaussian-text.safetensors"
    assert exit_code(*common, "--guidance", "2", "--from", str(gaussian)) == 0
    settings = load_aggregate(folder / "m-aggregate-guided-w2-gaussian-text.safetensors")[1]
    assert settings.aggregate.family["name"] == "gaussian"
    capsys.readouterr()
    guided = [*common, "--guidance", "2", "-o", str(base)]
    assert exit_code(*guided) == 2 and "the command reads that file" in capsys.readouterr().err
    assert exit_code(*common, "--from", str(gaussian), "-o", str(folder / "x.safetensors")) == 2
    assert "--from got" in capsys.readouterr().err and not (folder / "x.safetensors").exists()


def test_a_guided_fit_starts_from_none_of_another_dataset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that lies beside the model is not taken for its own, nor is one that is named; without a saved state too."""
    other, model_path = folder / "d2.h5", folder / "m.safetensors"
    with Dataset.open(folder / "d.h5") as data:
        values = {name: data.read_packed(name) for name in data.modalities}
        with DatasetWriter(other, size=data.size, settings={"recipe": "squares"}, seed=1, command="make") as writer:
            writer.add_image("image", shape=(3, 16, 16), layout="bytes")
            assert DATA.attributes and DATA.text
            named = zip(DATA.attributes.names, map(list, DATA.attributes.values), strict=True)
            writer.add_attributes("attributes", dict(named))
            writer.add_text("text", DATA.text.vocabulary, 2, DATA.text.slots)
            writer.write(0, {name: value[::-1] for name, value in values.items()})
            writer.add_splits("iid", **{part: data.split("iid", part) for part in ("train", "val", "test")})
    common = ["fit-aggregate", str(model_path), "--family", "mixture", "--steps", "2", "--batch", "32", "--seed", "5"]
    assert exit_code(*common) == 0
    base = folder / "m-aggregate-mixture-text.safetensors"
    state_path(base).unlink()
    capsys.readouterr()
    guided = [*common, "--dataset", str(other), "--guidance", "3"]
    assert exit_code(*guided) == 2
    assert (
        f"not the q_agg of {model_path} on {other} that this fit starts from; give one with" in capsys.readouterr().err
    )
    assert exit_code(*guided, "--from", str(base)) == 2
    assert f"{base} was fitted to another dataset than {other}; give a q_agg of that" in capsys.readouterr().err
    out = folder / "m-aggregate-guided-w3-mixture-text.safetensors"
    assert not out.exists()
    assert exit_code(*common, "--guidance", "3") == 0 and out.exists(), "on its own dataset it is"
    parents = {parent.role: parent.content_id for parent in read_header(out).parents}
    assert parents["base"] == read_header(base).content_id


def test_scores_under_a_learned_prior_are_not_called_a_posterior(folder: Path) -> None:
    loaded = mmgen.load(run(folder, "prior", {"given": "nothing"}))
    with Dataset.open(folder / "d.h5") as data:
        evaluation = Evaluation(loaded, data, None, ("aggregate",), EvaluationSettings(samples=4, number=8))
        scores = evaluate(evaluation, ["log-likelihood"]).run()
    assert {score.source for score in scores} == {"q(z)"} == {str(loaded.posteriors["aggregate"].named)}

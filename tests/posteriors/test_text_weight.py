"""The weight of the text in q_true: what training gave it, what is fitted with it, what it is called."""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import mmgen.densities
import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.figures.report.scores import make_score_tables
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.models._settings import DataSettings
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.posteriors import Aggregate, complete_fit_settings
from mmgen.posteriors.true import ExactTask
from mmgen.results.score import read_scores
from mmgen.testing.densities import ATTRIBUTES
from mmgen.testing.linear_gaussian import draw_observations, make_linear_gaussian
from mmgen.training.model_run import ExperimentSettings

LAMBDA, GAMMA, BETA = 30.0, 20.0, 0.4
OBJECTIVES: dict[str, dict[str, Any]] = {
    "elbo": {"attributes_weight": LAMBDA},
    "cvae": {},
    "iwae": {"attributes_weight": LAMBDA, "samples": 3},
    "telbo": {"attributes_weight": LAMBDA, "private_attributes_weight": GAMMA},
    "jmvae": {"attributes_weight": LAMBDA, "alpha": 0.0},
    "bivcca": {"attributes_weight": LAMBDA},
    "mvae": {"weights": {"attributes": LAMBDA}},
    "capacity": {"modalities": ("image", "attributes"), "capacity": 0.0, "gamma": 4.0},
    "beta-tcvae": {"modalities": ("image", "attributes"), "alpha": 6.0, "beta": 6.0, "gamma": 6.0},
    "factor-vae": {"modalities": ("image", "attributes"), "gamma": 0.0},
    "hfvae": {"modalities": ("image", "attributes"), "alpha": 1.0, "beta": 1.0, "gamma": 1.0},
}
EXPECTED = {"telbo": GAMMA, "capacity": 1 / 4, "beta-tcvae": 1 / 6, "factor-vae": 1.0, "hfvae": 1.0}
"""The weight before beta, where it is not lambda."""
BY_TERMS: dict[str, dict[str, Any]] = {"mvtcae": {"alpha": 0.0}, "mopoe": {}, "mmvae": {}, "mmvae-plus": {}}
"""Objectives of random subsets or of mixtures, whose value is the sum of their terms by lambda and beta."""
NONE = ("mvtcae", "mmvm", "crmvae")
"""Objectives with divergences that are not to p(z)."""
PULL_THE_AGGREGATE: dict[str, dict[str, float]] = {
    "beta-tcvae": {"beta": 5.0},
    "capacity": {"capacity": 25.0},
    "factor-vae": {"gamma": 35.0},
    "hfvae": {"beta": 4.0},
}
"""Settings with which no weight against one example's divergence says what is learnt."""
LABEL_IN_Z = ("semi-supervised",)
"""Objectives of models whose z holds the label."""
PROBED = {
    "elbo": ("image",),
    "iwae": ("image",),
    **dict.fromkeys(("beta-tcvae", "capacity", "factor-vae", "hfvae"), ("image",)),
    "telbo": ("attributes",),
    "jmvae": ("image", "attributes"),
    "bivcca": ("attributes",),
}
"""The posterior of which each objective is asked how it weighs the description; MVAE's is that of the subset."""


def trained_with(name: str, **settings: Any) -> ExperimentSettings:
    data = DataSettings.from_descriptions(
        ImageDescription(shape=(1, 16, 16), layout="bits"),
        AttributesDescription(names=("digit", "size"), values=(("0", "1", "2"), ("big", "small"))),
    )
    return ExperimentSettings(objective={"name": name, **settings}, data=data)


@pytest.mark.parametrize("name", mmgen.objectives.names())
def test_every_objective_weighs_the_description_as_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a posterior without spread the objective's gradient is a sum of three: of log p(x|z), log p(y|z) and KL.

    Its coefficients are found by least squares over 20 examples; that of log p(y|z) over that of KL is the weight.
    """
    member = mmgen.objectives.get(name)
    if name in PULL_THE_AGGREGATE:
        pulled = member(modalities=("image", "attributes"), **PULL_THE_AGGREGATE[name])
        assert pulled.training_weight("attributes") is None
    if name in LABEL_IN_Z:
        assert member().training_weight("attributes") == 1.0  # p(y) and p(z) count alike
        return
    if name in NONE:
        assert member().training_weight("attributes") is None
    if name in BY_TERMS:
        weighted = member(attributes_weight=LAMBDA, beta=BETA, **BY_TERMS[name])
        assert weighted.training_weight("attributes") == pytest.approx(LAMBDA / BETA)
        bound = weighted(make_linear_gaussian(), draw_observations(20))
        terms = bound.terms
        expected = terms["log p(image|z)"] + LAMBDA * terms["log p(attributes|z)"] - BETA * terms["kl"]
        torch.testing.assert_close(bound.value, expected)
    if name in {*NONE, *BY_TERMS}:
        return
    if name == "reader":  # without a divergence
        assert member().training_weight("attributes") is None
        return
    if name not in OBJECTIVES:  # of data without images or words
        assert not {"image", "attributes", "text"} & {*member().demands.modalities}
        assert member().training_weight("attributes") is None
        return
    given = OBJECTIVES[name]
    beta = {"beta": BETA} if "beta" not in given and any(field.name == "beta" for field in fields(member)) else {}
    objective = member(**given, **beta)
    found = objective.training_weight("attributes")
    if "attributes" not in objective.demands.generates:
        assert found is None
        return
    model, batch = make_linear_gaussian(), draw_observations(20)
    mean = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    probed = DiagonalGaussian(mean, torch.zeros_like(mean))
    fixed = DiagonalGaussian(torch.zeros_like(mean), torch.zeros_like(mean))

    def subsets(batch: Batch, units: Any, chosen: list[tuple[bool, ...]]) -> DiagonalGaussian:
        alone = [row == (False, True) for row in chosen]
        assert sum(alone) == 1
        means = torch.stack([mean if own else fixed.mean for own in alone])
        return DiagonalGaussian(means, torch.zeros_like(means))

    monkeypatch.setattr(
        DiagonalGaussian, "sample", lambda self, generator=None, shape=(): self.mean.expand(*shape, *self.mean.shape)
    )
    monkeypatch.setattr(
        model, "posterior", lambda batch, given: probed if given == PROBED.get(name) else fixed, raising=True
    )
    monkeypatch.setattr(model, "subset_posteriors", subsets)

    def slope(value: Tensor) -> Tensor:
        (gradient,) = torch.autograd.grad(value.sum(), mean)
        return gradient.flatten()

    causes = [slope(model.log_likelihood(part, mean, batch)) for part in ("image", "attributes")]
    causes.append(-mean.detach().flatten())  # of minus the divergence from N(mean, 1)
    matrix = torch.stack(causes, 1)
    effect = slope(objective(model, batch).value)
    solved = torch.linalg.lstsq(matrix, effect.unsqueeze(1)).solution.squeeze(1)
    torch.testing.assert_close(matrix @ solved, effect)
    assert found == pytest.approx((solved[1] / solved[2]).item())
    assert found == pytest.approx(EXPECTED.get(name, LAMBDA) / beta.get("beta", 1.0))


def test_the_mean_of_modalities_divides_the_weight() -> None:
    mvae = mmgen.objectives.get("mvae")
    assert mvae(mean_of_modalities=True, beta=0.5).training_weight("attributes") == pytest.approx(50 / 0.5)
    both = mvae(mean_of_modalities=True, beta=0.5, predicts={"attributes": ["image"]})
    assert both.training_weight("attributes") == pytest.approx(50 / 2 / 0.5)
    assert mvae(weigh="joint").training_weight("attributes") == 1
    named = mvae(modalities=["image", "labels"])
    assert named.training_weight("labels", "attributes") == 50 and named.training_weight("labels") == 1
    elbo = mmgen.objectives.get("elbo")(modalities=["image", "labels"], attributes_weight=30.0, beta=0.1)
    assert elbo.training_weight("labels", "attributes") == pytest.approx(300)
    assert mvae(mean_of_modalities=True, split_attributes=True).training_weight("attributes") is None


def weighed(weight: Any) -> dict[str, Any]:
    return {"name": "true", "text_weight": weight}


def test_the_training_weight_is_the_default_and_is_written_as_a_number() -> None:
    model = trained_with("elbo", attributes_weight=30.0, beta=0.1)
    for asked in ({}, {"text_weight": "training"}):
        settings = complete_fit_settings({"aggregate": {"target": {"name": "true", **asked}}}, model)
        assert settings.model_dump(mode="json")["aggregate"]["target"]["text_weight"] == pytest.approx(300)
        assert settings.name == "q_true(w = 300)" and settings.file_name_part == "true-w300-realnvp"
    exact = complete_fit_settings({"aggregate": {"target": {"name": True, "text_weight": "1"}}}, model)
    assert exact.build_target().weights == {"text_weight": 1.0} and exact.name == "q_true(w = 1), exact"
    assert complete_fit_settings({}, model).aggregate.target == {"name": "aggregate"}
    # z is p(z) whatever a CVAE's description says, so its posterior is exact.
    conditional = complete_fit_settings({"aggregate": {"target": {"name": "true"}}}, trained_with("cvae"))
    assert conditional.aggregate.target["text_weight"] == 1
    nothing = complete_fit_settings({"aggregate": {"target": {"name": "true"}, "given": "nothing"}}, model)
    assert nothing.aggregate.target["text_weight"] == 1 and nothing.name == "q_true(z)"


@pytest.mark.parametrize(
    ("objective", "asked", "message"),
    [
        ({"name": "elbo"}, {"target": {"name": "aggregate", "text_weight": 3}}, "aggregate.target.text_weight"),
        ({"name": "elbo"}, {"target": weighed(3), "given": "nothing"}, "with --given nothing there is none"),
        ({"name": "cvae"}, {"target": weighed(3)}, r"no p\(attributes \| z\)"),
        ({"name": "cvae"}, {"target": weighed("training")}, r"no p\(attributes \| z\)"),
        ({"name": "elbo", "modalities": ["image"]}, {"target": weighed(3)}, "generates no attributes"),
        ({"name": "elbo", "beta": 0.0}, {"target": {"name": "true"}}, "no divergence to p.*--text-weight 1"),
        ({"name": "elbo", "attributes_weight": 0.0}, {"target": {"name": "true"}}, "no weight; give a number"),
        ({"name": "elbo"}, {"target": weighed("much")}, "got 'much', expected training or a number"),
        ({"name": "elbo"}, {"target": weighed(-1)}, "got -1, expected training or a number"),
        ({"name": "elbo"}, {"target": weighed("inf")}, "got 'inf', expected training or a number"),
        ({"name": "elbo"}, {"target": weighed("nan")}, "got 'nan', expected training or a number"),
        ({"name": "elbo"}, {"target": weighed(True)}, "got True, expected training or a number"),
    ],
)  # fmt: skip
def test_a_weight_that_means_nothing_is_refused(objective: dict[str, Any], asked: dict[str, Any], message: str) -> None:
    name = objective["name"]
    model = trained_with(name, **{key: value for key, value in objective.items() if key != "name"})
    with pytest.raises((UsageError, SettingsError), match=message):
        complete_fit_settings({"aggregate": asked}, model)


class Logits(torch.nn.Module):
    """p(red | z) = sigmoid(2 z_1), p(big | z) = softmax of (z_2, -z_2, 0)."""

    def forward(self, z: Tensor) -> Tensor:
        first, second = z[:, :1], z[:, 1:]
        zero = torch.zeros_like(first)
        return torch.cat([2 * first, zero, second, -second, zero], -1)


def speaking() -> MultimodalVAE:
    model = make_linear_gaussian()
    model.decoders["attributes"] = Logits()
    model.modalities["attributes"] = ATTRIBUTES
    return model


RED_BIG = Batch({"attributes": torch.tensor([[0, 0]])}, {"attributes": torch.tensor([[True, True]])})
AXIS = torch.linspace(-6, 8, 141, dtype=torch.float64)
GRID = torch.cartesian_prod(AXIS, AXIS).unsqueeze(1)
CELL = (AXIS[1] - AXIS[0]).item() ** 2


def log_target(weight: float) -> Tensor:
    """p(y|z)^w p(z) on the grid, normalised there by integration."""
    model = speaking()
    value = (weight * model.log_likelihood("attributes", GRID, RED_BIG) + model.log_prior(GRID)).squeeze(1)
    return value - value.logsumexp(0) - math.log(CELL)


def fit(weight: float, steps: int) -> Aggregate:
    torch.manual_seed(0)
    aggregate = Aggregate(LatentSpace.flat(2), ATTRIBUTES, mmgen.densities.get("realnvp")(steps=2, hidden=(32,)))
    task = ExactTask(aggregate, speaking(), keep_all=1.0, text_weight=weight)
    optimiser = torch.optim.Adam(task.parameters(), lr=1e-2)
    batch = RED_BIG.repeat(256)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * (1 - step / steps)
        optimiser.zero_grad()
        (-task(batch, step).value.mean()).backward()
        optimiser.step()
    return aggregate.eval()


def divergence(aggregate: Aggregate, target: Tensor) -> float:
    """KL(q || target) by quadrature, nats."""
    with torch.no_grad():
        log_q = aggregate.double().log_prob(GRID, RED_BIG).squeeze(1)
    assert (log_q.exp().sum() * CELL).item() == pytest.approx(1, abs=1e-3)
    return ((log_q.exp() * (log_q - target)).sum() * CELL).item()


@pytest.mark.parametrize("weight", [1.0, *(pytest.param(weight, marks=pytest.mark.slow) for weight in (5.0, 50.0))])
def test_q_true_is_fitted_to_its_weight(weight: float) -> None:
    """KL(q_true || p(y|z)^w p(z) / Z) is near 0 for its own weight, and not for that of another."""
    aggregate = fit(weight, steps=400 if weight == 1 else 600)
    assert divergence(aggregate, log_target(weight)) < 0.03
    assert divergence(aggregate, log_target(5.0 if weight != 5 else 1.0)) > 0.1


@pytest.mark.parametrize("weight", [1.0, 4.0])
def test_only_weight_one_bounds_the_likelihood_of_the_words(weight: float) -> None:
    torch.manual_seed(0)
    aggregate = Aggregate(LatentSpace.flat(2), ATTRIBUTES, mmgen.densities.get("gaussian")()).double()
    bound = ExactTask(aggregate, speaking(), 1.0, weight)(RED_BIG.repeat(4_000), None)
    assert bound.is_bound == (weight == 1)
    integral = (weight * speaking().log_likelihood("attributes", GRID, RED_BIG) + speaking().log_prior(GRID)).squeeze(1)
    with torch.no_grad():
        log_q = aggregate.log_prob(GRID, RED_BIG).squeeze(1)
    expected = ((log_q.exp() * (integral - log_q)).sum() * CELL).item()
    error = bound.value.std().item() / math.sqrt(4_000)
    assert bound.value.mean().item() == pytest.approx(expected, abs=4 * error)
    assert expected < integral.logsumexp(0).item() + math.log(CELL), "at most log of the integral of p(y|z)^w p(z)"


def test_scores_of_different_weights_stand_in_different_rows(tmp_path: Path) -> None:
    common = {"metric": "correctness", "unit": "%", "better": "higher", "given": 4, "posterior": "true"}
    lines = [
        {**common, "value": 54.0, "ids": {"aggregate": "a"}, "text_weight": 1.0},
        {**common, "value": 86.0, "ids": {"aggregate": "b"}, "text_weight": 300.0},
    ]
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    scores = read_scores(path)
    assert [score.source for score in scores] == ["q_true(w = 1), exact", "q_true(w = 300)"]
    assert [score.to_json()["text_weight"] for score in scores] == [1.0, 300.0]
    (table,) = make_score_tables(scores, {"a": "one", "b": "other"})
    assert [row.posterior.split(":")[0] for row in table.rows] == ["q_true(w = 1), exact", "q_true(w = 300)"]

"""Every likelihood, by every posterior that samples may come from, against a model in which all have closed forms."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.evaluation.proposals import proposal_conditions
from mmgen.generation import TrainedModel
from mmgen.inference._base import Inference, InferenceParts
from mmgen.inference.product_of_experts import ProductOfExperts
from mmgen.inference.quotient_of_experts import QuotientOfExperts
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.metrics.log_likelihood import LogLikelihood
from mmgen.metrics.negative_elbo import NegativeElbo
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models._settings import DataSettings
from mmgen.objectives.mvae import Mvae
from mmgen.results.score import Score
from mmgen.testing.linear_gaussian import (
    NOISE,
    WEIGHTS,
    Normal,
    draw_conditional_observations,
    draw_observations,
    exact_log_conditional,
    exact_log_marginal,
    exact_posterior,
    make_conditional_linear_gaussian,
    make_linear_gaussian,
)
from tests.metrics.toy import stand_in_model
from tests.posteriors.stand_in import draws_and_densities, stand_ins

POINTS = draw_observations(30)


BOTH = ("image", "attributes")


EXACT = {
    "log p(x)": exact_log_marginal(POINTS, ("image",)),
    "log p(y)": exact_log_marginal(POINTS, ("attributes",)),
    "log p(x,y)": exact_log_marginal(POINTS, BOTH),
}


EXACT["log p(x|y)"] = EXACT["log p(x,y)"] - EXACT["log p(y)"]


EXACT["log p(y|x)"] = EXACT["log p(x,y)"] - EXACT["log p(x)"]


def loaded(model: Any) -> Any:
    def given(posterior: str) -> tuple[str, ...]:
        return () if posterior == "prior" else ("attributes",)

    posteriors = stand_ins(
        ("prior", "own"), *draws_and_densities(lambda name: lambda batch: model.posterior(batch, given(name)))
    )
    return stand_in_model(
        model=model,
        observation=SimpleNamespace(name="image", event_shape=(4,)),
        attributes=SimpleNamespace(name="attributes", names=("a",), values=(("0",),)),
        posteriors=posteriors,
        description_kind="attributes",
        encoder=posteriors["own"],
        encoder_inputs=BOTH,
    )


def scores(model: Any, points: Batch = POINTS, **settings: Any) -> dict[tuple[str, str, str], Score]:
    """By posterior, quantity and protocol."""
    evaluation = SimpleNamespace(
        loaded=loaded(model),
        settings=EvaluationSettings(**settings),
        data_points=points,
        posteriors=("prior", "own"),
        content_ids={},
        split="iid",
        text_proposal=None,
        rows=lambda: range(points.size),
        ignores_text=lambda name: name == "prior",
    )
    metric = LogLikelihood()
    metric.check(evaluation)
    return {
        (score.posterior, score.quantity, score.protocol): score for score in run_generator(metric(evaluation, "prior"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("proposal", ["mixture", "image", "joint", "description"])
def test_any_posterior_will_do(proposal: str) -> None:
    """Wrong posteriors, and still every quantity of every point, from whichever of them the samples come."""
    found = scores(make_linear_gaussian(0.2, 0.35), samples=20_000, text_samples=5_000, proposal=proposal)
    for quantity, exact in EXACT.items():
        score = found["prior", quantity, "importance"]
        drawn_from = {"image": "q(z|image)", "joint": "q(z|image, attributes)", "description": "q(z|attributes)"}
        drawn_from["mixture"] = "q(z|image) + q(z|image, attributes) + p(z)"
        assert score.details["proposal"] == ("q(z|y) + p(z)" if quantity == "log p(y)" else drawn_from[proposal])
        error = 5 * score.details["monte_carlo_stderr"] + 5 * score.details["too_low_by_at_least"] + 0.003
        assert score.value == pytest.approx(float(exact.mean()), abs=error), quantity
        assert error < 0.2
    worst = (torch.tensor(found["prior", "log p(x,y)", "importance"].points.values) - EXACT["log p(x,y)"]).abs().max()
    assert float(worst) < 0.5


def test_with_the_exact_posterior_one_sample_is_enough() -> None:
    """Given both, weights of log p(x, y) are all the same; those of log p(x) are not, and converge."""
    found = scores(make_linear_gaussian(), samples=2, text_samples=2000, proposal="joint")
    values = torch.tensor(found["prior", "log p(x,y)", "importance"].points.values)
    torch.testing.assert_close(values.double(), EXACT["log p(x,y)"], rtol=0, atol=1e-4)
    assert found["prior", "log p(x,y)", "bound"].details["log_weight_variance"] < 1e-20
    assert found["prior", "log p(x)", "bound"].details["log_weight_variance"] > 0.01


@pytest.mark.slow
def test_variance_of_log_weights() -> None:
    r"""q(z|x) = N(m + a, (r s)^2) with p(z|x) = N(m, s^2): with z = m + a + r s e,

    log w = const + e^2 / 2 - (a / s + r e)^2 / 2 = const + (1 - r^2) e^2 / 2 - (a r / s) e, whose variance is
    (1 - r^2)^2 / 2 + (a r / s)^2 in each dimension.
    """
    shift, widening = 0.15, 0.2
    found = scores(make_linear_gaussian(shift, widening), samples=20_000, text_samples=2, proposal="image")
    ratio = torch.tensor(widening).double().exp()
    exact = (1 - ratio**2) ** 2 / 2 + (shift * ratio / exact_posterior(POINTS, ("image",)).sd[0]) ** 2
    score = found["prior", "log p(x)", "importance"]
    assert score.details["log_weight_variance"] == pytest.approx(float(exact.sum()), rel=0.03)
    assert 0 < score.details["log_weight_variance_stderr"] < 0.01  # the same at every point but for noise


def test_image_given_text_through_the_models_own_posterior() -> None:
    """CK Eq. 6 with the exact q(z|y) = p(z|y) is log p(x|y) itself."""
    found = scores(make_linear_gaussian(), samples=4000, text_samples=2)
    score = found["own", "log p(x|y)", "importance"]
    assert score.value == pytest.approx(float(EXACT["log p(x|y)"].mean()), abs=0.02)


class Masked(Normal):
    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        return super().log_prob(parameters, value, present).masked_fill(~present, 0.0)


class ExactExpert(nn.Module):
    """What a network of one modality has to say so that compositions are exact: W'W / s^2 is added to the precision
    and W'x / s^2 to precision times mean."""

    def __init__(self, name: str, inference: Inference) -> None:
        super().__init__()
        self.name, self.quotient = name, isinstance(inference, QuotientOfExperts)

    def forward(self, batch: Batch) -> DiagonalGaussian:
        weights = WEIGHTS[self.name]
        added = (weights.T @ weights).diagonal() / NOISE**2
        mean = batch.values[self.name] @ weights / NOISE**2 / (added + self.quotient)
        return DiagonalGaussian(mean, (-0.5 * added.log()).expand_as(mean))


def composed(family: type[Inference]) -> Any:
    """The linear-Gaussian model with experts that are right, and modalities that may be missing."""
    model = make_linear_gaussian()
    inference = family(InferenceParts(LatentSpace.flat(2), {}, {}, 1), frozenset())
    for name in WEIGHTS:
        inference.experts[name] = ExactExpert(name, inference)
        model.modalities[name] = Masked(name)
    model.inference = inference
    return model


FAMILIES = pytest.mark.parametrize("family", [ProductOfExperts, QuotientOfExperts])


@FAMILIES
def test_right_experts_make_every_composition_exact(family: type[Inference]) -> None:
    model = composed(family)
    for given in (("image",), ("attributes",), BOTH):
        exact, found = exact_posterior(POINTS, given), model.posterior(POINTS, given)
        torch.testing.assert_close(found.mean, exact.mean)
        torch.testing.assert_close(found.log_sd, exact.log_sd)
    found = scores(model, samples=2, text_samples=2000, proposal="joint")
    assert found["prior", "log p(x,y)", "bound"].details["log_weight_variance"] < 1e-20
    for quantity in ("log p(x,y)", "log p(x|y)"):
        assert found["prior", quantity, "importance"].value == pytest.approx(float(EXACT[quantity].mean()), abs=0.02)


@FAMILIES
@pytest.mark.parametrize("proposal", ["image", "joint"])
def test_what_is_missing_is_left_out(family: type[Inference], proposal: str) -> None:
    """Ten points without a description, ten without an image, and values there that nobody may look at."""
    values = {name: value.clone() for name, value in POINTS.values.items()}
    present = {name: mask.clone() for name, mask in POINTS.present.items()}
    for name, rows in (("attributes", slice(0, 10)), ("image", slice(10, 20))):
        values[name][rows] = 1e6
        present[name][rows] = False
    found = scores(composed(family), Batch(values, present), samples=2000, text_samples=2000, proposal=proposal)
    with_image = [*range(10), *range(20, 30)]
    for quantity, rows in (("log p(x)", with_image), ("log p(x,y)", range(20, 30)), ("log p(y)", range(20, 30))):
        score = found["prior", quantity, "importance"]
        assert score.n == len(rows)
        assert score.value == pytest.approx(float(EXACT[quantity][list(rows)].mean()), abs=0.05)
    score = found["own", "log p(x|y)", "importance"]
    assert score.n == 10
    assert score.value == pytest.approx(float(EXACT["log p(x|y)"][20:].mean()), abs=0.05)


def test_points_without_any_image_are_an_error() -> None:
    nothing = Batch(POINTS.values, {**POINTS.present, "image": torch.zeros(30, dtype=torch.bool)})
    with pytest.raises(UsageError, match=r"no data point of the test part has an image; choose another with --part"):
        scores(composed(ProductOfExperts), nothing)


def test_more_modalities_than_image_and_description() -> None:
    """A second image, a copy of the first one's weights: log p(x1..x3) is that of all of them."""
    model = composed(ProductOfExperts)
    WEIGHTS["edges"] = WEIGHTS["image"]
    try:
        points = draw_observations(30)
        model.decoders["edges"] = nn.Linear(2, 4, bias=False, dtype=torch.float64)
        model.decoders["edges"].weight.data.copy_(WEIGHTS["edges"])
        model.modalities["edges"] = Masked("edges")
        model.inference.experts["edges"] = ExactExpert("edges", model.inference)
        every = ("image", "attributes", "edges")
        found = scores(model, points, samples=2, text_samples=500, proposal="joint")
        exact = float(exact_log_marginal(points, every).mean())
        score = found["prior", "log p(x1..x3)", "importance"]
        assert score.details["proposal"] == "q(z|image, attributes, edges)"
        assert score.value == pytest.approx(exact, abs=1e-9)
        image = scores(model, points, samples=2, text_samples=500, proposal="image")["prior", "log p(x)", "importance"]
        assert image.value == pytest.approx(float(exact_log_marginal(points, ("image",)).mean()), abs=1e-9)
    finally:
        del WEIGHTS["edges"]


def three_modalities(family: type[Inference], slots: tuple[str, ...]) -> Any:
    """A linear-Gaussian :class:`TrainedModel` of image, attributes and text; call it with "text" in ``WEIGHTS``."""
    model = composed(family)
    model.decoders["text"] = nn.Linear(2, 2, bias=False, dtype=torch.float64)
    model.decoders["text"].weight.data.copy_(WEIGHTS["text"])
    path, header = Path("model.safetensors"), SimpleNamespace(kind="model", content_id="m", parents=())
    data = DataSettings.from_descriptions(
        ImageDescription(shape=(1, 2, 2), layout="bytes"),
        AttributesDescription(names=("a",), values=(("0",),)),
        TextDescription(vocabulary=("w",), length=2, slots=slots),
    )
    settings: Any = SimpleNamespace(data=data, build_objective=Mvae)
    source: Any = (path, header)
    return TrainedModel(source, source, settings, model, torch.device("cpu"))


@pytest.mark.slow_cases(
    "unknown-free-ProductOfExperts",
    "unknown-free-QuotientOfExperts",
    "unknown-spelling-ProductOfExperts",
    "known-spelling-QuotientOfExperts",
)
@FAMILIES
@pytest.mark.parametrize("slots", [(), ("a", "b")], ids=["free", "spelling"])
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_given_text_is_not_given_attributes_too(
    family: type[Inference], slots: tuple[str, ...], known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """y is the text in a model of image, attributes and text: log p(x|y) is log p(x, text) - log p(text) whether or not
    attributes of the points are known, and so are the draws that log p(y) comes from."""
    monkeypatch.setitem(WEIGHTS, "text", torch.tensor([[0.9, 0.0], [0.0, 0.6]], dtype=torch.float64))
    told = three_modalities(family, slots)
    points = draw_observations(30)
    points.present["attributes"][:] = known
    monkeypatch.setattr("tests.metrics.test_linear_gaussian.loaded", lambda model: told)
    monkeypatch.setattr("mmgen.evaluation.needs.check_modalities", lambda *_: None)  # there is no dataset here
    found = scores(told.model, points, samples=4000, text_samples=4000)
    text = exact_log_marginal(points, ("text",))
    exact = exact_log_marginal(points, ("image", "text")) - text
    other = exact_log_marginal(points, (*BOTH, "text")) - exact_log_marginal(points, ("attributes", "text"))
    assert abs(float((exact - other).mean())) > 0.15
    for name in ("prior", "own"):
        score = found[name, "log p(x|y)", "importance"]
        assert score.value == pytest.approx(float(exact.mean()), abs=0.03), name
    assert found["prior", "log p(y)", "importance"].value == pytest.approx(float(text.mean()), abs=0.02)
    everything = told.encoder.informative_modalities(points)
    if known:  # what a person says with both is another matter
        assert everything == (("attributes",) if slots else ("attributes", "text"))
    else:
        assert everything == ("text",)


def test_of_several_ways_to_say_a_thing_one_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WEIGHTS, "text", torch.tensor([[0.9, 0.0], [0.0, 0.6]], dtype=torch.float64))
    told, points = three_modalities(ProductOfExperts, ()), draw_observations(3)
    assert told.encoder.informative_modalities(points) == ("attributes", "text")
    points.present["text"][:] = False
    assert told.encoder.informative_modalities(points) == ("attributes",)
    points.present["attributes"][:] = False
    assert told.encoder.informative_modalities(points.select(["text"])) == ("text",)  # which says nothing
    del told.model.inference.experts["text"]
    told = TrainedModel((told.path, told.header), (told.path, told.header), told.settings, told.model, told.device)
    with pytest.raises(UsageError, match=r"got a description by text, expected one by attributes"):
        told.completing(False).posteriors["own"].log_prob(torch.zeros(3, 2).double(), points.select(["text"]))


def test_posteriors_that_a_model_lacks() -> None:
    class OnlyImages(Inference):
        def has_posterior(self, inputs: tuple[str, ...]) -> bool:
            return inputs == ("image",)

        def infer(self, batch: Batch, given: tuple[str, ...]) -> DiagonalGaussian:
            return exact_posterior(batch, given)

    model = make_linear_gaussian()
    model.inference = OnlyImages()
    assert proposal_conditions(loaded(model), "auto") == proposal_conditions(loaded(model), "image") == ("image",)
    with pytest.raises(UsageError, match=r"--proposal got joint, .* expected one of auto, image, mixture"):
        proposal_conditions(loaded(model), "joint")
    del model.modalities["image"]
    with pytest.raises(UsageError, match="generates words alone"):
        proposal_conditions(loaded(model))


def test_a_conditional_model_says_log_p_of_x_given_y_itself() -> None:
    """x = W z + B d(y) + noise: log p(x|y) = log N(x; B d(y), W W' + s^2 I)."""
    model, points = make_conditional_linear_gaussian(), draw_conditional_observations(30)
    found = scores(model, points, samples=2, proposal="joint")
    assert {quantity for _, quantity, _ in found} == {"log p(x|y)"}
    score = found["prior", "log p(x|y)", "importance"]
    assert score.value == pytest.approx(float(exact_log_conditional(model, points).mean()), abs=1e-6)
    assert score.details["log_weight_variance"] < 1e-12
    assert score.details["proposal"] == "q(z|image, attributes)"
    with pytest.raises(UsageError, match=r"--proposal got image, .* expected one of auto, joint, mixture"):
        scores(model, points, proposal="image")


FEW = draw_observations(40)


def bounds(model: Any, samples: int) -> dict[str, Score]:
    evaluation = SimpleNamespace(
        loaded=loaded(model),
        settings=EvaluationSettings(samples=samples, precision="32-true"),
        data_points=FEW,
        content_ids={"model": "m"},
        dataset=SimpleNamespace(images={}),
    )
    member = NegativeElbo()
    member.check(evaluation)
    return {score.quantity: score for score in run_generator(member(evaluation, "prior"))}


@pytest.mark.parametrize(("mean_offset", "log_sd_offset"), [(0.0, 0.0), (0.3, 0.2)])
def test_bound_and_parts_have_their_closed_forms(mean_offset: float, log_sd_offset: float) -> None:
    """-E log p(x|z) = ((x - W m)^2 + sum_d w_d^2 s_d^2) / 2 noise^2 + constant; -ELBO = -log p(x) + KL(q, p(z|x))."""
    found = bounds(make_linear_gaussian(mean_offset, log_sd_offset), 4000)
    exact, weights, x = exact_posterior(FEW, ("image",)), WEIGHTS["image"], FEW.values["image"]
    q = DiagonalGaussian(exact.mean + mean_offset, exact.log_sd + log_sd_offset)
    squares = (x - q.mean @ weights.T).square().sum(-1) + (q.variance * weights.square().sum(0)).sum(-1)
    error = squares / (2 * NOISE**2) + 4 * (math.log(NOISE) + 0.5 * math.log(2 * math.pi))
    cost = q.kl(DiagonalGaussian.standard(*q.mean.shape, like=q.mean))
    bound = -exact_log_marginal(FEW, ("image",)) + q.kl(exact)
    assert found["KL"].value == pytest.approx(float(cost.mean()), abs=1e-9)
    assert found["reconstruction error"].value == pytest.approx(float(error.mean()), abs=0.02)
    assert found["negative ELBO"].value == pytest.approx(float(bound.mean()), abs=0.02)
    assert found["negative ELBO"].value == pytest.approx(found["KL"].value + found["reconstruction error"].value)
    values = found["negative ELBO"].points.values
    assert found["negative ELBO"].stderr == pytest.approx(float(bound.std() / math.sqrt(40)), rel=0.05)
    assert len(values) == found["negative ELBO"].n == 40
    assert {score.details["samples"] for score in found.values()} == {4000}


def test_a_conditional_model_has_no_bound_on_pictures_alone() -> None:
    with pytest.raises(UsageError, match=r"negative-elbo needs p\(image \| z\), and this model has none"):
        bounds(make_conditional_linear_gaussian(), 1)

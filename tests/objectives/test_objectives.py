"""Every objective against a model with closed-form densities, and against gradients derived by hand."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import torch

import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models._build import build_model
from mmgen.models._settings import DataSettings
from mmgen.settings.config import build_member
from mmgen.testing import objectives
from mmgen.testing.linear_gaussian import (
    NOISE,
    WEIGHTS,
    draw_conditional_observations,
    draw_observations,
    exact_log_conditional,
    exact_log_marginal,
    exact_posterior,
    make_conditional_linear_gaussian,
    make_linear_gaussian,
)
from mmgen.testing.objectives import make_unweighted_objective
from mmgen.testing.small import SMALL_AUTOENCODER, SMALL_DATA, SMALL_MODEL, small_batch

BOUNDS = ("bivcca", "cvae", "elbo", "iwae", "jmvae", "mmvae", "mopoe")
"""Objectives that are bounds where nothing is weighted, and must go on saying so; others are sums of several bounds."""


@pytest.fixture
def replace_noise() -> Iterator[int]:
    with objectives.replace_noise() as copies:
        yield copies


@pytest.mark.parametrize("name", mmgen.objectives.names())
def test_contract(name: str) -> None:
    for settings in ({}, *mmgen.objectives.get(name).variants):
        objectives.check_training(name, settings)


NAMED = DataSettings.from_descriptions(
    ImageDescription(name="photo", shape=(1, 16, 16), layout="bits"),
    AttributesDescription(**{**SMALL_DATA.attributes.model_dump(), "name": "tags"}),
    TextDescription(name="caption", vocabulary=("a", "b"), length=2),
)
"""Data with other names than those that weights are called by."""


WEIGHED = [
    (name, setting.name)
    for name in mmgen.objectives.names()
    for setting in fields(mmgen.objectives.get(name))
    if setting.name.endswith("_weight")
]
"""Every weight of a likelihood that an objective has a setting for: elbo and image_weight, and so on."""


@pytest.mark.parametrize(("name", "setting"), WEIGHED)
def test_every_weight_of_a_likelihood_acts_on_it_by_any_name(name: str, setting: str) -> None:
    """Where an objective takes modalities by their names, its weights go by what they are."""
    member = mmgen.objectives.get(name)
    named = {each.name for each in fields(member)}
    by_name = "modalities" in named
    data, called = (NAMED, tuple(NAMED.modalities)) if by_name else (SMALL_DATA, ("image", "attributes"))
    values, bounds = [], []
    for weight in (1.0, 0.02):
        others = {each: 1.0 for of, each in WEIGHED if of == name}
        chosen = {"modalities": called} if by_name else {}
        chosen |= {"given": called[:1]} if "given" in named else {}
        objective = member(**{**others, setting: weight}, **chosen)
        torch.manual_seed(0)
        settings = SMALL_AUTOENCODER if "fixed encoder" in objective.demands.needs else SMALL_MODEL
        if "private latents" in objective.demands.needs:
            settings = settings.model_copy(update={"private_sizes": {called[0]: 2}})
        model = build_model(settings, objective.demands, data).eval()
        small = small_batch()
        parts = [dict(zip(called, part.values(), strict=False)) for part in (small.values, small.present)]
        if by_name:
            parts[0]["caption"] = torch.tensor([[0, 1], [1, 2], [1, 1], [0, 2], [0, 0]])
            parts[1]["caption"] = torch.ones(5, dtype=torch.bool)
        torch.manual_seed(1)
        bound = objective(model, Batch(*parts))
        values.append(bound.value)
        bounds.append(bound.is_bound)
    assert ((values[0] - values[1]).abs() > 1e-3).all()
    assert bounds == [name in BOUNDS, False]


@pytest.mark.parametrize("main", ["photo", "edges"])
def test_the_weight_of_the_image_is_that_of_the_main_picture(main: str) -> None:
    """Two pictures, whichever is named first: the main one has the weight, the other has 1."""
    pictures = [ImageDescription(name=name, shape=(1, 16, 16), layout="bits") for name in ("edges", "photo")]
    data = DataSettings.from_descriptions(*pictures, main=main)
    small = small_batch()
    batch = Batch(*({"edges": part["image"], "photo": part["image"]} for part in (small.values, small.present)))
    for modalities in (("edges", "photo"), ("photo", "edges"), ("edges",)):
        objective = mmgen.objectives.get("elbo")(modalities=modalities, given=modalities[:1], image_weight=3.0)
        model = build_model(SMALL_MODEL, objective.demands, data)
        terms = (bound := objective(model, batch)).terms
        weighs = {name: 3.0 if name == (main if main in modalities else "edges") else 1.0 for name in modalities}
        expected = sum(weighs[name] * terms[f"log p({name}|z)"] for name in modalities) - terms["kl"]
        torch.testing.assert_close(bound.value, expected)


@pytest.mark.parametrize("name", ["elbo", "iwae", "mvtcae", "mopoe", "mmvae"])
def test_every_modality_has_a_weight_by_its_name(name: str) -> None:
    """The value is linear in each weight, by the same draws; a short form says the same; 1 is the default."""
    member, names = mmgen.objectives.get(name), ("wear", "image")
    pictures = [ImageDescription(name=each, shape=(1, 16, 16), layout="bits") for each in names]
    data, small = DataSettings.from_descriptions(*pictures, main="image"), small_batch()
    batch = Batch(*(dict.fromkeys(names, part["image"]) for part in (small.values, small.present)))
    values = []
    for chosen in ({}, {"weights": {"wear": 3.0}}, {"weights": {"image": 3.0}}, {"image_weight": 3.0}):
        objective = member(modalities=names, **chosen)
        torch.manual_seed(0)
        model = build_model(SMALL_MODEL, objective.demands, data).eval()
        torch.manual_seed(1)
        values.append(objective(model, batch).value)
    torch.testing.assert_close(values[2], values[3], rtol=0, atol=0)
    assert all((each - values[0]).abs().min() > 1e-3 for each in values[1:])
    assert not torch.allclose(values[1], values[2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": {"waer": 2.0}}, "weights got waer, expected some of the modalities image, wear"),
        (
            {"weights": {"image": 2.0}, "image_weight": 3.0},
            "and image_weight is 3, by you or the preset; set image_weight = 2 alone",
        ),
        ({"weights": {"wear": -1.0}}, "weights.wear. got -1.0"),
    ],
)
def test_a_weight_of_nothing_or_two_of_one_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build_member(mmgen.objectives, {"name": "elbo", "modalities": ["image", "wear"], **settings}, "objective")


@pytest.mark.parametrize("name", ["elbo", "mvae"])
def test_the_weight_of_attributes_is_theirs_by_any_name(name: str) -> None:
    """One model, its attributes called so or otherwise: the same value, which a weight of 1 does not give."""
    member = mmgen.objectives.get(name)
    values = []
    for called, weight in (("attributes", 50.0), ("labels", 50.0), ("labels", 1.0)):
        labels = {**SMALL_DATA.attributes.model_dump(), "name": called}
        data = DataSettings.from_descriptions(SMALL_DATA.image, AttributesDescription(**labels))
        # mvae's 50 is its default; elbo's has to be said.
        given = {"attributes_weight": weight} if name == "elbo" else {} if weight == 50 else {"weights": {called: 1.0}}
        objective = member(modalities=("image", called), **given)
        torch.manual_seed(0)
        model = build_model(SMALL_MODEL, objective.demands, data)
        batch = small_batch()
        batch = Batch(*({"image": part["image"], called: part["attributes"]} for part in (batch.values, batch.present)))
        torch.manual_seed(1)
        values.append(objective(model, batch).value)
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=0)
    assert not torch.allclose(values[1], values[2])


@pytest.mark.parametrize("name", mmgen.objectives.names())
def test_bounds_lie_below_the_exact_log_likelihood(name: str) -> None:
    assert objectives.check_bound(name) or name not in BOUNDS


def test_cvae_is_tight_at_the_true_posterior(replace_noise: int) -> None:
    model, batch = make_conditional_linear_gaussian(), draw_conditional_observations(20)
    bound = mmgen.objectives.get("cvae")()(model, batch.repeat(replace_noise))
    assert bound.is_bound
    torch.testing.assert_close(bound.value.reshape(20, -1).mean(1), exact_log_conditional(model, batch))
    assert not mmgen.objectives.get("cvae")(beta=0.5)(model, batch.repeat(replace_noise)).is_bound


@pytest.mark.parametrize("given", [("image", "attributes")])
def test_elbo_is_tight_at_the_true_posterior(given: tuple[str, ...], replace_noise: int) -> None:
    objective = mmgen.objectives.get("elbo")(given=given)
    bound = objective(make_linear_gaussian(), draw_observations(20).repeat(replace_noise))
    assert bound.is_bound
    exact = exact_log_marginal(draw_observations(20), ("image", "attributes"))
    torch.testing.assert_close(bound.value.reshape(20, -1).mean(1), exact)


@pytest.mark.parametrize("name", ["image", "attributes"])
def test_elbo_of_one_modality_is_tight_too(name: str, replace_noise: int) -> None:
    objective = mmgen.objectives.get("elbo")(modalities=(name,), given=(name,))
    value = objective(make_linear_gaussian(), draw_observations(20).repeat(replace_noise)).value
    torch.testing.assert_close(value.reshape(20, -1).mean(1), exact_log_marginal(draw_observations(20), (name,)))


def test_telbo_at_the_true_posteriors_is_the_sum_of_three_log_likelihoods(replace_noise: int) -> None:
    objective = make_unweighted_objective("telbo")
    value = objective(make_linear_gaussian(), draw_observations(20).repeat(replace_noise)).value.reshape(20, -1).mean(1)
    parts = [("image", "attributes"), ("image",), ("attributes",)]
    torch.testing.assert_close(value, sum(exact_log_marginal(draw_observations(20), part) for part in parts))


def test_weighted_or_annealed_objectives_do_not_claim_to_be_bounds() -> None:
    model, batch = make_linear_gaussian(), draw_observations(4)
    assert not mmgen.objectives.get("elbo")(attributes_weight=50.0)(model, batch).is_bound
    assert not mmgen.objectives.get("elbo")(kl_warmup_steps=10)(model, batch, step=3).is_bound
    assert mmgen.objectives.get("elbo")(kl_warmup_steps=10)(model, batch, step=10).is_bound
    assert not mmgen.objectives.get("jmvae")()(model, batch).is_bound


def test_beta_and_warmup_scale_the_divergence_alone(replace_noise: int) -> None:
    model, batch = make_linear_gaussian(), draw_observations(4).repeat(replace_noise)
    plain = mmgen.objectives.get("elbo")()(model, batch)
    beta = mmgen.objectives.get("elbo")(beta=3.0)(model, batch)
    half = mmgen.objectives.get("elbo")(kl_warmup_steps=10)(model, batch, step=5)
    torch.testing.assert_close(beta.value, plain.value - 2 * plain.terms["kl"])
    torch.testing.assert_close(half.value, plain.value + 0.5 * plain.terms["kl"])


def _likelihood_gradient(name: str, x: torch.Tensor, q: DiagonalGaussian) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradient of E_q[log N(x | W z, s^2)] with respect to mean and log sd.

    E[log p] = const - (|x - W m|^2 + sum_d sd_d^2 |W_d|^2) / (2 s^2), so
    d/dm = W'(x - W m) / s^2 and d/dlog sd_d = - sd_d^2 |W_d|^2 / s^2.
    """
    weights = WEIGHTS[name]
    to_mean = (x - q.mean @ weights.T) @ weights / NOISE**2
    return to_mean, -q.variance * weights.square().sum(0) / NOISE**2


def _prior_gradient(q: DiagonalGaussian) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradient of -KL(q || N(0, I)) = -sum (m^2 + sd^2 - 1) / 2 + log sd: -m and 1 - sd^2."""
    return -q.mean, 1 - q.variance


OFFSETS = (0.25, -0.3)


def _setting(copies: int):
    model = make_linear_gaussian(*OFFSETS)
    batch = draw_observations(6)
    exact = {g: exact_posterior(batch, g) for g in (("image",), ("attributes",), ("image", "attributes"))}
    moved = {g: DiagonalGaussian(q.mean + OFFSETS[0], q.log_sd + OFFSETS[1]) for g, q in exact.items()}
    return model, batch, batch.repeat(copies), moved


def _check(model, given: str, mean: torch.Tensor, log_sd: torch.Tensor) -> None:
    torch.testing.assert_close(model.inference.mean[given].grad, mean.mean(0))
    torch.testing.assert_close(model.inference.log_sd[given].grad, log_sd.mean(0))


def test_telbo_gradients_equal_those_derived_by_hand(replace_noise: int) -> None:
    model, batch, copies, q = _setting(replace_noise)
    objective = mmgen.objectives.get("telbo")(attributes_weight=50.0, private_attributes_weight=7.0)
    objective(model, copies).value.mean().backward()
    text = q["attributes",]
    likelihood = _likelihood_gradient("attributes", batch.values["attributes"], text)
    prior = _prior_gradient(text)
    _check(model, "attributes", 7 * likelihood[0] + prior[0], 7 * likelihood[1] + prior[1])
    image = q["image",]
    likelihood, prior = _likelihood_gradient("image", batch.values["image"], image), _prior_gradient(image)
    _check(model, "image", likelihood[0] + prior[0], likelihood[1] + prior[1])
    joint = q["image", "attributes"]
    from_image = _likelihood_gradient("image", batch.values["image"], joint)
    from_text = _likelihood_gradient("attributes", batch.values["attributes"], joint)
    prior = _prior_gradient(joint)
    _check(
        model,
        "attributes_image",
        from_image[0] + 50 * from_text[0] + prior[0],
        from_image[1] + 50 * from_text[1] + prior[1],
    )


def test_telbo_decoders_learn_from_the_joint_term_alone(replace_noise: int) -> None:
    """d/dW E[log p(x|z)] = E[(x - W z) z'] / s^2 = ((x - W m) m' - W diag(sd^2)) / s^2, under q(z|x,y) only."""
    model, batch, copies, q = _setting(replace_noise)
    mmgen.objectives.get("telbo")(attributes_weight=50.0, private_attributes_weight=7.0)(
        model, copies
    ).value.mean().backward()
    joint = q["image", "attributes"]
    for name, weight in (("image", 1.0), ("attributes", 50.0)):
        weights = WEIGHTS[name]
        residual = batch.values[name] - joint.mean @ weights.T
        outer = residual.unsqueeze(-1) * joint.mean.unsqueeze(-2) - weights * joint.variance.unsqueeze(-2)
        torch.testing.assert_close(model.decoders[name].weight.grad, weight * outer.mean(0) / NOISE**2)


def test_jmvae_gradients_equal_those_derived_by_hand(replace_noise: int) -> None:
    """-KL(p || q) has gradients (m_p - m_q) / sd_q^2 and (sd_p^2 + (m_p - m_q)^2) / sd_q^2 - 1 for q."""
    model, _, copies, q = _setting(replace_noise)
    mmgen.objectives.get("jmvae")(alpha=0.6)(model, copies).value.mean().backward()
    joint = q["image", "attributes"]
    for given in ("image", "attributes"):
        side = q[(given,)]
        difference = joint.mean - side.mean
        to_mean = difference / side.variance
        to_log_sd = (joint.variance + difference.square()) / side.variance - 1
        _check(model, given, 0.6 * to_mean, 0.6 * to_log_sd)


def test_bivcca_gradients_equal_those_derived_by_hand(replace_noise: int) -> None:
    model, batch, copies, q = _setting(replace_noise)
    mmgen.objectives.get("bivcca")(mu=0.7, attributes_weight=5.0)(model, copies).value.mean().backward()
    for given, share in (("image", 0.7), ("attributes", 0.3)):
        side = q[(given,)]
        image = _likelihood_gradient("image", batch.values["image"], side)
        text = _likelihood_gradient("attributes", batch.values["attributes"], side)
        prior = _prior_gradient(side)
        _check(
            model,
            given,
            share * (image[0] + 5 * text[0] + prior[0]),
            share * (image[1] + 5 * text[1] + prior[1]),
        )


def test_an_unknown_attribute_contributes_nothing() -> None:
    """The bound with an attribute hidden equals the bound of a description that never had it."""
    objective = mmgen.objectives.get("elbo")()
    torch.manual_seed(0)
    model = build_model(SMALL_MODEL, objective.demands, SMALL_DATA)
    batch = small_batch()
    hidden = batch.present["attributes"].clone()
    hidden[:, 1] = False
    values = []
    for code in (0, 1):
        changed = batch.values["attributes"].clone()
        changed[:, 1] = code
        torch.manual_seed(3)
        changed_batch = Batch({**batch.values, "attributes": changed}, {**batch.present, "attributes": hidden})
        values.append(objective(model, changed_batch).value)
    torch.testing.assert_close(values[0], values[1], rtol=0, atol=0)


def test_cvae_hides_a_share_of_known_attributes_in_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiagonalGaussian, "sample", lambda posterior, *_: posterior.mean)
    objective = mmgen.objectives.get("cvae")
    model = build_model(SMALL_MODEL, objective().demands, SMALL_DATA).eval()
    batch = small_batch(64)
    batch.present["attributes"][:32, 0] = False
    whole = objective()(model, batch, 10).value
    torch.testing.assert_close(objective(hidden_share=0.5)(model, batch).value, whole)
    blank = Batch({"attributes": torch.zeros(64, 2, dtype=torch.int64)}, {"attributes": torch.zeros(64, 2).bool()})
    hidden = objective()(model, batch | blank, 10).value
    torch.testing.assert_close(objective(hidden_share=1 - 1e-12)(model, batch, 10).value, hidden)
    shown = objective(hidden_share=0.5)._hide_descriptions(batch)
    assert not (shown.present["attributes"] & ~batch.present["attributes"]).any()
    assert 0.3 < shown.present["attributes"].sum() / batch.present["attributes"].sum() < 0.7
    assert not shown.values["attributes"][~shown.present["attributes"]].any()

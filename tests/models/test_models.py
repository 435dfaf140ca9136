"""What every model promises, over all members of the room; and the ladder against closed forms."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

import mmgen.models
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.modalities.image import ImageDescription
from mmgen.models._base import Demands, Model
from mmgen.models._build import build_model
from mmgen.models._settings import DataSettings
from mmgen.models.hierarchical_vae import HierarchicalVAE
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.iwae import Iwae
from mmgen.objectives.telbo import Telbo
from mmgen.settings.config import merge
from mmgen.testing import models
from mmgen.testing.linear_gaussian import draw_observations, exact_log_marginal, make_linear_gaussian
from mmgen.testing.small import SMALL_DATA
from mmgen.training.model_run import ExperimentSettings, read_experiment
from tests.models.linear_ladder import exact_log_image, ladder_observations, linear_ladder, lower_covariance

SMALL: dict[str, dict[str, Any]] = {
    "multimodal-vae": {"latent_size": 3, "hidden": 8},
    "hierarchical-vae": {"latent_sizes": (4, 2), "hidden": (8,)},
}
"""Settings that make a member small; without any it is as large as by default."""
NETWORKS = {"image_network": {"name": "mlp", "hidden": (16,)}, "attribute_network": {"hidden": 8, "decoder_hidden": 8}}
DEMANDS = Demands(frozenset([("image",)]), inference="image-only")


def settings_of(name: str, **model: Any) -> ExperimentSettings:
    fields = mmgen.models.get(name).settings.model_fields
    networks = {key: value for key, value in NETWORKS.items() if key in fields}
    values = {"name": name, **networks, **SMALL.get(name, {}), **model}
    return read_experiment({"model": values, "data": SMALL_DATA.model_dump(mode="json")})


def small_model(name: str) -> Model:
    torch.manual_seed(0)
    return build_model(settings_of(name).model, DEMANDS, SMALL_DATA).double().eval()


def doubled(batch: Batch) -> Batch:
    return Batch({n: t.double() if t.is_floating_point() else t for n, t in batch.values.items()}, batch.present)


@pytest.mark.slow_cases("draw-check_divergences")
@pytest.mark.parametrize(
    "check",
    [models.check_trace, models.check_prior, models.check_divergences, models.check_training],
)
@pytest.mark.parametrize("name", mmgen.models.names())
def test_contract(name: str, check: Callable[[str], None]) -> None:
    check(name)


@pytest.mark.parametrize("name", mmgen.models.names())
def test_encodings_are_gaussians_over_all_layers(name: str) -> None:
    model, case = models.small_model(name)
    batch = case.batch()
    encoded = model.encode(batch, case.inputs, torch.Generator().manual_seed(3))
    again = model.encode(batch, case.inputs, torch.Generator().manual_seed(3))
    assert encoded.mean.shape == encoded.log_sd.shape == (5, model.latent_size)
    torch.testing.assert_close(encoded.mean, again.mean, rtol=0, atol=0)
    unknown = ("text",)
    assert not model.has_posterior(unknown)
    with pytest.raises(
        UsageError, match=r"no inference network|needs text, which the batch lacks; add text to|has no q\(z \| text\)"
    ):
        model.posterior(batch, unknown)


@pytest.mark.parametrize("name", mmgen.models.names())
def test_settings_name_their_model(name: str) -> None:
    settings = settings_of(name)
    assert settings.model.name == name
    plain = settings.model_dump(mode="json")
    assert read_experiment(plain).model_dump(mode="json") == plain
    with pytest.raises(SettingsError, match=r"model\.latent_siz"):
        read_experiment(merge(settings.model_dump(mode="json"), {"model": {"latent_siz": 3}}))


def test_settings_without_a_name_are_of_a_multimodal_vae() -> None:
    assert read_experiment({"model": {"latent_size": 4}}).model.name == "multimodal-vae"


@pytest.mark.parametrize("name", [3, None, "multimodal", "hierarchical"])
def test_a_model_of_no_kind_is_refused(name: Any) -> None:
    with pytest.raises((SettingsError, UsageError), match="hierarchical-vae"):
        read_experiment({"model": {"name": name}})


# The ladder.


def test_a_ladder_of_one_layer_is_a_vae() -> None:
    settings = read_experiment({"model": {"name": "hierarchical-vae", **NETWORKS, "latent_sizes": (3,)}}).model
    model = build_model(settings, DEMANDS, SMALL_DATA)
    assert model.latent.layers == {"z": 3}
    z = torch.randn(4, 3)
    torch.testing.assert_close(model.log_prior(z), torch.distributions.Normal(0, 1).log_prob(z).sum(-1))


def test_the_published_networks_of_two_layers() -> None:
    """521,084 parameters (the authors' code: 784-200-200-100 and 100-100-100-50, mirrored)."""
    data = DataSettings.from_descriptions(ImageDescription(shape=(1, 28, 28), layout="bits"))
    network = {"name": "mlp", "hidden": (200, 200), "activation": "tanh"}
    settings = read_experiment({"model": {"name": "hierarchical-vae", "image_network": network}}).model
    model = build_model(settings, Demands(frozenset([("image",)]), ("image",)), data)
    assert sum(p.numel() for p in model.parameters()) == 521_084
    assert model.latent.layers == {"z1": 100, "z2": 50}


@pytest.mark.parametrize("objective", [Telbo(), Elbo(given=("image", "attributes"))], ids=repr)
def test_a_ladder_refuses_what_it_cannot_infer(objective: Any) -> None:
    with pytest.raises(SettingsError, match="infers z from one image alone, but the objective asks for"):
        build_model(settings_of("hierarchical-vae").model, objective.demands, SMALL_DATA)


def test_the_prior_of_a_ladder_has_the_exact_covariance() -> None:
    """z1 ~ N(0, A A' + s^2 I), independent of how it was drawn."""
    model = linear_ladder()
    z = model.posterior(ladder_observations(1), ()).sample(torch.Generator().manual_seed(0), (200_000,))[:, 0]
    lower = model.latent.split(z.detach())["z1"]
    torch.testing.assert_close(lower.T.cov(), lower_covariance(), rtol=0.03, atol=0.02)


def test_means_of_a_ladder_are_given_one_draw_of_what_is_below() -> None:
    """The first layer's is that of q(z1 | x), without the noise of the draw that the second layer's is given."""
    model, batch = linear_ladder(), ladder_observations(9)
    first, second = (
        model.latent.split(model.means(batch, ("image",), torch.Generator().manual_seed(s))) for s in (0, 1)
    )
    torch.testing.assert_close(first["z1"], model.first(batch.values["image"]).mean, rtol=0, atol=0)
    torch.testing.assert_close(first["z1"], second["z1"], rtol=0, atol=0)
    assert (first["z2"] != second["z2"]).all()


def _bounds(model: HierarchicalVAE | Model, batch: Batch, samples: int, copies: int) -> tuple[Tensor, Tensor]:
    """Means of the bound through k draws, and their errors [B]."""
    torch.manual_seed(0)
    objective = Iwae(samples=samples, modalities=("image",))
    with torch.no_grad():
        values = torch.stack([objective(model, batch).value for _ in range(copies)])
    return values.mean(0), values.std(0) / math.sqrt(copies)


@pytest.mark.slow
def test_bounds_of_a_ladder_rise_to_the_exact_log_likelihood() -> None:
    """L_1 <= L_5 <= L_50 <= log p(x), whose limit is exact (Burda et al., 2016, Theorem 1)."""
    model, batch = linear_ladder(), ladder_observations(6)
    exact = exact_log_image(batch)
    before = torch.full_like(exact, -torch.inf)
    for samples in (1, 5, 50, 2_000):
        value, error = _bounds(model, batch, samples, 400)
        assert (value < exact + 5 * error).all()
        assert (value > before - 5 * error).all()
        assert samples > 1 or (value < exact - 5 * error).all()  # the gap that the others close
        before = value
    torch.testing.assert_close(before, exact, rtol=0, atol=0.03)


@pytest.mark.slow
def test_l_k_of_the_linear_gaussian_model_is_what_quadrature_says() -> None:
    """k = 1 of a flat model: log p(x) - KL(q || p(z | x)), exactly."""
    model, batch = make_linear_gaussian(0.3, -0.2), draw_observations(8)
    value, error = _bounds(model, batch, 1, 3_000)
    q, exact_q = model.posterior(batch, ("image",)), make_linear_gaussian().posterior(batch, ("image",))
    exact = exact_log_marginal(batch, ("image",)) - q.kl(exact_q)
    assert ((value - exact).abs() < 5 * error).all()


@pytest.mark.parametrize("names", [(), ("image", "image")], ids=repr)
@pytest.mark.parametrize("member", [Elbo, Iwae])
def test_an_objective_of_nothing_or_of_something_twice_is_refused(member: Any, names: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="expected at least one modality and none twice"):
        member(modalities=names)


@pytest.mark.parametrize("given", [{"hidden": (8,)}, {"activation": "elu"}], ids=repr)
def test_what_a_single_layer_would_ignore_is_refused(given: dict[str, Any]) -> None:
    settings = read_experiment({"model": {"name": "hierarchical-vae", "latent_sizes": (3,), **given}}).model
    with pytest.raises(SettingsError, match=f"model.{next(iter(given))} sets networks between layers of z"):
        build_model(settings, DEMANDS, SMALL_DATA)


@pytest.mark.parametrize(
    ("demands", "lacking"),
    [
        (
            Demands(frozenset([("image",)]), ("image",), needs=frozenset({"subsets"})),
            "posterior for every subset of modalities",
        ),
        (Demands(frozenset([("image",), ("attributes",)]), ("image",)), "q(z | attributes)"),
        (Demands(frozenset([("image",)])), "p(attributes | z)"),
    ],
)
def test_a_model_of_any_kind_is_held_against_the_demands(
    demands: Demands, lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that takes whatever it is asked for, as one from outside may, is refused by the one who builds."""
    narrow = Demands(frozenset([("image",)]), ("image",), inference="image-only")
    made = build_model(settings_of("multimodal-vae").model, narrow, SMALL_DATA)
    monkeypatch.setattr(MultimodalVAE, "build", lambda settings, demands, data: made)
    with pytest.raises(SettingsError) as refused:
        build_model(settings_of("multimodal-vae").model, demands, SMALL_DATA)
    assert f"model 'multimodal-vae' has no {lacking}" in str(refused.value)
    assert ", which the objective needs; " in str(refused.value)

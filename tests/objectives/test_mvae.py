"""Compositions of experts and the MVAE objective: against numerical integration, closed forms and enumeration."""

import itertools
import math
from collections import Counter

import pytest
import torch
from torch import nn

import mmgen.inference
import mmgen.objectives
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError
from mmgen.inference._base import ExpertInference, InferenceParts
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.space import LatentSpace
from mmgen.modalities._base import Modality
from mmgen.modalities.image import ImageDescription
from mmgen.models._build import build_model
from mmgen.models._settings import DataSettings, MultimodalSettings
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.networks._attributes import AttributeNetwork, AttributeVectorEncoder
from mmgen.objectives import mvae
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.mvae import Mvae, draw_subset
from mmgen.settings.config import build_member
from mmgen.testing.linear_gaussian import NOISE, Normal
from mmgen.testing.small import SMALL_DATA, SMALL_MODEL, small_batch
from tests.objectives.test_objectives import replace_noise

__all__ = ["replace_noise"]

MEMBERS = ["product-of-experts", "quotient-of-experts"]
FOUR = ("one", "two", "three", "four")
# Columns are orthogonal, so that exact posteriors are diagonal.
LOADINGS = {
    "one": torch.tensor([[1.0, 0.5], [1.0, -0.5]], dtype=torch.float64) * torch.tensor([1.0, 2.0]),
    "two": torch.tensor([[0.8, 0.0], [0.0, -1.2]], dtype=torch.float64),
    "three": torch.tensor([[0.3, 1.0], [-0.3, 1.0], [1.0, 0.0]], dtype=torch.float64),
    "four": torch.tensor([[0.0, 0.4]], dtype=torch.float64),
}


class Fixed(nn.Module):
    """An expert that says the same of every example."""

    def __init__(self, mean: float, log_sd: float, size: int = 1) -> None:
        super().__init__()
        self.q = DiagonalGaussian(
            torch.full((size, 1), mean, dtype=torch.float64), torch.full((size, 1), log_sd, dtype=torch.float64)
        )

    def forward(self, batch: Batch) -> DiagonalGaussian:
        return self.q


class Exact(nn.Module):
    """The expert that makes compositions exact: the likelihood of z as a Gaussian, or p(z | x) for quotients."""

    def __init__(self, name: str, quotient: bool) -> None:
        super().__init__()
        self.name, self.quotient = name, quotient

    def forward(self, batch: Batch) -> DiagonalGaussian:
        loading = LOADINGS[self.name]
        precision = (loading.T @ loading).diagonal() / NOISE**2
        weighted = batch.values[self.name] @ loading / NOISE**2
        safe = precision.clamp(min=1e-12)
        mean = weighted / (1 + precision if self.quotient else safe)
        return DiagonalGaussian(mean, (-0.5 * safe.log()).expand_as(mean))


def all_subsets(count: int) -> list[tuple[bool, ...]]:
    """What a random subset is drawn from: those of 2 to ``count`` - 1 units."""
    return [s for s in itertools.product((False, True), repeat=count) if 2 <= sum(s) < count]


def composed(member: str, experts: dict[str, nn.Module]) -> ExpertInference:
    nothing = InferenceParts(LatentSpace.flat(2), {}, {}, hidden=4)
    inference = mmgen.inference.get(member)(nothing, frozenset())
    inference.experts = nn.ModuleDict(experts)
    assert isinstance(inference, ExpertInference)
    return inference


def four_modalities(member: str) -> MultimodalVAE:
    decoders: dict[str, nn.Module] = {}
    for name, loading in LOADINGS.items():
        decoders[name] = nn.Linear(2, len(loading), bias=False, dtype=torch.float64)
        decoders[name].weight.data.copy_(loading)
    modalities: dict[str, Modality] = {name: Normal(name) for name in FOUR}
    experts = {name: Exact(name, member == "quotient-of-experts") for name in FOUR}
    return MultimodalVAE(LatentSpace.flat(2), modalities, decoders, composed(member, experts))


def four_observations(size: int) -> Batch:
    generator = torch.Generator().manual_seed(3)
    z = torch.randn(size, 2, generator=generator, dtype=torch.float64)
    values = {
        name: z @ loading.T + NOISE * torch.randn(size, len(loading), generator=generator, dtype=torch.float64)
        for name, loading in LOADINGS.items()
    }
    return Batch(values, {name: torch.ones(size, dtype=torch.bool) for name in FOUR})


def exact_log_marginal(batch: Batch, names: list[str]) -> torch.Tensor:
    loading = torch.cat([LOADINGS[name] for name in names])
    covariance = loading @ loading.T + NOISE**2 * torch.eye(len(loading), dtype=torch.float64)
    observed = torch.cat([batch.values[name] for name in names], -1)
    return torch.distributions.MultivariateNormal(torch.zeros(len(loading)).double(), covariance).log_prob(observed)


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("subset", [("one",), ("one", "two"), ("one", "two", "three")])
def test_compositions_equal_numerical_integration(member: str, subset: tuple[str, ...]) -> None:
    raw = {"one": (0.7, -0.3), "two": (-1.1, 0.4), "three": (0.2, 1.5)}
    inference = composed(member, {name: Fixed(*numbers) for name, numbers in raw.items()})
    batch = Batch({name: torch.zeros(1, 1) for name in raw}, {name: torch.ones(1, dtype=torch.bool) for name in raw})
    q = inference.posterior(batch, subset)

    z = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    prior = torch.distributions.Normal(0.0, 1.0).log_prob(z)
    log_density = torch.zeros_like(z)
    for name in subset:
        mean, log_sd = raw[name]
        # The quotient's experts have variance sigmoid(log v), which is below the prior's.
        variance = math.exp(2 * log_sd)
        sd = math.sqrt(variance) if member == "product-of-experts" else math.sqrt(variance / (1 + variance))
        log_density = log_density + torch.distributions.Normal(mean, sd).log_prob(z)
    priors = 1 if member == "product-of-experts" else 1 - len(subset)
    log_density = log_density + priors * prior
    weight = (log_density - log_density.max()).exp()
    weight = weight / weight.sum()
    mean = (weight * z).sum()
    torch.testing.assert_close(q.mean.squeeze(), mean, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(q.variance.squeeze(), (weight * (z - mean) ** 2).sum(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("log_sd", [-7.0, 0.0, 4.0])
def test_every_quotient_is_a_gaussian(log_sd: float) -> None:
    names = [str(number) for number in range(19)]
    inference = composed("quotient-of-experts", {name: Fixed(3.0, log_sd) for name in names})
    batch = Batch(
        {name: torch.zeros(1, 1) for name in names}, {name: torch.ones(1, dtype=torch.bool) for name in names}
    )
    q = inference.posterior(batch, tuple(names))
    assert q.mean.isfinite().all() and (q.variance > 0).all() and (q.variance < 1).all()


def test_compositions_stay_in_full_precision_under_autocast() -> None:
    torch.manual_seed(0)
    model = build_model(SMALL_MODEL, Mvae().demands, SMALL_DATA)
    exact = model.posterior(small_batch(), ("image", "attributes"))
    with torch.autocast("cpu", torch.bfloat16):
        q = model.posterior(small_batch(), ("image", "attributes"))
        value = Mvae()(model, small_batch()).value
    assert q.mean.dtype == q.log_sd.dtype == value.dtype == torch.float32
    torch.testing.assert_close(q.variance, exact.variance, rtol=0.05, atol=0.0)


@pytest.mark.parametrize("member", MEMBERS)
def test_at_the_true_posteriors_it_is_the_sum_of_log_likelihoods(
    member: str, replace_noise: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = (True, False, True, True)
    monkeypatch.setattr(mvae, "draw_subset", lambda count, law: drawn)
    batch = four_observations(6)
    objective = Mvae(modalities=FOUR, weights={}, subsets=1)
    value = objective(four_modalities(member), batch.repeat(replace_noise)).value.reshape(6, -1).mean(1)
    parts = [[*FOUR], *([name] for name in FOUR), ["one", "three", "four"]]
    torch.testing.assert_close(value, torch.stack([exact_log_marginal(batch, part) for part in parts]).sum(0))


@pytest.mark.parametrize("member", MEMBERS)
def test_missing_modalities_are_left_out_of_every_term(member: str, replace_noise: int) -> None:
    """What is missing is NaN here: nothing of it may reach a network or a density, and no term may count twice."""
    whole = four_observations(3)
    held = {"one": [True, True, False], "two": [True, False, False], "three": [False, True, False]}
    held["four"] = [False, False, True]
    present = {name: torch.tensor(mask) for name, mask in held.items()}
    values = {name: v.clone() for name, v in whole.values.items()}
    for name, mask in present.items():
        values[name][~mask] = math.nan
    batch = Batch(values, present).repeat(replace_noise)
    bound = Mvae(modalities=FOUR, weights={})(four_modalities(member), batch)
    value = bound.value.reshape(3, -1).mean(1)
    expected = [
        [["one", "two"], ["one"], ["two"]],
        [["one", "three"], ["one"], ["three"]],
        [["four"]],  # a single modality is one term: the joint one is the same and is left out
    ]
    for example, parts in enumerate(expected):
        alone = whole[slice(example, example + 1)]
        total = torch.stack([exact_log_marginal(alone, part) for part in parts]).sum()
        torch.testing.assert_close(value[example], total)


def test_no_gradient_comes_from_what_is_missing() -> None:
    torch.manual_seed(0)
    model = build_model(SMALL_MODEL, Mvae().demands, SMALL_DATA)
    batch = small_batch()
    images_only = Batch(batch.values, {**batch.present, "attributes": torch.zeros(5, 2, dtype=torch.bool)})
    Mvae()(model, images_only).value.mean().backward()
    norms = {name: 0.0 if p.grad is None else float(p.grad.norm()) for name, p in model.named_parameters()}
    of_attributes = [norm for name, norm in norms.items() if ".attributes." in name]
    of_images = [norm for name, norm in norms.items() if ".image." in name]
    assert of_attributes and max(of_attributes) == 0.0
    assert of_images and min(of_images) > 0.0


def test_random_subsets_are_uniform_over_all_of_two_to_all_but_one() -> None:
    subsets = all_subsets(4)
    assert len(subsets) == 10 and len(set(subsets)) == 10
    torch.manual_seed(0)
    draws = 20_000
    counts = Counter(draw_subset(4) for _ in range(draws))
    assert set(counts) == set(subsets)
    error = math.sqrt(0.1 * 0.9 / draws)
    assert max(abs(count / draws - 0.1) for count in counts.values()) < 4 * error


def test_sizes_may_be_drawn_first() -> None:
    """As published for MVAE19: of four modalities sizes 2 and 3 are equally likely, then the subsets of that size."""
    torch.manual_seed(0)
    draws = 20_000
    counts = Counter(draw_subset(4, "sizes") for _ in range(draws))
    assert set(counts) == set(all_subsets(4))
    for subset, count in counts.items():
        likely = 0.5 / math.comb(4, sum(subset))
        assert abs(count / draws - likely) < 4 * math.sqrt(likely * (1 - likely) / draws)


def test_the_sampled_objective_is_unbiased(replace_noise: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mean over every subset that may be drawn is the sum over all of them, weighted as Eq. 5 weighs k draws."""
    model, batch = four_modalities("product-of-experts"), four_observations(4)
    repeated = batch.repeat(replace_noise)
    values = []
    for subset in all_subsets(4):
        monkeypatch.setattr(mvae, "draw_subset", lambda count, law, subset=subset: subset)
        value = Mvae(modalities=FOUR, weights={}, subsets=1)(model, repeated).value
        values.append(value.reshape(4, -1).mean(1))
    fixed = [[*FOUR], *([name] for name in FOUR)]
    random = [[name for name, held in zip(FOUR, subset, strict=True) if held] for subset in all_subsets(4)]
    full = torch.stack([exact_log_marginal(batch, part) for part in fixed]).sum(0)
    full = full + torch.stack([exact_log_marginal(batch, part) for part in random]).mean(0)
    torch.testing.assert_close(torch.stack(values).mean(0), full)


@pytest.mark.parametrize("missing", [False, True])
def test_every_network_runs_once_per_step(missing: bool) -> None:
    data = DataSettings.from_descriptions(
        *(ImageDescription(name=name, shape=(1, 16, 16), layout="bits") for name in ("image", "edges", "mask")),
        SMALL_DATA.attributes,
    )
    objective = Mvae(modalities=("image", "edges", "mask", "attributes"), subsets=3)
    model = build_model(SMALL_MODEL, objective.demands, data)
    batch = small_batch()
    values = {**batch.values, "edges": batch.values["image"], "mask": 1 - batch.values["image"]}
    there = torch.ones(5, dtype=torch.bool)
    gone = torch.tensor([True, False, True, True, False]) if missing else there
    batch = Batch(values, {**batch.present, "edges": gone, "mask": there})
    calls: Counter[str] = Counter()
    for room, networks in (("encoder", model.inference.experts), ("decoder", model.decoders)):
        for name, network in networks.items():
            network.register_forward_hook(lambda *_, key=f"{room} of {name}": calls.update([key]))
    objective(model, batch)
    wanted = {f"{room} of {name}" for room in ("encoder", "decoder") for name in objective.modalities}
    assert calls == dict.fromkeys(wanted, 1)


def test_attributes_may_each_be_a_modality() -> None:
    """Their terms are those of the attributes alone, computed here with everything else masked."""
    torch.manual_seed(0)
    objective = Mvae(weights={}, split_attributes=True)
    model = build_model(SMALL_MODEL, objective.demands, SMALL_DATA).double()
    batch = small_batch()
    batch = Batch({**batch.values, "image": batch.values["image"].double()}, batch.present)
    assert objective.units(model) == [("image", None), ("attributes", 0), ("attributes", 1)]
    z = torch.randn(2, 5, 3, dtype=torch.float64)
    for attribute in range(2):
        only = torch.zeros(5, 2, dtype=torch.bool)
        only[:, attribute] = True
        masked = Batch(batch.values, {**batch.present, "attributes": only})
        torch.testing.assert_close(
            model.log_likelihood_of_attribute("attributes", attribute, z, batch),
            model.log_likelihood("attributes", z, masked),
        )
        alone = model.subset_posteriors(batch, [("attributes", attribute)], [(True,)])
        torch.testing.assert_close(alone.mean[0], model.posterior(masked, ("attributes",)).mean)
    terms = objective(model, batch).terms
    assert {"log p(attributes|z), attributes alone", "kl, attributes alone"} <= terms.keys()


def test_one_modality_is_the_plain_bound() -> None:
    model = four_modalities("product-of-experts")
    batch = four_observations(8)
    torch.manual_seed(5)
    value = Mvae(modalities=("one",), weights={})(model, batch).value
    torch.manual_seed(5)
    torch.testing.assert_close(value, Elbo(modalities=("one",), given=("one",))(model, batch).value)


def test_weights_and_the_mean_of_modalities_scale_likelihoods(replace_noise: int) -> None:
    model, batch = four_modalities("product-of-experts"), four_observations(4).repeat(replace_noise)
    plain = Mvae(modalities=FOUR, weights={})(model, batch)
    heavy = Mvae(modalities=FOUR, weights={"two": 3.0})(model, batch)
    mean = Mvae(modalities=FOUR, weights={}, mean_of_modalities=True)(model, batch)
    of_two = plain.terms["log p(two|z)"] + plain.terms["log p(two|z), two alone"]
    torch.testing.assert_close(heavy.value, plain.value + 2 * of_two)
    joint = torch.stack([plain.terms[f"log p({name}|z)"] for name in FOUR]).sum(0)
    torch.testing.assert_close(mean.value, plain.value - 0.75 * joint)


def test_the_mean_is_of_the_modalities_that_an_example_has(replace_noise: int) -> None:
    """An example that lacks two of four has its two sums halved, as in a model of these two; others have a quarter."""
    model, batch = four_modalities("product-of-experts"), four_observations(4).repeat(replace_noise)
    present = {name: torch.ones(batch.size, dtype=torch.bool) for name in FOUR}
    for name in FOUR[2:]:
        present[name][: batch.size // 2] = False
    some = Batch(batch.values, present)
    plain = Mvae(modalities=FOUR, weights={})(model, some)
    mean = Mvae(modalities=FOUR, weights={}, mean_of_modalities=True)(model, some)
    joint = torch.stack([plain.terms[f"log p({name}|z)"] for name in FOUR]).sum(0)
    number = torch.stack([present[name] for name in FOUR]).sum(0)
    torch.testing.assert_close(mean.value, plain.value - (1 - 1 / number) * joint)


def test_labels_weigh_50_unless_one_says_otherwise() -> None:
    assert Mvae().weight("attributes") == Mvae(weights={"image": 2.0}).weight("attributes") == 50.0
    assert Mvae(weights={"attributes": 1.0}).weight("attributes") == Mvae().weight("image") == 1.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"modalities": []},
            "setting 'objective.modalities': got no modality, expected at least one modality and none twice",
        ),
        ({"modalities": ["image", "image"]}, "none twice"),
        ({"weights": {"edges": 2.0}}, "weights got edges, expected some of the modalities image, attributes"),
        ({"predicts": {"image": ["edges"]}}, "predicts got edges"),
        ({"predicts": {"image": ["image"]}}, "predicts got image for image"),
        ({"subsets": 3}, "subsets got 3, expected 0"),
        ({"subset_law": "sizes"}, "subset_law got sizes, but subsets got 0"),
    ],
)
def test_settings_without_a_meaning_are_refused(settings: dict, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        build_member(mmgen.objectives, {"name": "mvae", **settings}, "objective")


@pytest.mark.parametrize("missing", ["image", "attributes"])
def test_a_single_row_passes_batch_norm(missing: str) -> None:
    """Only one example has the modality: its networks see one row, and its gradients are those of one."""
    torch.manual_seed(0)
    shared = {"experts": "together", "batch_norm": True, "hidden": 8, "decoder_hidden": 8}
    strided = {"name": "strided", "channels": (4, 8), "fully_connected": (8,)}
    settings = MultimodalSettings(**{**SMALL_MODEL.model_dump(), "attribute_network": shared, "image_network": strided})
    model = build_model(settings, Mvae().demands, SMALL_DATA)
    batch = small_batch()
    present = dict(batch.present)
    present[missing] = torch.zeros_like(present[missing])
    present[missing][2] = True
    value = Mvae()(model, Batch(batch.values, present)).value
    assert value.isfinite().all()
    value.mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(
    ("model", "objective", "words"),
    [
        ({"inference": "joint"}, {}, "single Gaussians of every subset"),
        ({"attribute_network": {"experts": "together"}}, {"split_attributes": True}, "set it to 'each'"),
        ({}, {"modalities": ("image", "edges")}, "needs the modality edges"),
        ({}, {"modalities": ("image",), "split_attributes": True}, "are attributes; leave it out"),
    ],
)
def test_settings_that_do_not_fit_are_refused(model: dict, objective: dict, words: str) -> None:
    settings = MultimodalSettings(**{**SMALL_MODEL.model_dump(), **model})
    with pytest.raises(SettingsError, match=words):
        build_model(settings, Mvae(**objective).demands, SMALL_DATA)


def test_an_unknown_attribute_adds_nothing_to_a_shared_encoder() -> None:
    torch.manual_seed(0)
    encoder = AttributeVectorEncoder((3, 2), AttributeNetwork(experts="together", hidden=6), layers=1)
    codes = torch.tensor([[2, 1], [2, 0], [0, 0]])
    known = torch.tensor([[True, True], [True, False], [False, False]])
    weight, bias = encoder.layers[0].weight, encoder.layers[0].bias
    expected = torch.stack([bias + weight[:, 2] + weight[:, 3], bias + weight[:, 2], bias])
    torch.testing.assert_close(encoder(codes, known), nn.functional.elu(expected))

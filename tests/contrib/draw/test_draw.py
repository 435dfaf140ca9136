"""DRAW and alignDRAW: counts of parameters, densities of the steps, captions, and closed forms."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mmgen.contrib.draw.models.draw import Draw, DrawSettings
from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.inference import GaussianHead
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.modalities.attributes import AttributesDescription
from mmgen.modalities.image import ImageDescription
from mmgen.modalities.text import TextDescription
from mmgen.models import DataSettings, build_model
from mmgen.objectives.cvae import Cvae
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.iwae import Iwae
from mmgen.objectives.telbo import Telbo
from mmgen.testing.small import SMALL_DATA, small_batch

SMALL: dict[str, Any] = {**DrawSettings.example, "reader": 4, "alignment": 6}
WORDS = ("a", "big", "red", "cube")
CAPTIONED = DataSettings.from_descriptions(
    ImageDescription(shape=(1, 16, 16), layout="bits"), TextDescription(vocabulary=WORDS, length=4)
)
TEXT = Cvae(description="text")


def count(settings: dict[str, Any], shape: tuple[int, int, int], words: int = 0) -> int:
    parts: list[Any] = [ImageDescription(shape=shape, layout="bytes")]
    if words:
        parts.append(TextDescription(vocabulary=tuple(f"w{number}" for number in range(words)), length=3))
    data = DataSettings.from_descriptions(*parts)
    demands = TEXT.demands if words else Elbo(modalities=("image",)).demands
    with torch.device("meta"):
        model = build_model(DrawSettings(**settings), demands, data)
    return sum(parameter.numel() for parameter in model.parameters())


MANSIMOV = {"prior": "state", "learned_start": True, "steps": 32, "reader": 128, "alignment": 512}


@pytest.mark.parametrize(
    ("settings", "shape", "words", "expected"),
    [
        ({"read_patch": 5, "write_patch": 5}, (1, 28, 28), 0, 1_002_475),
        (
            {**MANSIMOV, "hidden": 550, "latent_size": 275, "read_patch": 9, "write_patch": 9},
            (3, 32, 32),
            25_323,
            33_098_147,
        ),
    ],
)
def test_published_configurations_have_the_published_number_of_parameters(
    settings: dict[str, Any], shape: tuple[int, int, int], words: int, expected: int
) -> None:
    """DRAW on MNIST and alignDRAW on MNIST captions and COCO, with one bias an LSTM."""
    assert count(settings, shape, words) == expected


def captioned_model(**changes: Any) -> Draw:
    torch.manual_seed(0)
    model = build_model(DrawSettings(**{**SMALL, **changes}), TEXT.demands, CAPTIONED)
    assert isinstance(model, Draw)
    for parameter in model.parameters():  # so that captions and steps make a difference
        nn.init.normal_(parameter, 0.0, 0.3)
    return model.double().eval()


def captioned_batch() -> Batch:
    image = small_batch().select(["image"])
    codes = torch.tensor([[0, 1, 2, 3], [0, 2, 3, 4], [3, 4, 4, 4], [0, 3, 4, 4], [2, 3, 4, 4]])
    values = {"image": image.values["image"].double(), "text": codes}
    return Batch(values, {name: torch.ones(5, dtype=torch.bool) for name in values})


GIVEN = ("image", "text")


@pytest.mark.parametrize("alignment", [6, 0])
def test_permuting_the_batch_permutes_everything(alignment: int) -> None:
    """A reader that turns over the batch, not the words, would read another example's caption."""
    model, batch = captioned_model(alignment=alignment), captioned_batch()
    order = torch.tensor([3, 1, 4, 0, 2])
    z = torch.randn(2, 5, model.latent_size, dtype=torch.float64)
    for found, expected in (
        (model.decode("image", z[:, order], batch[order]), model.decode("image", z, batch)[:, order]),
        (
            model.posterior(batch[order], GIVEN).log_prob(z[:, order]),
            model.posterior(batch, GIVEN).log_prob(z)[:, order],
        ),
    ):
        torch.testing.assert_close(found, expected)
    captions = [tuple(row) for row in batch.values["text"].tolist()]
    means = model.decode("image", z[:1, :1].expand(1, 5, -1), batch)[0]
    assert len({tuple(mean.flatten().tolist()) for mean in means}) == len(set(captions))


def test_draws_of_padded_and_absent_captions() -> None:
    """Further padding changes no density; an absent caption is drawn as one without words."""
    model, batch = captioned_model(), captioned_batch()
    z = torch.randn(5, model.latent_size, dtype=torch.float64)
    codes = batch.values["text"]
    longer = batch | Batch({"text": torch.cat([codes, torch.full((5, 3), 4)], 1)}, {})
    torch.testing.assert_close(model.decode("image", z, longer), model.decode("image", z, batch))
    absent = batch | Batch({}, {"text": torch.zeros(5, dtype=torch.bool)})
    empty = batch | Batch({"text": torch.full((5, 4), 4)}, {})
    torch.testing.assert_close(model.decode("image", z, absent), model.decode("image", z, empty))
    weights = torch.stack([step.words for step in model.steps(z, longer) if step.words is not None])
    assert (weights[..., longer.values["text"] == 4] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 5).double())
    torch.testing.assert_close(weights[:, 2, 0], torch.ones(3).double(), rtol=0, atol=0)  # the only word


def test_the_divergence_of_the_steps_is_a_sum_of_gaussian_divergences() -> None:
    """Of z from its prior, in closed form by numpy's formula, not of the noise that the model stores."""
    model, batch = captioned_model(), captioned_batch()
    torch.manual_seed(1)
    trace = model.trace(batch, GIVEN)
    steps = model.steps(trace.z, batch, batch.values["image"])
    total = torch.zeros(5, dtype=torch.float64)
    for step in steps:
        assert step.posterior is not None
        p, q = step.prior, step.posterior
        mean, sd = p.mean + p.sd * q.mean, p.sd * q.sd
        terms = torch.log(p.sd / sd) + (sd**2 + (mean - p.mean) ** 2) / (2 * p.sd**2) - 0.5
        total += terms.sum(-1)
        assert (p.mean.abs() <= 1).all() and (p.sd >= math.exp(-1)).all() and (p.sd <= math.e).all()
    torch.testing.assert_close(trace.total_divergence, total)


def test_the_first_step_has_a_standard_prior_and_later_ones_follow_the_state() -> None:
    model, batch = captioned_model(), captioned_batch()
    z = torch.randn(5, model.latent_size, dtype=torch.float64)
    priors = [step.prior for step in model.steps(z, batch)]
    assert (priors[0].mean == 0).all() and (priors[0].log_sd == 0).all()
    assert priors[1].mean.unique(dim=0).shape[0] == 5
    standard = captioned_model(prior="standard")
    assert all((step.prior.mean == 0).all() for step in standard.steps(z, batch))


@pytest.mark.parametrize("objective", [TEXT, Cvae(description="text", hidden_share=0.5)])
def test_a_conditional_objective_trains_every_parameter(objective: Cvae) -> None:
    for alignment in (6, 0):
        model = build_model(DrawSettings(**{**SMALL, "alignment": alignment}), objective.demands, CAPTIONED)
        batch = captioned_batch()
        batch = Batch({**batch.values, "image": batch.values["image"].float()}, batch.present)
        torch.manual_seed(0)
        bound = objective(model, batch, step=0)
        assert bound.is_bound and bound.value.shape == (5,)
        assert bound.terms.keys() == {"log p(image|z)", "kl of z1", "kl of z2", "kl of z3"}
        bound.value.mean().backward()
        assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []


@pytest.mark.slow
def test_importance_weights_of_several_draws_are_above_the_bound() -> None:
    """E log mean w grows with the number of draws (Burda et al., 2016, Theorem 1)."""
    model, batch = captioned_model(first_canvas=-1.0), captioned_batch()
    torch.manual_seed(0)
    with torch.no_grad():
        weights = model.trace(batch, GIVEN, 4_000).log_weight()
    elbo, error = weights.mean(0), weights.std(0) / math.sqrt(len(weights))
    groups = weights.reshape(20, 200, 5).logsumexp(0) - math.log(20)
    assert (groups.mean(0) > elbo + 2 * error).all()
    assert (weights.logsumexp(0) - math.log(4_000) > groups.mean(0) - 0.1).all()


# Closed forms.


def plain_model(**settings: Any) -> Draw:
    torch.manual_seed(2)
    made = DrawSettings(**{"latent_size": 2, "hidden": 8, "read_patch": 0, "write_patch": 0, **settings})
    model = build_model(made, Elbo(modalities=("image",)).demands, SMALL_DATA)
    assert isinstance(model, Draw)
    return model.double().eval()


def test_one_step_without_attention_is_a_vae() -> None:
    """Its bound is log p(x|z) - KL(N(m, s) || N(0, I)) with encoder and decoder of one LSTM cell each."""
    model = plain_model(steps=1)
    network, batch = model.network, small_batch()
    assert model.latent.layers == {"z": 2}
    x = batch.values["image"].double()
    batch = Batch({"image": x}, {"image": batch.present["image"]})
    lines = torch.cat([x[:, 0], x[:, 0] - 0.5], -1).flatten(1)
    zeros = (torch.zeros(5, 8).double(), torch.zeros(5, 8).double())
    q = network.encoder.head(network.encoder.cell([lines, zeros[0]], zeros)[0])
    torch.manual_seed(3)
    trace = model.trace(batch, ("image",))
    state = network.generator.cell([trace.z], zeros)[0]
    logits = network.generator.patch(state).reshape(x.shape)
    exact = torch.distributions.Bernoulli(logits=logits).log_prob(x).sum((1, 2, 3))
    torch.testing.assert_close(trace.log_likelihood["image"], exact)
    standard = torch.distributions.Normal(torch.zeros(2).double(), 1.0)
    kl = torch.distributions.kl_divergence(torch.distributions.Normal(q.mean, q.sd), standard).sum(-1)
    torch.testing.assert_close(trace.total_divergence, kl)
    torch.manual_seed(3)
    bound = Elbo(modalities=("image",))(model, batch)
    torch.testing.assert_close(bound.value, exact - kl)
    assert bound.terms.keys() == {"log p(image|z)", "kl"}


class Sum(nn.Module):
    """A cell without gates, whose state is a linear function of its input; the state before is not used."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.matrix = nn.Parameter(matrix.clone())

    def start(self, rows: int) -> tuple[Tensor, Tensor]:
        return self.matrix.new_zeros(rows, self.matrix.shape[0]), self.matrix.new_zeros(rows, 1)

    def forward(self, parts: list[Tensor], state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return parts[0] @ self.matrix.T, state[1]


class Scheduled(nn.Module):
    """Gaussians of one step after the other: means are multiples of the state, each with its own sd."""

    def __init__(self, gains: list[float], sds: list[float]) -> None:
        super().__init__()
        self.gains, self.sds, self.calls = gains, sds, 0

    def forward(self, state: Tensor) -> DiagonalGaussian:
        step = self.calls % len(self.gains)
        self.calls += 1
        return DiagonalGaussian(self.gains[step] * state, torch.full_like(state, math.log(self.sds[step])))


NOISE = 0.5


class NormalImage:
    """Grey levels N(canvas, NOISE^2)."""

    is_independent = True

    def __init__(self, image: Any) -> None:
        self.name, self.shape = image.name, image.shape

    def mean(self, parameters: Tensor) -> Tensor:
        return parameters

    def log_prob(self, parameters: Tensor, value: Tensor, present: Tensor) -> Tensor:
        return torch.distributions.Normal(parameters, NOISE).log_prob(value).sum((-3, -2, -1))


def linear_model(widening: float = 1.0) -> tuple[Draw, Batch, Tensor]:
    r"""Return a model of linear steps, :math:`x = \sum_t A z_t + noise`, six pictures, and their exact log p(x).

    With n = |a column of A|^2 and r = x - canvas the exact posterior of step t of T is
    :math:`N(A'r / (c_t + n), c_t / (c_t + n))` with :math:`c_t = (T - t) n + s^2`; ``widening`` scales its sd.
    """
    model = plain_model(steps=3)
    network, pixels, norm = model.network, 256, 4.0
    generator = torch.Generator().manual_seed(0)
    into = norm**0.5 * torch.linalg.qr(torch.randn(pixels, 2, generator=generator, dtype=torch.float64))[0]
    others = [steps_left * norm + NOISE**2 for steps_left in (2, 1, 0)]
    # The encoder reads x and x - canvas, side by side row by row; only the latter counts.
    rows = into.T.reshape(2, 16, 16)
    network.encoder.cell = Sum(torch.cat([torch.zeros_like(rows), rows], -1).flatten(1))  # type: ignore[assignment]
    network.encoder.head = Scheduled(  # type: ignore[assignment]
        [1 / (c + norm) for c in others], [widening * (c / (c + norm)) ** 0.5 for c in others]
    )
    network.generator.cell = Sum(torch.eye(2).double())  # type: ignore[assignment]
    network.generator.patch = nn.Linear(2, pixels, bias=False, dtype=torch.float64)
    network.generator.patch.weight.data.copy_(into)
    image: Any = NormalImage(model.image)
    model.image, network.encoder.image, model.modalities = image, image, {"image": image}
    z = torch.randn(6, 3, 2, generator=generator, dtype=torch.float64)
    x = z.sum(1) @ into.T + NOISE * torch.randn(6, pixels, generator=generator, dtype=torch.float64)
    covariance = 3 * into @ into.T + NOISE**2 * torch.eye(pixels, dtype=torch.float64)
    exact = torch.distributions.MultivariateNormal(torch.zeros(pixels).double(), covariance).log_prob(x)
    return model, Batch({"image": x.reshape(6, 1, 16, 16)}, {"image": torch.ones(6, dtype=torch.bool)}), exact


@pytest.mark.slow
def test_with_the_exact_posterior_every_draw_has_the_exact_likelihood() -> None:
    """Linear cells have log p(x) = log N(x; 0, T A A' + s^2 I); later steps depend on the draws of earlier ones."""
    model, batch, exact = linear_model()
    weights = model.trace(batch, ("image",), 7).log_weight()
    torch.testing.assert_close(weights, exact.expand(7, 6))
    torch.testing.assert_close(Elbo(modalities=("image",), samples=2_000)(model, batch).value, exact, atol=0.15, rtol=0)


@pytest.mark.slow
@torch.no_grad()
def test_importance_sampling_lies_between_the_bound_and_the_exact_likelihood() -> None:
    model, batch, exact = linear_model(widening=1.3)
    torch.manual_seed(0)
    weights = torch.cat([model.trace(batch, ("image",), 1_000).log_weight() for _ in range(2)])
    bound = weights.mean(0)
    several = torch.stack([Iwae(modalities=("image",), samples=20)(model, batch).value for _ in range(100)]).mean(0)
    assert (bound + 0.05 < several).all() and (several < exact).all()
    torch.testing.assert_close(weights.logsumexp(0) - math.log(len(weights)), exact, atol=0.1, rtol=0)


# Everything around it.


def test_other_modalities_are_decoded_from_all_steps() -> None:
    elbo = Elbo()
    model = build_model(DrawSettings(**SMALL), elbo.demands, SMALL_DATA)
    bound = elbo(model, small_batch())
    assert {"log p(image|z)", "log p(attributes|z)"} < bound.terms.keys()
    assert model.decode("attributes", torch.zeros(5, 6)).shape[0] == 5


def test_a_model_of_captions_has_the_prior_given_them() -> None:
    model, batch = captioned_model(), captioned_batch()
    assert model.conditional_on == ("text",)
    for inputs in ((), ("text",)):
        prior = model.posterior(batch, inputs)
        assert isinstance(prior, DiagonalGaussian) and (prior.mean == 0).all()
    assert not model.has_posterior(("image",))
    with pytest.raises(UsageError, match="draws text, which the batch does not hold; give a description"):
        model.decode("image", torch.zeros(5, 6).double())
    with pytest.raises(UsageError, match="needs image, which the batch does not hold"):
        model.posterior(batch.select(["text"]), GIVEN)


@pytest.mark.parametrize(
    ("objective", "data", "message"),
    [
        (Telbo(), SMALL_DATA, "infers z from the picture that it draws"),
        (Elbo(modalities=("attributes",)), SMALL_DATA, "infers z from the picture that it draws"),
        (Cvae(), SMALL_DATA, "got attributes to condition on, expected text; set objective.description"),
    ],
)
def test_other_demands_are_refused(objective: Any, data: DataSettings, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        build_model(DrawSettings(**SMALL), objective.demands, data)


def test_two_pictures_are_refused() -> None:
    data = DataSettings.from_descriptions(
        ImageDescription(shape=(1, 16, 16), layout="bits"),
        ImageDescription(name="second", shape=(1, 16, 16), layout="bits"),
        AttributesDescription(names=("digit",), values=(("0", "1"),)),
    )
    with pytest.raises(SettingsError, match="got image, second to generate, expected one picture"):
        build_model(DrawSettings(**SMALL), Elbo(modalities=("image", "second")).demands, data)


@pytest.mark.parametrize("patch", [1, -1])
def test_a_window_has_at_least_two_filters(patch: int) -> None:
    with pytest.raises(ValueError, match="read_patch"):
        DrawSettings(read_patch=patch)  # type: ignore[arg-type]


def test_the_head_is_one_linear_layer() -> None:
    model = plain_model(steps=2)
    assert isinstance(model.network.encoder.head, GaussianHead)
    assert [tuple(p.shape) for p in model.network.encoder.head.parameters()] == [(4, 8), (4,)]
    assert {id(p) for p in model.inference_parameters()} == {id(p) for p in model.network.encoder.parameters()}

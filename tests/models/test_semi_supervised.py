"""Semi-supervised VAEs: bounds against sums and integrals, estimators against each other, a CVAE as a special case."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mmgen.core.batch import Batch
from mmgen.core.errors import SettingsError, UsageError
from mmgen.evaluation.factors import _number_labels
from mmgen.inference._base import Inference, Inputs, gaussian_of_output
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.latent.labels import Labels
from mmgen.latent.space import LatentSpace
from mmgen.likelihoods.bernoulli import Bernoulli
from mmgen.modalities.attributes import Attributes
from mmgen.modalities.image import Image
from mmgen.models._build import build_model
from mmgen.models.multimodal_vae import MultimodalVAE
from mmgen.models.semi_supervised_vae import SemiSupervisedVAE
from mmgen.objectives.cvae import Cvae
from mmgen.objectives.elbo import Elbo
from mmgen.objectives.semi_supervised import SemiSupervised
from mmgen.testing.small import SMALL_DATA, SMALL_LABELLED, SMALL_MODEL, small_batch

COPIES = 1_000


class Table(nn.Module):
    """Each of the four pictures of two pixels has a row of its own."""

    def __init__(self, outputs: int, scale: float = 1.0) -> None:
        super().__init__()
        self.rows = nn.Parameter(scale * torch.randn(4, outputs, dtype=torch.float64))

    def forward(self, pixels: Tensor) -> Tensor:
        bits = pixels.flatten(1)
        return self.rows[(2 * bits[:, 0] + bits[:, 1]).long()]


class Style(nn.Module):
    """q(z | x, y) from a table of pictures, and a matrix of labels."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.of_labels = nn.Linear(labels, 2, bias=False, dtype=torch.float64)

    def forward(self, features: Tensor, hot: Tensor) -> DiagonalGaussian:
        return gaussian_of_output(features + self.of_labels(hot))


class Decoder(nn.Module):
    """Logits of two pixels, linear in (y, z)."""

    def __init__(self, labels: int, of_style: float) -> None:
        super().__init__()
        self.matrix = nn.Linear(labels + 1, 2, dtype=torch.float64)
        with torch.no_grad():
            self.matrix.weight[:, :labels] *= 4
            self.matrix.weight[:, labels:] = of_style * torch.tensor([[1.0], [-0.7]])

    def forward(self, latent: Tensor) -> Tensor:
        logits: Tensor = self.matrix(latent)
        return logits.reshape(-1, 1, 1, 2)


def toy(sizes: tuple[int, ...] = (3,), of_style: float = 1.5) -> SemiSupervisedVAE:
    """Two pixels, a label of few values, a style of one dimension: everything is known by sums and quadrature."""
    torch.manual_seed(0)
    names = tuple("abc"[: len(sizes)])
    values = tuple(tuple(str(v) for v in range(size)) for size in sizes)
    labels = sum(sizes)
    encoder = Table(2, 0.3)
    return SemiSupervisedVAE(
        1,
        Image("image", (1, 1, 2), Bernoulli()),
        Attributes("attributes", names, values),
        encoder,
        Style(labels),
        Table(labels),
        nn.Identity(),
        Decoder(labels, of_style),
        learnt_prior=True,
    ).double()


def every_picture(sizes: tuple[int, ...] = (3,)) -> Batch:
    """Each picture with each label, all there."""
    rows = [
        (*bits, *codes)
        for bits in itertools.product((0, 1), repeat=2)
        for codes in itertools.product(*map(range, sizes))
    ]
    table = torch.tensor(rows)
    whole = torch.ones(len(rows), dtype=torch.bool)
    return Batch(
        {"image": table[:, :2].double().reshape(-1, 1, 1, 2), "attributes": table[:, 2:]},
        {"image": whole, "attributes": torch.ones(len(rows), len(sizes), dtype=torch.bool)},
    )


def without(batch: Batch, *columns: int) -> Batch:
    """The same with attributes unknown; all of them by default."""
    present = batch.present["attributes"].clone()
    present[:, list(columns) or slice(None)] = False
    codes = batch.values["attributes"].masked_fill(~present, 0)
    return Batch({**batch.values, "attributes": codes}, {**batch.present, "attributes": present})


@torch.no_grad()
def log_joint(model: SemiSupervisedVAE, batch: Batch, sizes: tuple[int, ...] = (3,)) -> Tensor:
    """log p(x, y) of each picture with every label [B, Y], the style integrated out by Gauss-Hermite quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    z = torch.from_numpy(points)[:, None, None].expand(-1, batch.size, 1)
    log_weight = torch.from_numpy(np.log(weights) - 0.5 * math.log(2 * math.pi))
    found = []
    for codes in itertools.product(*map(range, sizes)):
        hot = torch.cat([torch.eye(size, dtype=torch.float64)[code] for size, code in zip(sizes, codes, strict=True)])
        latent = torch.cat([hot.expand(*z.shape[:-1], -1), z], -1)
        likely = model.log_likelihood("image", latent, batch)
        of_label = model.label_prior(1).log_prob(hot[None])
        found.append((likely + log_weight[:, None]).logsumexp(0) + of_label)
    return torch.stack(found, 1)


def mean_value(objective: SemiSupervised, model: SemiSupervisedVAE, batch: Batch) -> tuple[Tensor, Tensor]:
    """Mean of the objective over many draws, and its standard error [B]."""
    torch.manual_seed(1)
    with torch.no_grad():
        values = objective(model, batch.repeat(COPIES), 0).value.reshape(batch.size, -1)
    return values.mean(1), values.std(1) / math.sqrt(COPIES)


@pytest.mark.parametrize("sizes", [(3,), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_bounds_lie_below_the_exact_log_likelihoods(sizes: tuple[int, ...]) -> None:
    """U < log p(x), L < log p(x, y), and with one of two attributes known < log p(x, y_1)."""
    model, batch = toy(sizes), every_picture(sizes)
    objective = SemiSupervised(alpha=0.0)
    exact = log_joint(model, batch, sizes)
    torch.testing.assert_close(exact.logsumexp(1)[:: exact.shape[1]].exp().sum(), torch.tensor(1.0).double())
    chosen = torch.tensor([int(np.ravel_multi_index(codes, sizes)) for codes in batch.values["attributes"].tolist()])
    cases = [(without(batch), exact.logsumexp(1)), (batch, exact.gather(1, chosen[:, None])[:, 0])]
    if len(sizes) > 1:
        joint = exact.reshape(-1, *sizes).logsumexp(2)
        cases.append((without(batch, 1), joint.gather(1, batch.values["attributes"][:, :1])[:, 0]))
    for part, log_p in cases:
        value, error = mean_value(objective, model, part)
        assert (value < log_p + 4 * error).all()
        assert (value < log_p - 4 * error).any(), "a posterior that is off leaves a gap"
        assert objective(model, part, 0).is_bound


def at_the_true_posterior() -> tuple[SemiSupervisedVAE, Batch, Tensor]:
    """A model whose pixels follow from the label alone and whose q is exact, all pictures, and log p(x, y) of them."""
    model, batch = toy(of_style=0.0), every_picture()
    exact = log_joint(model, batch)
    with torch.no_grad():
        model.encoder.rows.zero_()
        model.style.of_labels.weight.zero_()
        model.label_encoder.rows.copy_(exact[::3])
    return model, batch, exact


def test_bounds_are_tight_at_the_true_posterior() -> None:
    """Where pixels follow from the label alone, q(z|x,y) = p(z) and q(y|x) by Bayes leave no gap at all."""
    model, batch, exact = at_the_true_posterior()
    objective = SemiSupervised(alpha=0.0)
    torch.testing.assert_close(objective(model, without(batch), 0).value, exact.logsumexp(1))
    labelled = exact.gather(1, batch.values["attributes"])[:, 0]
    torch.testing.assert_close(objective(model, batch, 0).value, labelled)
    with_classifier = SemiSupervised(alpha=2.0, gamma=0.5)(model, batch, 0)
    log_q = labelled - exact.logsumexp(1)
    torch.testing.assert_close(with_classifier.value, 0.5 * (labelled + 2 * log_q))
    torch.testing.assert_close(with_classifier.terms["log q(attributes|image)"], log_q)
    assert not with_classifier.is_bound


@pytest.mark.parametrize("sizes", [(3,), pytest.param((2, 3), marks=pytest.mark.slow)])
def test_enumeration_is_the_mean_of_draws(sizes: tuple[int, ...]) -> None:
    model, batch = toy(sizes), without(every_picture(sizes))
    summed, error = mean_value(SemiSupervised(), model, batch)
    for samples in (1, 3):
        drawn, other = mean_value(SemiSupervised(estimator="importance", samples=samples), model, batch)
        assert ((summed - drawn).abs() < 5 * (error.square() + other.square()).sqrt()).all()


@pytest.mark.slow
def test_importance_weights_have_the_gradient_of_the_sum() -> None:
    """The logits of q(y|x) get it from the weights alone: no draw passes one."""
    model, batch = toy(), without(every_picture())[::3]
    found = []
    for objective in (SemiSupervised(), SemiSupervised(estimator="importance", samples=4)):
        torch.manual_seed(2)
        pieces = []
        for _ in range(30):
            objective(model, batch.repeat(400), 0).value.sum().div(400).backward()
            pieces.append(model.label_encoder.rows.grad.clone())
            model.zero_grad()
        every = torch.stack(pieces)
        found.append((every.mean(0), every.std(0) / math.sqrt(len(every))))
    (exact, one), (drawn, other) = found
    assert ((exact - drawn).abs() < 5 * (one.square() + other.square()).sqrt() + 1e-9).all()


def test_a_cold_relaxation_is_nearly_a_draw() -> None:
    model, batch = toy(), without(every_picture())
    summed, error = mean_value(SemiSupervised(), model, batch)
    relaxed = SemiSupervised(estimator="relaxed", temperature=0.02)
    value, other = mean_value(relaxed, model, batch)
    assert ((summed - value).abs() < 0.03 + 5 * (error + other)).all()
    assert not relaxed(model, batch, 0).is_bound
    loss = relaxed(model, batch, 0).value.sum()
    loss.backward()
    assert model.label_encoder.rows.grad.abs().sum() > 0


class _OfTheSame(Inference):
    """q(z | x, y) of a semi-supervised model for a CVAE."""

    def __init__(self, model: SemiSupervisedVAE) -> None:
        super().__init__()
        self.model = model

    def has_posterior(self, inputs: Inputs) -> bool:
        return inputs == ("image", "attributes")

    def infer(self, batch: Batch, given: Inputs) -> DiagonalGaussian:
        hot = torch.eye(3, dtype=torch.float64)[batch.values["attributes"][:, 0]]
        return self.model.infer_style(self.model.infer(batch), hot)


class _Reordered(nn.Module):
    """A CVAE's decoder sees z, then values, then a mask of what is known."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, given: Tensor) -> Tensor:
        logits: Tensor = self.decoder(torch.cat([given[:, 1:4], given[:, :1]], -1))
        return logits


@pytest.mark.parametrize("estimator", ["enumerate", "importance", "relaxed"])
def test_validation_is_of_pictures_alone(estimator: Any) -> None:
    """The value is U, a bound on log p(x) whatever the estimator; labels change no more than the term of log q."""
    model, batch, exact = at_the_true_posterior()
    objective = SemiSupervised(estimator=estimator, gamma=0.1, alpha=5.0)
    found, other = objective(model, batch), objective(model, without(batch))
    for bound in (found, other):  # tight at the true posterior
        torch.testing.assert_close(bound.value, exact.logsumexp(1))
    log_q = exact.gather(1, batch.values["attributes"])[:, 0] - exact.logsumexp(1)
    torch.testing.assert_close(found.terms["log q(attributes|image)"], log_q)
    assert found.terms.keys() == objective(model, batch, 0).terms.keys()


def test_all_labelled_is_the_bound_of_a_cvae() -> None:
    """Same networks, same noise: the value less log p(y) is the CVAE's, bit for bit but for the order of sums."""
    model, batch = toy(), every_picture()
    cvae = MultimodalVAE(
        LatentSpace.flat(1),
        {"image": model.image},
        {"image": _Reordered(model.decoders["image"])},
        _OfTheSame(model),
        condition=model.labels,
    )
    torch.manual_seed(5)
    ours = SemiSupervised(alpha=0.0)(model, batch, 0)
    torch.manual_seed(5)
    theirs = Cvae()(cvae, batch)
    torch.testing.assert_close(ours.value - ours.terms["log p(y)"], theirs.value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours.terms["log p(image|y,z)"], theirs.terms["log p(image|z)"], rtol=1e-12, atol=1e-12)


def test_examples_do_not_depend_on_their_neighbours() -> None:
    """A batch of labelled, half-labelled and unlabelled rows in any order: each term belongs to its own row."""
    model, batch = toy((2, 3), of_style=0.0), every_picture((2, 3))
    with torch.no_grad():
        model.style.of_labels.weight.zero_()
        model.encoder.rows.zero_()
    parts = [batch[:5], without(batch, 1)[5:9], without(batch)[9:14]]
    mixed = Batch(
        *({n: torch.cat([getattr(p, part)[n] for p in parts]) for n in batch.values} for part in ("values", "present"))
    )
    order = torch.randperm(14, generator=torch.Generator().manual_seed(0))
    objective = SemiSupervised(alpha=3.0, gamma=0.2)
    together = objective(model, mixed[order], 0).value
    torch.testing.assert_close(together, torch.cat([objective(model, p, 0).value for p in parts])[order])


# Refusals, and what else goes with the model.


def test_too_many_labels_are_refused() -> None:
    model, batch = toy((2, 3)), without(every_picture((2, 3)))
    with pytest.raises(
        SettingsError, match=r"attributes have 6 combinations of values, more than objective.most_labels"
    ):
        SemiSupervised(most_labels=5)(model, batch)
    assert SemiSupervised(most_labels=5, estimator="importance")(model, batch).value.isfinite().all()


@pytest.mark.parametrize(
    "settings", [{"samples": 3}, {"temperature": 0.5}, {"estimator": "importance", "temperature": 0.5}]
)
def test_settings_of_another_estimator_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"got .* with estimator .*leave it out"):
        SemiSupervised(**settings)


def test_objectives_and_models_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SettingsError, match="no draws of labels in z that pass a gradient, which the objective needs"):
        build_model(SMALL_LABELLED, Elbo().demands, SMALL_DATA)
    with pytest.raises(SettingsError, match=r"no labels as a part of z, .*; set model.name=semi-supervised-vae"):
        build_model(SMALL_MODEL, SemiSupervised().demands, SMALL_DATA)
    with pytest.raises(SettingsError, match="is of one image and its attributes"):
        build_model(SMALL_LABELLED, Elbo(modalities=("image",)).demands, SMALL_DATA)


def test_posteriors_are_mixtures_over_the_label() -> None:
    """q(z | image) is the sum over labels of q(y|x) q(z|x,y); a label on it is that Gaussian; nothing given is p."""
    model, batch = toy(), every_picture()
    q = model.posterior(batch, ("image",))
    draws = q.sample(torch.Generator().manual_seed(0), (2_000,))
    share = draws[..., :3].mean(0)
    error = (q.labels.probs * (1 - q.labels.probs) / 2_000).sqrt()
    assert ((share - q.labels.probs).abs() < 5 * error).all()
    given = model.posterior(batch, ("attributes", "image"))
    assert (given.sample()[..., :3].argmax(-1) == batch.values["attributes"][:, 0]).all()
    z = draws[:50]
    hot = z[..., :3]
    expected = q.labels.log_prob(hot) + model.infer_style(model.infer(batch), hot).log_prob(z[..., 3:])
    torch.testing.assert_close(q.log_prob(z), expected)
    described = model.posterior(without(batch), ("attributes",))
    torch.testing.assert_close(described.log_prob(z), model.log_prior(z))
    with pytest.raises(UsageError, match="no inference network"):
        model.posterior(batch, ("text",))


def test_labels_read_off_pictures_are_those_of_q() -> None:
    torch.manual_seed(0)
    model: Any = build_model(SMALL_LABELLED, SemiSupervised().demands, SMALL_DATA).eval()
    batch = small_batch()
    table = model.label_log_probabilities("attributes", batch, ("image",))
    assert table.shape == (5, 2, 3) and (table[:, 1, 2] == -math.inf).all()
    torch.testing.assert_close(table.exp().sum(-1), torch.ones(5, 2))
    assert model.label_log_probabilities("image", batch, ("image",)) is None
    mean = model.encode(batch, ("image",)).mean
    read = model.mean("attributes", mean).argmax(-1)
    assert (read == table.argmax(-1)).all()


def test_relaxed_labels_are_shares_of_each_attribute() -> None:
    labels = Labels.from_logits(torch.randn(7, 5, generator=torch.Generator().manual_seed(0)), (2, 3))
    drawn = labels.sample_relaxed(0.66, torch.Generator().manual_seed(1))
    for part in drawn.split((2, 3), -1):
        torch.testing.assert_close(part.sum(-1), torch.ones(7))
    assert labels.kl(labels).abs().max() == 0


def test_measures_of_dimensions_see_a_label_as_one_column() -> None:
    """(0, 1, 0 | 0, 1 | style) -> (1, 1, style): one column of an attribute follows it, three would share it."""
    model = toy((3, 2))
    encodings = torch.tensor([[0.0, 1.0, 0.0, 0.0, 1.0, 0.3], [1.0, 0.0, 0.0, 1.0, 0.0, -2.0]])
    found = _number_labels(model, encodings)
    torch.testing.assert_close(found, torch.tensor([[1.0, 1.0, 0.3], [0.0, 0.0, -2.0]]))
    plain = build_model(SMALL_MODEL, Elbo().demands, SMALL_DATA)
    assert _number_labels(plain, encodings) is encodings

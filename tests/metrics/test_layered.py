"""Metrics of models whose posterior is no single Gaussian: against a linear ladder, and all members of the room."""

import json
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mmgen import metrics
from mmgen.artifacts import Dataset
from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.core.progress import run_generator
from mmgen.evaluation.evaluation import Evaluation, EvaluationSettings
from mmgen.evaluation.likelihoods import estimate_text, image_log_likelihood
from mmgen.generation import load
from mmgen.latent.gaussian import DiagonalGaussian
from mmgen.metrics._base import evaluate
from mmgen.metrics.retrieval import Retrieval
from mmgen.models.hierarchical_vae import HierarchicalVAE
from mmgen.testing.linear_gaussian import (
    NOISE,
    WEIGHTS,
    Normal,
    draw_conditional_observations,
    make_conditional_linear_gaussian,
)
from mmgen.testing.metrics import accepts_evaluation, small_evaluation
from mmgen.training.model_run import complete_settings, train_model
from tests.metrics.test_linear_gaussian import loaded
from tests.models.linear_ladder import exact_log_image, ladder_observations, linear_ladder, lower_covariance
from tests.posteriors.stand_in import draws_and_densities, stand_ins

SAYING_SD = 0.8
"""The standard deviation of q(z | y) in each dimension, about what the words say of z1."""


def speaking_ladder() -> HierarchicalVAE:
    """The linear ladder with words y = V z1 + noise beside the image; it has no q(z | y)."""
    model = linear_ladder()
    decoder = nn.Linear(2, 3, bias=False, dtype=torch.float64)
    decoder.weight.data.copy_(WEIGHTS["attributes"])
    model.decoders["attributes"] = decoder
    model.modalities["attributes"] = Normal("attributes")
    return model.requires_grad_(False)


def described_observations(size: int) -> Batch:
    """Draws of x and y from the model itself."""
    generator = torch.Generator().manual_seed(5)
    z = speaking_ladder().posterior(ladder_observations(size), ()).sample(generator)[:, :2]
    whole = torch.ones(size, dtype=torch.bool)
    values = {name: z @ WEIGHTS[name].T for name in ("image", "attributes")}
    noisy = {
        name: value + NOISE * torch.randn(value.shape, generator=generator, dtype=value.dtype)
        for name, value in values.items()
    }
    return Batch(noisy, {"image": whole, "attributes": whole})


def normal(weights: Tensor, covariance: Tensor, mean: Tensor | None = None) -> torch.distributions.MultivariateNormal:
    """The distribution of V z1 + noise, z1 ~ N(mean, covariance)."""
    size = len(weights)
    centre = torch.zeros(size, dtype=torch.float64) if mean is None else mean @ weights.T
    noise = NOISE**2 * torch.eye(size, dtype=torch.float64)
    return torch.distributions.MultivariateNormal(centre, weights @ covariance @ weights.T + noise)


def saying(batch: Batch) -> DiagonalGaussian:
    """A q(z | y) fitted to the ladder."""
    mean = batch.values["attributes"] @ torch.linalg.pinv(WEIGHTS["attributes"]).T * 0.5
    mean = torch.cat([mean, mean.new_zeros(len(mean), 3)], 1)
    return DiagonalGaussian(mean, torch.full_like(mean, math.log(SAYING_SD)))


def loaded_ladder(own: bool = False) -> Any:
    """A loaded ladder, with :func:`saying` as its own q(z | y) or without any."""
    model = speaking_ladder()
    found = loaded(model)
    found.encoder_inputs, found.given = ("image",), None
    found.reads = lambda name: ("attributes",) if name == "own" else ()

    def density(name: str) -> Callable[[Batch], Any]:
        return saying if name == "own" else lambda batch: model.posterior(batch, ())

    found.posteriors = stand_ins(["prior", *(["own"] if own else [])], *draws_and_densities(density))
    found.encoder = found.posteriors.get("own")
    return found


def test_log_likelihood_of_words_is_the_closed_form() -> None:
    """y ~ N(0, V (A A' + s^2 I) V' + noise^2 I), through q(z | image) and p(z), where no q(z | y) is."""
    points = described_observations(20)
    found = run_generator(estimate_text(loaded_ladder(), points, "prior", 4_000, seed=0))
    assert found.names == ("q(z|image)", "p(z)")
    exact = normal(WEIGHTS["attributes"], lower_covariance()).log_prob(points.values["attributes"])
    assert ((found.value - exact).abs() < 5 * found.relative_variance.sqrt() + 1e-3).all()
    assert found.relative_variance.max() < 0.05**2


@pytest.mark.slow
def test_retrieval_weighs_draws_of_the_whole_posterior() -> None:
    r"""log p(y|x) through q(z|x), and log p(x|y) - log p(x) of a q(z|y), both in closed form for every pair."""
    points = described_observations(8)
    settings = EvaluationSettings(samples=4_000, precision="32-true")
    evaluation: Any = SimpleNamespace(
        loaded=loaded_ladder(own=True), settings=settings, posteriors=("prior", "own"),
        ignores_text=lambda name: name == "prior",
    )  # fmt: skip
    words = points.select(["attributes"])
    with torch.no_grad():
        tables = run_generator(Retrieval()._score_pairs(evaluation, "attributes", points, words))
    p, lower = 0.8 * torch.linalg.pinv(WEIGHTS["image"]), 0.5**2 * torch.eye(2, dtype=torch.float64)
    for row in range(points.size):
        x = points.values["image"][row]
        said = normal(WEIGHTS["attributes"], lower, x @ p.T).log_prob(words.values["attributes"])
        likely = said > -6  # a sentence that hardly any draw says is known too roughly
        torch.testing.assert_close(tables["text-given-image", "image"][row][likely], said[likely], rtol=0, atol=0.15)
        told = saying(words).mean[:, :2]
        spread = SAYING_SD**2 * torch.eye(2, dtype=torch.float64)
        evidence = normal(WEIGHTS["image"], spread, told).log_prob(x) - exact_log_image(points)[row]
        torch.testing.assert_close(tables["evidence", "own"][row], evidence, rtol=0, atol=0.15)


def test_log_likelihood_of_images_is_not_asked_of_a_conditional_model() -> None:
    """Its decoder has seen a description with every picture, and none that is unknown."""
    asked = loaded(make_conditional_linear_gaussian())
    asked.path = "cvae.safetensors"
    images = draw_conditional_observations(3).values["image"]
    with pytest.raises(UsageError, match=r"log p\(image\) of cvae\S+, .* has log p\(image \| attributes\) alone"):
        image_log_likelihood(asked, images, 10, 0)


KINDS: dict[str, Any] = {
    "hierarchical-vae": {
        "objective": {"name": "elbo"},
        "model": {"latent_sizes": [3, 2], "hidden": [8]},
    },
    "semi-supervised-vae": {"objective": {"name": "semi-supervised"}, "model": {"latent_size": 2}},
}


@pytest.fixture(scope="module")
def askable(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Evaluation]:
    """A fresh question of a trained model of a kind, which has kept nothing of another."""
    folder = tmp_path_factory.mktemp("kinds")
    small = small_evaluation(folder)
    for kind, more in KINDS.items():
        network = {"name": kind, "image_network": {"name": "mlp", "hidden": [16]}}
        training = {"steps": 60, "batch": 16, "device": "cpu", "validate_every": 60}
        values = {"objective": more["objective"], "model": {**network, **more["model"]}, "training": training}
        with Dataset.open(folder / "data.h5") as dataset:
            settings = complete_settings(values, dataset)
        train_model(folder / "data.h5", settings, folder / f"{kind}.safetensors").run()

    def ask(kind: str) -> Evaluation:
        model = load(folder / f"{kind}.safetensors")
        return Evaluation(model, small.dataset, small.judge, model.posteriors, small.settings)

    return ask


@pytest.mark.slow_cases(
    "dci-semi-supervised-vae",
    "dci-hierarchical-vae",
    "fid-semi-supervised-vae",
    "fid-hierarchical-vae",
    "beta-score-semi-supervised-vae",
    "beta-score-hierarchical-vae",
    "copies-semi-supervised-vae",
    "factor-score-hierarchical-vae",
    "factor-score-semi-supervised-vae",
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", metrics.names())
def test_the_same_seed_gives_the_same_scores(name: str, kind: str, askable: Callable[[str], Evaluation]) -> None:
    """All numbers of every metric, whatever torch's own generator has drawn before."""
    found = []
    for noise in (0, 1):
        evaluation = askable(kind)
        if not accepts_evaluation(name, evaluation):
            pytest.skip("is not asked of such a model")
        torch.manual_seed(noise)
        scores = evaluate(evaluation, [name]).run()
        assert all(math.isfinite(score.value) for score in scores)
        found.append([json.dumps(score.to_json(), sort_keys=True) for score in scores])
    assert found[0] == found[1]

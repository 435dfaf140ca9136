"""Densities that stand beside models: log p against closed forms and integration, and from a file to a line."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

import mmgen.contrib.baselines
from mmgen.artifacts import DatasetWriter
from mmgen.cli._main import main
from mmgen.contrib.baselines import measure_density
from mmgen.contrib.baselines._density import FittedDensity, Numbers, fit_moments, fit_scales, log_scale_mixture
from mmgen.core.errors import DataError, SettingsError, UsageError
from mmgen.core.progress import run_generator
from mmgen.modalities.vector import VectorDescription
from mmgen.settings.config import validate
from tests.conftest import outside_data

DENSITIES = [name for name, member in mmgen.contrib.baselines.import_all().items() if member.answers == "densities"]
TINY: dict[str, dict[str, Any]] = {"mixture-of-gaussians": {"components": (2, 3)}, "ica": {"scales": 3}}
MIX = np.array([[1.0, 0.4], [-0.2, 0.5]])


def fit(name: str, train: Numbers, **settings: Any) -> FittedDensity:
    density: Any = validate(mmgen.contrib.baselines.get(name), {**TINY.get(name, {}), **settings})
    found: FittedDensity = run_generator(density.fit(train, train[: len(train) // 4], 0))
    return found


@pytest.fixture(scope="module")
def heavy() -> Numbers:
    """Two independent Laplace variables, mixed."""
    return np.random.default_rng(0).laplace(size=(3000, 2)) @ MIX.T + np.array([0.3, -1.0])


@pytest.mark.parametrize("name", DENSITIES)
def test_every_density_integrates_to_one(name: str, heavy: Numbers) -> None:
    """Over a square that holds all of it but a thousandth."""
    fitted = fit(name, heavy)
    side = np.linspace(-12, 12, 241)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)
    density = np.exp(fitted.log_prob(grid)).reshape(241, 241)
    assert integrate.trapezoid(integrate.trapezoid(density, side), side) == pytest.approx(1, abs=2e-3)
    json.dumps(fitted.facts, allow_nan=False)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_gaussian_against_scipy(covariance: str, heavy: Numbers) -> None:
    found = np.cov(heavy.T, bias=True)
    expected = stats.multivariate_normal(heavy.mean(0), found if covariance == "full" else np.diag(np.diag(found)))
    got = fit("gaussian", heavy, covariance=covariance).log_prob(heavy[:50])
    np.testing.assert_allclose(got, expected.logpdf(heavy[:50]), rtol=1e-12)


def test_scale_mixture_against_scipy_and_em_never_falls(heavy: Numbers) -> None:
    fitted = fit("gaussian-scale-mixture", heavy, scales=4)
    log_weights, log_scales, _ = run_generator(fit_scales(fit_moments(heavy).mahalanobis_squares(heavy), 2, 4, 500))
    covariance = np.cov(heavy.T, bias=True)
    parts = [
        weight + stats.multivariate_normal(heavy.mean(0), math.exp(2 * scale) * covariance).logpdf(heavy[:50])
        for weight, scale in zip(log_weights, log_scales, strict=True)
    ]
    np.testing.assert_allclose(fitted.log_prob(heavy[:50]), logsumexp(parts, axis=0), rtol=1e-10)
    assert logsumexp(log_weights) == pytest.approx(0, abs=1e-9)
    assert fitted.log_prob(heavy).mean() > fit("gaussian", heavy).log_prob(heavy).mean() + 0.05
    means = [fit("gaussian-scale-mixture", heavy, scales=4, iterations=n).log_prob(heavy).mean() for n in (1, 3, 9, 27)]
    assert means == sorted(means)


def test_scales_find_those_that_made_the_data() -> None:
    """Two scales far apart in 20 dimensions: weights and scales come back."""
    generator = np.random.default_rng(0)
    scales = np.where(generator.random(4000) < 0.3, 5.0, 0.5)
    squares = np.square(scales[:, None] * generator.normal(size=(4000, 20))).sum(1)
    log_weights, log_scales, _ = run_generator(fit_scales(squares, 20, 2, 100))
    np.testing.assert_allclose(np.exp(log_scales), [0.5, 5.0], rtol=0.02)
    np.testing.assert_allclose(np.exp(log_weights), [0.7, 0.3], atol=0.03)
    one = log_scale_mixture(np.array([4.0]), 1, np.zeros(1), np.zeros(1))
    assert float(one[0]) == pytest.approx(stats.norm.logpdf(2.0))


def test_ica_is_as_good_as_the_density_that_made_the_data(heavy: Numbers) -> None:
    """Laplace sources and a known mixing matrix: within 0.03 nats of the truth, and above one Gaussian."""
    fresh = np.random.default_rng(1).laplace(size=(3000, 2)) @ MIX.T + np.array([0.3, -1.0])
    sources = (fresh - [0.3, -1.0]) @ np.linalg.inv(MIX).T
    truth = stats.laplace.logpdf(sources).sum(1).mean() - math.log(abs(np.linalg.det(MIX)))
    found = fit("ica", heavy, scales=8).log_prob(fresh).mean()
    assert truth - 0.03 < found < truth + 0.005
    assert found > fit("gaussian", heavy).log_prob(fresh).mean() + 0.1


def test_mixture_against_scipy_and_chosen_on_validation(heavy: Numbers) -> None:
    fitted: Any = fit("mixture-of-gaussians", heavy, components=(1, 4))
    model = fitted.log_prob.__self__
    parts = [
        math.log(model.weights_[k])
        + stats.multivariate_normal(model.means_[k], model.covariances_[k]).logpdf(heavy[:50])
        for k in range(len(model.weights_))
    ]
    np.testing.assert_allclose(fitted.log_prob(heavy[:50]), logsumexp(parts, axis=0), rtol=1e-9)
    tried = fitted.facts["validation"]
    assert fitted.facts["components"] == 4 and tried["4"] > tried["1"]


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory, heavy: Numbers) -> Path:
    path = tmp_path_factory.mktemp("points") / "points.h5"
    with DatasetWriter(path, 300, {"recipe": "points"}, seed=0, command="make") as writer:
        writer.add(VectorDescription(size=2))
        writer.write(0, {"vector": heavy[:300].astype(np.float32)})
        writer.add_splits("iid", train=range(200), val=range(200, 250), test=range(250, 300))
    return path


def test_a_score_is_that_of_eval(points: Path, heavy: Numbers) -> None:
    (score,) = measure_density(points, "gaussian", {}).run()
    train, test = heavy[:200].astype(np.float32).astype(float), heavy[250:300].astype(np.float32).astype(float)
    expected = stats.multivariate_normal(train.mean(0), np.cov(train.T, bias=True)).logpdf(test)
    assert score.value == pytest.approx(expected.mean(), rel=1e-9)
    assert score.stderr == pytest.approx(expected.std(ddof=1) / math.sqrt(50))
    assert (score.metric, score.quantity, score.unit, score.protocol) == (
        "log-likelihood",
        "log p(x)",
        "nats",
        "baseline",
    )
    assert (score.n, score.conditions["part"], score.details["modality"]) == (50, "test", "vector")
    assert "bits_per_pixel" not in score.details, "a vector has no pixels"
    assert score.run["seed"] == "0"


def test_errors_of_patches_are_those_of_pictures(tmp_path: Path, heavy: Numbers) -> None:
    """Ten of each picture, which are alike."""
    path, number = tmp_path / "patches.h5", 400
    alike = heavy[np.arange(number) // 10] + 0.1 * heavy[-number:]
    with DatasetWriter(path, number, {"recipe": "points"}, seed=0, command="make") as writer:
        writer.add(VectorDescription(size=2))
        writer.add_factor("picture", np.int32, "", "number of the picture")
        writer.write(0, {"vector": alike.astype(np.float32)}, {"picture": np.arange(number) // 10})
        writer.add_splits("iid", train=range(200), val=range(200, 250), test=range(250, 400))
    (score,) = measure_density(path, "gaussian", {}).run()
    by_picture = np.array(score.points.values).reshape(15, 10).mean(1)
    assert score.stderr == pytest.approx(stats.sem(by_picture), rel=1e-3)
    assert score.stderr > 2 * stats.sem(score.points.values) and score.points.units == 15


def test_scores_go_beside_the_dataset_as_models_do(
    points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(["baseline", str(points), "--method", "gaussian"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"{points.with_name('points-gaussian.jsonl')}\n"
    assert points.with_name("points-gaussian.jsonl").exists() and not list(tmp_path.iterdir())


def test_mistakes_are_sentences(points: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingsError, match="scale"):
        measure_density(points, "gaussian-scale-mixture", {"scale": 3})
    with pytest.raises(UsageError, match="unknown modality of real numbers 'x'"):
        measure_density(points, "gaussian", {}, modality="x").run()
    with pytest.raises(DataError, match="200 training examples are too few for 300 Gaussians"):
        measure_density(points, "mixture-of-gaussians", {"components": [300]}).run()
    with pytest.raises(DataError, match="ica looks at 2 training examples, too few for 2 columns, expected at least 3"):
        measure_density(points, "ica", {"examples": 2}).run()
    with pytest.raises(SettingsError, match="components"):
        measure_density(points, "mixture-of-gaussians", {"components": []})
    twice = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 20, 0)
    with pytest.raises(DataError, match=r"collapsed onto examples .* with a floor of 1e-300; set floor higher"):
        fit("mixture-of-gaussians", twice, components=(3,), floor=1e-300)
    path = tmp_path / "flat.h5"
    with DatasetWriter(path, 30, {"recipe": "points"}, seed=0, command="make") as writer:
        writer.add(VectorDescription(size=2))
        writer.write(0, {"vector": np.ones((30, 2), np.float32)})
        writer.add_splits("iid", train=range(20), val=range(20, 25), test=range(25, 30))
    with pytest.raises(DataError, match="covariance of 2 columns over the training examples is singular"):
        measure_density(path, "gaussian", {}).run()
    for wrong, said in (
        (["--paired", "0.1"], "gaussian is a baseline for densities, and --paired is for baselines for labels"),
        (["--device", "cuda"], "--device is for baselines for labels"),
    ):
        with pytest.raises(SystemExit) as left:
            main(["baseline", str(points), "--method", "gaussian", "-o", str(tmp_path / "x.jsonl"), *wrong])
        assert left.value.code == 2 and said in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit) as left:
        main(["baseline", str(points), "--modality", "vector", "-o", str(tmp_path / "x.jsonl")])
    assert left.value.code == 2 and "logistic is a baseline for labels" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "x.jsonl").exists()


def test_the_command_writes_a_line(points: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "g.jsonl"
    with pytest.raises(SystemExit) as left:
        main(["baseline", str(points), "--method", "gaussian", "--set", "covariance=diagonal", "-o", str(out)])
    assert left.value.code == 0 and capsys.readouterr().out == f"{out}\n"
    (line,) = (json.loads(text) for text in out.read_text().splitlines())
    assert line["details"]["covariance"] == "diagonal" and len(line["points"]["values"]) == 50


@pytest.mark.slow
def test_the_published_closed_forms_come_out(tmp_path: Path) -> None:
    """100,000 and 50,000 patches of BSDS300's pictures: one Gaussian has 96.5 nats, a scale mixture of it 143.5."""
    from mmgen.contrib.patches.data_recipes.patches import NaturalPatches

    archive = outside_data("bsds500") / "grey_patches_8x8.npz"
    path = tmp_path / "patches.h5"
    NaturalPatches(patches=archive).make(path).run()
    for name, expected, tolerance in (("gaussian", 96.5, 0.6), ("gaussian-scale-mixture", 143.5, 0.7)):
        (score,) = measure_density(path, name, {}).run()
        assert score.value == pytest.approx(expected, abs=tolerance)
        assert score.details["bits_per_pixel"] == pytest.approx(score.value / (63 * math.log(2)))


def test_one_example_has_no_covariance() -> None:
    with pytest.raises(DataError, match="got 1 training examples, expected at least 2 for a covariance"):
        fit_moments(np.ones((1, 2)))
    fit_moments(np.array([[0.0], [2.0]]))

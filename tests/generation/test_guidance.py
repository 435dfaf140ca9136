"""Guided posteriors against sums over a grid: what is drawn, its density, what pools and expressions make of it."""

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from mmgen.core.batch import Batch
from mmgen.core.errors import UsageError
from mmgen.evaluation.evaluation import EvaluationSettings
from mmgen.evaluation.proposals import MIXTURE, make_components
from mmgen.generation import TrainedModel, draws
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.latents import draw_latents
from mmgen.metrics.log_likelihood import LogLikelihood
from mmgen.posteriors import CandidateStatistics, Guidance, _candidates
from mmgen.posteriors._candidates import SharedDraws, log_mean_weight, resample
from tests.generation.toy import ATTRIBUTES, GRID_OF_Z as GRID, VALUES, loaded

BASES = [("attributes", "prior"), ("attributes", "own"), ("attributes", "aggregate"), ("nothing", "aggregate")]
EVERY_BASE = pytest.mark.parametrize(("given", "posterior"), BASES, ids=["p(z)", "q(z|y)", "q_agg", "q(z)"])


def codes_of(words: str) -> list[int]:
    return parse_descriptions(loaded(), [words]).codes[0].tolist()


def draw(toy: TrainedModel, posterior: str, words: str, n: int) -> torch.Tensor:
    return draw_latents(toy, posterior, parse_descriptions(toy, [words]), n, 0)[0]


def agree(z: torch.Tensor, masses: torch.Tensor, effective: float = math.inf) -> float:
    """Probability of draws at least as far from the masses of the grid as these, over twelve by twelve fields.

    n draws from a pool of an effective size are no n independent ones: their counts vary 1 + n / size times as much.
    """
    edges = torch.linspace(-2, 2, 11)
    places = [torch.bucketize(at.contiguous(), edges) for at in (z, GRID.z)]
    fields = [12 * place[:, 0] + place[:, 1] for place in places]
    expected = torch.bincount(fields[1], masses, 144).numpy() * len(z)
    found = torch.bincount(fields[0], minlength=144).double().numpy()
    rare = expected < 10
    counts, wanted = [np.append(of[~rare], of[rare].sum()) for of in (found, expected)]
    distance = float(((counts - wanted) ** 2 / np.maximum(wanted, 1e-9)).sum()) / (1 + len(z) / effective)
    return float(stats.chi2.sf(distance, len(counts) - 1))


def record(toy: TrainedModel, posterior: str) -> tuple[TrainedModel, CandidateStatistics]:
    """Return the model as it records its guided draws from a posterior, and the record."""
    statistics = CandidateStatistics()
    return toy.recording({posterior: statistics}), statistics


@pytest.fixture
def _many_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many that what is left of their bias is far below the noise of a thousand draws."""
    monkeypatch.setattr(_candidates, "_FIRST", 512)


@pytest.mark.usefixtures("_many_candidates")
@EVERY_BASE
@pytest.mark.parametrize("words", ["colour=green", "colour=red size=small"])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_draws_have_the_density_that_the_grid_says(given: str, posterior: str, words: str, weight: float) -> None:
    toy = loaded(given)
    batch = parse_descriptions(toy, [words]).batch(toy, 0)
    masses, _ = GRID.masses(toy, posterior, batch, GRID.log_words(toy, codes_of(words)), weight)
    guided = toy.guided(weight)
    guided, candidates = record(guided, posterior)
    z = draw(guided, posterior, words, 1500)
    pooled = not toy.reads(posterior)
    assert agree(z, masses, min(candidates.effective) if pooled else math.inf) > 1e-3
    assert agree(draw(toy, posterior, words, 1500), masses) < 1e-4  # what is not guided is something else
    told = guided.guided_posterior(posterior).measure_draws(candidates)
    enough = 1500 if pooled else 10  # draws from a pool repeat each other
    notice = guided.guided_posterior(posterior).describe_draws(candidates)
    assert (told["smallest_effective_sample_size"] >= enough) == (notice == ""), notice


@EVERY_BASE
def test_density_integrates_to_one_up_to_its_error(given: str, posterior: str) -> None:
    toy = loaded(given)
    for words, weight in itertools.product(["colour=green", "size=big"], [1.0, 5.0]):
        batch = parse_descriptions(toy, [words]).batch(toy, 0)
        _, log_z = GRID.masses(toy, posterior, batch, GRID.log_words(toy, codes_of(words)), weight)
        guide = toy.guided(weight).guided_posterior(posterior)
        (value,), (error,) = guide.normaliser(batch)
        assert 0 < error <= (0.06 if posterior == "prior" or given == "nothing" else 0.011)
        assert abs(float(value) - log_z) < 4 * float(error) + 1e-3
        with torch.no_grad():
            density = toy.guided(weight).posteriors[posterior].log_prob(GRID.z[:, None], batch).exp()
        total = (density.sum() * GRID.cell).log()
        assert abs(float(total)) < 4 * float(error) + 1e-3


@EVERY_BASE
def test_weight_zero_is_what_would_be_guided_bit_for_bit(given: str, posterior: str) -> None:
    toy, words = loaded(given), "colour=green size=big"
    plain = draw(toy, posterior, words, 50)
    assert torch.equal(draw(toy.guided(0.0), posterior, words, 50), plain)
    assert torch.equal(draw(toy.guided(3.0).guided(0.0), posterior, words, 50), plain)
    batch = parse_descriptions(toy, [words]).batch(toy, 0)
    models = [toy, toy.guided(0.0), toy.guided(2.0)]
    drawn = [each.posteriors[posterior].sample(batch, 5, torch.Generator().manual_seed(1)) for each in models]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])
    unguided = toy.guided(3.0).posteriors[posterior].unguided
    assert unguided.sample(batch, 5, torch.Generator().manual_seed(1)).equal(drawn[0])


@EVERY_BASE
def test_nothing_given_is_not_guided(given: str, posterior: str) -> None:
    toy = loaded(given)
    assert torch.equal(draw(toy.guided(3.0), posterior, "anything", 20), draw(toy, posterior, "anything", 20))


def test_one_of_few_candidates_is_drawn_as_enumeration_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three points, equally likely, with weights 1, 2, 4. With M candidates the chance of each is known exactly for
    M = 2, and goes to 1/7, 2/7, 4/7 at least as fast as the variance of the weights over M."""
    weights = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)

    def shares(candidates: int, n: int) -> np.ndarray:
        monkeypatch.setattr(_candidates, "_FIRST", candidates)
        monkeypatch.setattr(_candidates, "_MOST", candidates)

        def points(count: int) -> torch.Tensor:
            return torch.randint(0, 3, (count, 1), generator=generator).float()

        found = resample(points, lambda z: weights[z[:, 0].long()].log(), n, 1e9, 1000, generator)
        assert found.candidates == candidates
        return np.bincount(found.z[:, 0].long().numpy(), minlength=3)

    pairs = np.zeros(3)
    for one, other in itertools.product(range(3), repeat=2):
        total = float(weights[one] + weights[other])
        pairs[one] += float(weights[one]) / total / 9
        pairs[other] += float(weights[other]) / total / 9
    assert stats.chisquare(shares(2, 30_000), 30_000 * pairs).pvalue > 1e-3
    target = (weights / weights.sum()).numpy()
    variance = float((weights / weights.mean()).var(unbiased=False))
    for candidates in (8, 64):
        distance = 0.5 * np.abs(shares(candidates, 30_000) / 30_000 - target).sum()
        assert distance < variance / candidates + 0.01
    assert stats.chisquare(shares(256, 10_000), 10_000 * target).pvalue > 1e-3


def test_candidates_are_doubled_until_there_are_enough_and_it_is_said_when_there_are_not() -> None:
    toy = loaded()
    candidates, notices = {}, {}
    for weight in (1.0, 6.0, 20_000.0):
        guided, candidates[weight] = record(toy.guided(weight), "aggregate")
        draw(guided, "aggregate", "colour=green size=big", 20)
        notices[weight] = guided.guided_posterior("aggregate").describe_draws(candidates[weight])
    assert candidates[1.0].candidates == [64] and notices[1.0] == ""
    assert 64 < candidates[6.0].candidates[0] < 4096 and candidates[6.0].effective[0] >= 10
    assert candidates[20_000.0].candidates == [4096]
    assert "of 1 descriptions the effective sample size among 4,096 candidates" in notices[20_000.0]


def test_draws_say_nothing_of_earlier_ones() -> None:
    """A warning about a hard description is not told of the next one that is drawn from the same model."""
    toy = loaded()
    guided = toy.guided("20000:candidates=64")
    hard = draws.draw(guided, parse_descriptions(guided, ["colour=green size=big"]), 20, posterior="aggregate")
    easy = draws.draw(guided, parse_descriptions(guided, [""]), 20, posterior="aggregate")
    assert "for 1 of 1 descriptions" in hard.notice and easy.notice == ""
    assert "for 1 of 1 descriptions" in draws.draw(guided, hard.descriptions, 20, posterior="aggregate").notice


def test_as_many_candidates_as_are_asked_for() -> None:
    """More of them bring draws nearer to q_w, of which the density is; fewer say that they are few."""
    told = {}
    for how in ("6:effective=100", "20000:candidates=5000", "6:candidates=10"):
        guided, candidates = record(loaded().guided(how), "aggregate")
        draw(guided, "aggregate", "colour=green size=big", 20)
        posterior = guided.guided_posterior("aggregate")
        told[how] = (posterior.measure_draws(candidates), posterior.describe_draws(candidates))
    (enough, silence), (most, _), (few, notice) = told.values()
    assert enough["smallest_effective_sample_size"] >= 100 and silence == ""
    assert enough["wanted_effective_sample_size"] == 100
    assert most["candidates"] == most["most_candidates"] == 5000
    assert few["candidates"] == 10 and "--guidance 6:candidates=40" in notice
    large, candidates = record(loaded().guided("3:candidates=70000"), "prior")
    draw(large, "prior", "colour=green", 5)
    assert candidates.candidates == [70_000], "a pool has at least so many"


@pytest.mark.parametrize("posterior", ["own", "aggregate", "prior"])
def test_guidance_that_changes_nothing_says_so(posterior: str) -> None:
    """The decoder of words hardly looks at z; a weight below 1 is small by itself."""
    for sharpness, weight, said in ((0.02, 3.0, True), (1.5, 3.0, False), (0.02, 0.5, False)):
        toy, candidates = record(loaded(sharpness=sharpness).guided(weight), posterior)
        draw(toy, posterior, "colour=green size=small", 5)
        told = toy.guided_posterior(posterior).describe_draws(candidates)
        assert ("guidance 3 changes next to nothing for 1 of 1 descriptions" in told) == said, told


def test_one_pool_answers_every_description_at_every_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    toy, made = loaded("nothing"), []
    original = SharedDraws.draw
    monkeypatch.setattr(SharedDraws, "draw", lambda *given: made.append(1) or original(*given))
    for weight, words in itertools.product((1.0, 2.0), ("colour=red", "size=big")):
        draw(toy.guided(weight), "aggregate", words, 10)
    assert len(made) == 1
    draw_latents(toy.guided(1.0), "aggregate", parse_descriptions(toy, ["colour=red"]), 10, 5)
    assert len(made) == 2  # another seed draws anew
    (pool,) = [pool for (_, seed), pool in toy._estimates.pools.items() if seed == 0]
    assert len(pool.z) == 60_000
    assert str(toy.guided(1.0).guided_posterior("aggregate").named) == "q(z) guided (w = 1)"


def test_every_combination_can_be_drawn_from_the_learned_prior() -> None:
    """Nothing is conditioned on, so none needs to have been seen: what is drawn reads as what was asked for."""
    guided = loaded("nothing", 3.0).guided(10.0)
    for colour, size in itertools.product(VALUES[0], VALUES[1]):
        words = f"colour={colour} size={size}"
        batch = parse_descriptions(guided, [words]).batch(guided, 0)
        guide = guided.guided_posterior("aggregate")
        plain = (
            guide.likelihood.log_prob(draw(guided.guided(0.0), "aggregate", words, 500)[:, None], batch).exp().mean()
        )
        drawn = guide.likelihood.log_prob(draw(guided, "aggregate", words, 500)[:, None], batch).exp().mean()
        assert drawn > 1.5 * plain


@pytest.mark.parametrize("weight", [-1.0, -1e-9, math.nan, math.inf, -math.inf, 1e9])
def test_weights_that_are_none_are_refused(weight: float) -> None:
    refusing: list[Callable[[], Any]] = [
        lambda: Guidance.parse(weight),
        lambda: loaded().guided(weight),
        lambda: loaded().sample("colour=red", 2, guidance=weight),
    ]
    for ask in refusing:
        with pytest.raises(UsageError, match=r"guidance got .*, expected a number from 0 to 1,000,000"):
            ask()


def test_a_model_that_says_no_words_cannot_be_guided() -> None:
    toy = loaded()
    del toy.model.decoders["attributes"]
    with pytest.raises(UsageError, match=r"guidance needs a decoder of attributes or text, but toy.safetensors gen"):
        toy.sample("colour=red", 2, guidance=3)
    told = loaded()
    told.model.condition = ATTRIBUTES  # decoders see the words, as a CVAE's do
    with pytest.raises(UsageError, match="guidance needs"):
        told.guided(1.0)


def test_log_mean_has_the_error_that_it_says() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = 0.8 * torch.randn(400, 500, generator=generator, dtype=torch.float64)
    found = [log_mean_weight(each) for each in weights]
    values, errors = (np.array(part) for part in zip(*found, strict=True))
    assert values.mean() == pytest.approx(0.32, abs=0.01)  # log E exp(0.8 x) = 0.8^2 / 2
    assert values.std() == pytest.approx(errors.mean(), rel=0.15)


@pytest.mark.slow_cases("3.0-q(z|y)", "1.0-q(z)", "3.0-p(z)", "3.0-q_agg", "3.0-q(z)")
@EVERY_BASE
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_likelihood_of_images_under_a_guided_posterior_is_the_grids(given: str, posterior: str, weight: float) -> None:
    r"""log p(x|y) = log \int p(x|z) q_w(z|y) dz. Under p(z) with w = 1 it is the model's own log p(x|y)."""
    toy = loaded(given)
    generator = torch.Generator().manual_seed(1)
    asked = parse_descriptions(toy, ["colour=green", "colour=red size=big"] * 6)
    with torch.no_grad():
        at = toy.model.decoders["image"](0.8 * torch.randn(12, 2, generator=generator))
        points = asked.batch(toy, slice(None))
        points.values["image"] = at + 0.7 * torch.randn(at.shape, generator=generator)
        points.present["image"] = torch.ones(12, dtype=torch.bool)
        expected = []
        for row in range(12):
            masses, _ = GRID.masses(
                toy, posterior, asked.batch(toy, row), GRID.log_words(toy, asked.codes[row].tolist()), weight
            )
            pictures = toy.model.log_likelihood("image", GRID.z[:, None], points[slice(row, row + 1)])[:, 0].double()
            expected.append(float((pictures + masses.log()).logsumexp(0)))
    evaluation: Any = SimpleNamespace(
        text_proposal=None,
        loaded=toy.guided(weight), settings=EvaluationSettings(samples=4000, precision="32-true"), data_points=points,
        posteriors=(posterior,), content_ids={}, split="iid", ignores_text=lambda name: False,
    )  # fmt: skip
    work = LogLikelihood()(evaluation, posterior)
    while True:
        try:
            next(work)
        except StopIteration as stop:
            scores = {score.protocol: score for score in stop.value}
            break
    found = scores["importance"]
    noise = math.hypot(found.details["normaliser_stderr"], found.details.get("monte_carlo_stderr", 0.0))
    assert 0 < found.details["normaliser_stderr"] < 0.02
    assert 0 < found.details["too_high_by_at_least"] < 0.02**2 and not found.warnings
    assert found.points.shared_stderr >= found.details["normaliser_stderr"]
    assert found.value == pytest.approx(np.mean(expected), abs=4 * noise + 0.01)
    assert scores["bound"].value < found.value
    assert found.stderr is not None and found.stderr > np.std(expected) / math.sqrt(12) * 0.9


@pytest.mark.parametrize(("given", "prior"), [("attributes", "prior"), ("nothing", "prior"), ("nothing", "aggregate")])
def test_proposals_that_ignore_the_text_are_not_guided(given: str, prior: str) -> None:
    """What tables call p(z) or q(z) has its density and its draws, each point its own and none of a pool."""
    toy = loaded(given)
    asked = parse_descriptions(toy, ["colour=green", "colour=red size=big"] * 6)
    points = asked.batch(toy, slice(None)) | Batch(
        {"image": torch.rand(12, 1, 2, 2)}, {"image": torch.ones(12, dtype=torch.bool)}
    )
    *_, last = make_components(toy.guided(3.0), points, "32-true", MIXTURE, (prior,))
    assert (last.name, last.informed) == ("p(z)" if prior == "prior" else "q(z)", False)
    with torch.no_grad():
        z = last.sample(slice(0, 12), points, 1_000, torch.Generator().manual_seed(0))
        found = last.log_prob(z, slice(0, 12), points)
        torch.testing.assert_close(found, toy.posteriors[prior].log_prob(z, points))
        mass = last.log_prob(GRID.z[:, None], slice(0, 1), points[:1])[:, 0].double().logsumexp(0) + math.log(GRID.cell)
    assert float(mass) == pytest.approx(0.0, abs=1e-3)
    flat = z.flatten(0, 1)
    assert len(flat.unique(dim=0)) == len(flat) == 12_000
    if prior == "prior":
        torch.testing.assert_close(found, -0.5 * z.square().sum(-1) - math.log(2 * math.pi))
        assert (flat.mean(0).abs() < 5 / len(flat) ** 0.5).all()
        assert ((flat.var(0) - 1).abs() < 5 * (2 / len(flat)) ** 0.5).all()

"""Balanced guidance: shares of what is left out stay, by numerical integration and another solver."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import optimize

from mmgen.core.errors import UsageError
from mmgen.generation import TrainedModel
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.latents import draw_latents
from mmgen.posteriors import Guidance, parse_guidance
from mmgen.posteriors._balance import Balance, Candidates, find_multipliers
from tests.generation.test_guidance import ATTRIBUTES, EVERY_BASE, GRID, agree, codes_of, draw, loaded, pool_size

WEIGHT = 3.0
COLOURS, SIZES = slice(0, 3), slice(3, 5)


def readings(toy: TrainedModel, z: torch.Tensor, asked: slice) -> torch.Tensor:
    """p(value | z) of an attribute, from the decoder itself."""
    with torch.no_grad():
        return toy.model.decoders["attributes"](z)[..., asked].double().softmax(-1)


def balanced_masses(masses: torch.Tensor, read: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
    """The masses nearest to some that have the shares, by another solver and without a ridge."""
    log_masses, table = masses.clamp_min(1e-300).log().numpy(), read.numpy()

    def dual(at: np.ndarray) -> float:
        return float(np.logaddexp.reduce(log_masses + table @ at) - at @ shares.numpy())

    found = optimize.minimize(dual, np.zeros(table.shape[1]), method="BFGS", options={"gtol": 1e-7})
    return torch.from_numpy(log_masses + table @ found.x).softmax(0)


def truth(toy: TrainedModel, posterior: str, words: str, log_words: torch.Tensor, left_out: slice) -> Any:
    """On the grid: masses of q_w, of the balanced one, and the shares that it keeps."""
    batch = parse_descriptions(toy.guided(1.0), [words]).batch(toy, 0)
    guided, _ = GRID.masses(toy, posterior, batch, log_words, WEIGHT)
    before, _ = GRID.masses(toy, posterior, batch, log_words, 0.0 if toy.reads(posterior) else 1.0)
    read = readings(toy, GRID.z, left_out)
    shares = before @ read
    return guided, balanced_masses(guided, read, shares), shares


@EVERY_BASE
@pytest.mark.parametrize(("words", "left_out"), [("size=small", COLOURS), ("colour=green", SIZES)])
def test_draws_have_the_shares_and_the_density_that_the_grid_says(
    given: str, posterior: str, words: str, left_out: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmgen.posteriors._candidates._FIRST", 512)
    monkeypatch.setattr("mmgen.posteriors._balance._FIRST", 16_384)
    toy = loaded(given)
    guided, balanced, shares = truth(toy, posterior, words, GRID.log_words(toy, codes_of(words)), left_out)
    read = readings(toy, GRID.z, left_out)
    assert (guided @ read - shares).abs().max() > 0.02  # guidance alone changes them
    tilted = toy.guided(Guidance(WEIGHT, "balanced"))
    z = draw(tilted, posterior, words, 1500)
    error = 3 * math.sqrt(0.25 / min(1500, pool_size(tilted, posterior))) + 0.01
    assert (readings(toy, z, left_out).mean(0) - shares).abs().max() < error
    assert agree(z, balanced, pool_size(tilted, posterior)) > 1e-3
    assert agree(z, guided, pool_size(tilted, posterior)) < 1e-3


@EVERY_BASE
def test_the_density_integrates_to_one_and_has_the_shares(
    given: str, posterior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmgen.posteriors._balance._FIRST", 16_384)
    toy = loaded(given)
    batch = parse_descriptions(toy, ["size=small"]).batch(toy, 0)
    _, balanced, _ = truth(toy, posterior, "size=small", GRID.log_words(toy, codes_of("size=small")), COLOURS)
    tilted = toy.guided(Guidance(WEIGHT, "balanced"))
    (_,), (error,) = tilted.guided_posterior(posterior).normaliser(batch)
    with torch.no_grad():
        density = tilted.posteriors[posterior].log_prob(GRID.z[:, None], batch)[:, 0].exp() * GRID.cell
    assert abs(float(density.sum().log())) < 4 * float(error) + 1e-3
    assert float((density - balanced).abs().sum()) / 2 < 0.05  # total variation


@EVERY_BASE
def test_what_means_the_same_keeps_nearly_the_same_shares(given: str, posterior: str) -> None:
    """NOT does not condition q, so that the shares which it keeps are those at w = 1."""
    toy = loaded(given)
    tilted = toy.guided(Guidance(WEIGHT, "balanced"))
    asked = ["NOT colour=red", "colour=blue OR colour=green"]
    drawn = [draw_latents(tilted, posterior, parse_descriptions(tilted, [text]), 1500, 0)[0] for text in asked]
    first, second = (readings(toy, z, SIZES).mean(0) for z in drawn)
    assert (first - second).abs().max() < 0.05
    batch = parse_descriptions(tilted, asked[:1]).batch(toy, 0)
    table = ATTRIBUTES.log_probabilities(toy.model.decoders["attributes"](GRID.z)).exp().detach()
    once, _ = GRID.masses(toy, posterior, batch, (1 - table[:, 0, 0]).log(), 1.0)
    assert (first - once @ readings(toy, GRID.z, SIZES)).abs().max() < 0.06


def test_expressions_keep_the_shares_of_what_they_do_not_mention() -> None:
    toy = loaded("nothing")
    table = ATTRIBUTES.log_probabilities(toy.model.decoders["attributes"](GRID.z)).exp().detach()
    words = (table[:, 0, 1] + table[:, 0, 2]).log()
    guided, balanced, shares = truth(toy, "aggregate", "NOT colour=red", words, SIZES)
    tilted = toy.guided(Guidance(WEIGHT, "balanced"))
    z = draw_latents(tilted, "aggregate", parse_descriptions(tilted, ["NOT colour=red"]), 1500, 0)[0]
    assert agree(z, balanced, pool_size(tilted, "aggregate")) > 1e-3
    assert (readings(toy, z, SIZES).mean(0) - shares).abs().max() < 0.05
    assert (guided @ readings(toy, GRID.z, SIZES) - shares).abs().max() > 0.01


@pytest.mark.parametrize("posterior", ["prior", "own", "aggregate"])
def test_where_nothing_is_left_out_it_is_plain_guidance_bit_for_bit(posterior: str) -> None:
    toy = loaded()
    plain, balanced = (
        draw(toy.guided(Guidance(3.0, how)), posterior, "colour=red size=big", 20) for how in (False, True)
    )
    assert plain.equal(balanced)


def test_what_is_drawn_for_a_description_does_not_depend_on_the_others() -> None:
    toy = loaded().guided("3:balanced")
    together = draw_latents(toy, "aggregate", parse_descriptions(toy, ["size=big", "colour=red", "size=small"]), 5, 0)
    assert together[2].equal(draw(loaded().guided("3:balanced"), "aggregate", "size=small", 5))


@pytest.mark.parametrize("posterior", ["own", "aggregate"])
def test_expressions_that_ask_the_same_of_other_conditions_are_told_apart(posterior: str) -> None:
    """Both ask for green; q reads nothing of the first, and green of the second."""
    texts = ["NOT colour=red NOT colour=blue", "colour=green NOT colour=red"]
    for order in (texts, texts[::-1]):
        toy = loaded().guided("3:balanced")
        together = draw_latents(toy, posterior, parse_descriptions(toy, order), 5, 0)
        for text, drawn in zip(order, together, strict=True):
            alone = loaded().guided("3:balanced")
            assert drawn.equal(draw_latents(alone, posterior, parse_descriptions(alone, [text]), 5, 0)[0])


def test_what_could_not_be_balanced_is_said() -> None:
    """The toy's own q(z|y) is wrong on purpose: to keep its shares of size takes back what green gains."""
    toy = loaded().guided("3:balanced")
    draw(toy, "own", "colour=green", 5)
    told, found = toy.guided_posterior("own").report, toy.guided_posterior("own").diagnostics
    assert "undoes more than half of the effect of guidance" in told.notice and found["smallest_rise_kept"] < 0.5
    assert str(told) == "q(z|y) guided (w = 3, balanced)"
    toy = loaded().guided("1000:balanced")
    draw(toy, "own", "size=small", 5)
    told = toy.guided_posterior("own").report
    assert "the shares of unspecified attributes are kept only roughly, off by up to " in told.notice
    toy = loaded("nothing").guided("2:balanced")
    draw(toy, "aggregate", "size=small", 5)
    found = toy.guided_posterior("aggregate").diagnostics
    assert toy.guided_posterior("aggregate").report.notice == "" and found["smallest_rise_kept"] > 0.5
    assert found["largest_share_missed"] < 0.02 and found["smallest_balanced_effective_sample_size"] > 1000


@pytest.mark.parametrize(
    ("posterior", "words", "left_out"), [("aggregate", "colour=green", SIZES), ("own", "colour=green", SIZES)]
)
def test_as_many_draws_are_taken_as_bring_shares_close(posterior: str, words: str, left_out: slice) -> None:
    """At w = 10 the first 2,048 draws are far off in size, though many of them count once balanced."""
    toy = loaded()
    tilted, batch = toy.guided("10:balanced"), parse_descriptions(toy, [words]).batch(toy, 0)
    base = toy.posteriors[posterior].log_prob(GRID.z[:, None], batch)[:, 0].double().detach()
    read = readings(toy, GRID.z, left_out)
    guide = tilted.guided_posterior(posterior)
    masses = (base + guide.log_weight(GRID.z, batch)).softmax(0)
    assert (masses @ read - base.softmax(0) @ read).abs().max() < 0.05
    missed = (masses @ read - base.softmax(0) @ read).abs().max()
    assert missed <= guide.diagnostics["largest_share_missed"] < 0.05


@torch.no_grad()
def test_what_is_taken_back_is_told_of_rare_words_too() -> None:
    """Words of half a percent: they go together with green, whose share is kept, and so they are lost again."""
    toy = loaded()
    z = GRID.z[::17]
    green = readings(toy, z, COLOURS)[:, 2]
    likelihood = torch.where(green > 0.5, -5.3, -12.0).double()
    none = torch.zeros(len(z), dtype=torch.float64)

    def draw_some(*asked: Any) -> Candidates:
        return Candidates(z, 3 * likelihood, none, likelihood)

    balance = Balance(toy.likelihood, draw_some)
    balance(z, parse_descriptions(toy, ["size=big"]).batch(toy, 0), None)
    assert balance.diagnostics["smallest_rise_kept"] < 0.5 and "undoes more than half" in balance.notice


def test_a_density_tells_how_well_it_is_balanced_without_a_draw() -> None:
    toy = loaded().guided("3:balanced")
    toy.posteriors["aggregate"].log_prob(GRID.z[:5, None], parse_descriptions(toy, ["size=small"]).batch(toy, 0))
    found = toy.guided_posterior("aggregate").diagnostics
    assert found.keys() == {"smallest_balanced_effective_sample_size", "largest_share_missed", "smallest_rise_kept"}


def test_readings_of_several_attributes_stand_side_by_side() -> None:
    toy, z = loaded(), torch.randn(7, 2)
    found = toy.likelihood.value_probabilities(z, (0, 1)).detach()
    assert torch.allclose(found[:, :3], readings(toy, z, COLOURS), atol=1e-6)
    assert torch.allclose(found[:, 3:5], readings(toy, z, SIZES), atol=1e-6)
    assert found.shape == (7, 5)


def test_multipliers_of_two_values_by_hand() -> None:
    """Draws that say one of three values each: the balanced weight of a value is its share."""
    generator = torch.Generator().manual_seed(0)
    values = torch.randint(3, (5000,), generator=generator)
    read = torch.nn.functional.one_hot(values, 3).double()
    weights = 0.7 * torch.randn(5000, generator=generator) + 1.5 * values
    found = find_multipliers(weights, read, torch.tensor([0.5, 0.3, 0.2]))
    masses = (weights.double() + read @ found).softmax(0)
    assert (masses @ read).tolist() == pytest.approx([0.5, 0.3, 0.2], abs=5e-3)
    for value, share in enumerate((0.5, 0.3, 0.2)):  # within a value nothing but its share changes
        own = weights[values == value].double().softmax(0)
        assert masses[values == value] / share == pytest.approx(own, rel=0.02)


def test_multipliers_stay_finite_where_no_draw_says_a_value() -> None:
    read = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    found = find_multipliers(torch.tensor([0.0, -800.0]), read, torch.tensor([0.9, 0.1]))
    assert torch.isfinite(found).all()
    for weights in ([-math.inf, -math.inf], [math.nan, 0.0]):
        assert find_multipliers(torch.tensor(weights), read, torch.tensor([0.9, 0.1])).tolist() == [0.0, 0.0]
    assert find_multipliers(torch.zeros(4), torch.full((4, 2), 0.5), torch.tensor([0.5, 0.5])).abs().max() == 0


@pytest.mark.parametrize(
    "value",
    [
        "3:",
        "3:even",
        "x:balanced",
        ":balanced",
        "",
        "0:balanced",
        True,
        None,
        "nan",
        "3:effective",
        "3:effective=0.5",
        "3:effective=nan",
        "3:candidates=1e3",
        "3:candidates=9999999",
        "3:balanced=1",
        "3:balanced:balanced",
        "3:effective=9:effective=9",
    ],
)
def test_what_is_no_guidance_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=r"guidance got .*, expected a"):
        loaded().guided(value)


@pytest.mark.parametrize("given", [3, 3.0, "3", np.int64(3), np.float32(3), (3,), ["3"], Guidance(3.0)])
def test_one_tilt_or_several(given: Any) -> None:
    assert parse_guidance(given) == [Guidance(3.0)]


def test_what_cannot_be_balanced_is_refused() -> None:
    toy = loaded()
    assert toy.fitted is not None
    toy.fitted._weights = {"guidance": 2.0}
    with pytest.raises(UsageError, match="was fitted with guidance and has lost the shares"):
        draw(toy.guided("3:balanced"), "aggregate", "size=big", 2)
    assert draw(toy.guided("3:balanced"), "prior", "size=big", 2).shape == (2, 2)

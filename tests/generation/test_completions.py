"""Completions against enumeration, and posteriors that complete against sums over a grid."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

import mmgen.densities
from mmgen.core.errors import UsageError
from mmgen.descriptions import parse as parse_words
from mmgen.generation.descriptions import parse_descriptions
from mmgen.generation.latents import draw_completions, draw_latents
from mmgen.latent.space import LatentSpace
from mmgen.modalities.attributes import AttributesDescription
from mmgen.posteriors import Aggregate, Completions, Fitted, _candidates, _posterior
from tests.generation.test_guidance import agree
from tests.generation.toy import ATTRIBUTES, COUNTS, GRID_OF_Z as GRID, ROWS, loaded

THREE = AttributesDescription(
    name="attributes",
    names=("shape", "hue", "size"),
    values=(("star", "moon", "heart"), ("red", "blue"), ("big", "small")),
)
EVERY = np.array(list(itertools.product(range(3), range(2), range(2))), np.uint8)
SEEN = EVERY[[0, 1, 3, 4, 6, 7, 9, 10]]  # no small heart in blue, no star that is blue and big, ...
NUMBERS = np.array([5, 1, 4, 2, 8, 3, 1, 6])
KNOWN = Completions(SEEN, NUMBERS, THREE)
OPEN = 255


def enumerated(holds: Any) -> dict[tuple[int, ...], float]:
    """p(whole | what holds), by going through all training descriptions."""
    found = {tuple(map(int, row)): float(n) for row, n in zip(SEEN, NUMBERS, strict=True) if holds(row)}
    total = sum(found.values())
    return {row: n / total for row, n in found.items()}


PARTS = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
EXPRESSIONS = {
    "shape=star NOT size=big": lambda row: row[0] == 0 and row[2] != 0,
    "NOT hue=red": lambda row: row[1] != 0,
    "shape=star OR shape=moon hue=blue": lambda row: row[0] == 0 or (row[0] == 1 and row[1] == 1),
    "NOT shape=star NOT shape=moon": lambda row: row[0] == 2,
}


@pytest.mark.parametrize("given", PARTS)
def test_parts_are_completed_with_the_shares_of_the_data(given: tuple[int, ...]) -> None:
    for row in SEEN:
        codes = np.full(3, OPEN, np.uint8)
        codes[list(given)] = row[list(given)]
        wanted = enumerated(lambda other, codes=codes: all(other[k] == codes[k] for k in given))
        whole, shares = KNOWN.complete(codes)
        assert {tuple(one): share for one, share in zip(whole.tolist(), shares, strict=True)} == pytest.approx(wanted)
        with np.errstate(divide="ignore"):
            expected = np.log([wanted.get(tuple(one), 0.0) for one in EVERY.tolist()])
        np.testing.assert_allclose(KNOWN.log_prob(EVERY, codes), expected, atol=1e-6)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_are_completed_by_what_satisfies_them(text: str) -> None:
    expression, wanted = parse_words(text, THREE), enumerated(EXPRESSIONS[text])
    whole, shares = KNOWN.complete(expression.codes, expression)
    assert {tuple(one): share for one, share in zip(whole.tolist(), shares, strict=True)} == pytest.approx(wanted)
    drawn = KNOWN.sample(expression.codes, 20_000, torch.Generator().manual_seed(0), expression)
    for one, share in wanted.items():
        found = (drawn == np.array(one, np.uint8)).all(1).mean()
        assert abs(found - share) < 4 * math.sqrt(share * (1 - share) / 20_000) + 1e-9
    assert all(EXPRESSIONS[text](row) for row in drawn)


def test_draws_have_these_shares_and_one_seed_gives_the_same() -> None:
    codes = np.array([OPEN, 0, OPEN], np.uint8)
    first, again, other = (KNOWN.sample(codes, 20_000, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert (first == again).all() and not (first == other).all()
    for one, share in enumerated(lambda row: row[1] == 0).items():
        assert abs((first == np.array(one, np.uint8)).all(1).mean() - share) < 4 * math.sqrt(share / 20_000)


def test_an_unseen_combination_keeps_its_words_and_borrows_the_rest() -> None:
    blue_heart = np.array([2, 1, OPEN], np.uint8)  # the data have it big alone
    assert KNOWN.complete(blue_heart)[0].tolist() == [[2, 1, 0]]
    known = Completions(np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1]], np.uint8), np.array([3, 1, 4]), THREE)
    whole, shares = known.complete(np.array([1, 1, OPEN], np.uint8))  # never seen: each of two rows agrees in one word
    assert (whole[:, :2] == [1, 1]).all() and shares.sum() == pytest.approx(1)
    ratio = known.odds
    big, small = 3 * ratio**2, 1 * ratio + 4 * ratio  # (0, 0, 0) has two wrong words; (0, 1, 1) and (1, 0, 1) have one
    expected = {0: big / (big + small), 1: small / (big + small)}
    assert dict(zip(whole[:, 2].tolist(), shares, strict=True)) == pytest.approx(expected)
    partly = Completions(np.array([[0, OPEN, 0], [1, 1, 1]], np.uint8), np.array([1, 1]), THREE)
    first, second = partly.probabilities(np.array([2, 1, OPEN], np.uint8))  # both wrong in shape; hue unknown, right
    assert first / second == pytest.approx((1 / 2) / (1 / (1 + partly.odds)))
    whole = np.array([2, 1, 1], np.uint8)  # all words given, whatever the data have
    assert known.complete(whole)[0].tolist() == [whole.tolist()]


def test_unknown_words_stay_unknown_and_no_words_do_not_count() -> None:
    rows = np.array([[0, OPEN, 0], [0, 1, OPEN], [OPEN, 1, 0], [OPEN] * 3], np.uint8)
    known = Completions.from_examples(rows.repeat([2, 1, 4, 9], 0), THREE)
    assert known.counts.sum() == 7
    whole, shares = known.complete(np.array([0, OPEN, OPEN], np.uint8))
    assert sorted(zip(whole.tolist(), shares.tolist(), strict=True)) == [([0, 1, 255], 1 / 3), ([0, 255, 0], 2 / 3)]
    nothing = Completions.from_examples(rows[3:], THREE)  # of which no description is known: parts stay as they are
    assert nothing.complete(rows[0])[0].tolist() == [rows[0].tolist()]


def test_words_that_depend_on_each_other_are_borrowed_from_what_is_near() -> None:
    """All of twelve words follow one hidden bit, up to slips; a part that was never seen is completed by it."""
    generator = np.random.default_rng(0)
    info = AttributesDescription(name="a", names=tuple("abcdefghijkl"), values=(("no", "yes"),) * 12)

    def draw(n: int) -> Any:
        hidden = generator.integers(0, 2, (n, 1))
        return np.where(generator.random((n, 12)) < 0.1, 1 - hidden, hidden).astype(np.uint8)

    known = Completions.from_examples(draw(60), info)
    right, unseen = [], 0
    for row in draw(300):
        part = np.where(np.arange(12) < 9, row, OPEN).astype(np.uint8)
        if (known.rows[:, :9] == part[:9]).all(1).any():
            continue
        unseen += 1
        whole, shares = known.complete(part)
        right.append(float(shares @ (whole[:, 9:] == row[9:]).mean(1)))
    assert unseen > 50 and known.odds < 1
    assert np.mean(right) > 0.7  # by chance 0.5; who knows the hidden bit: 0.82 with slips of its own


@pytest.mark.slow
def test_one_attribute_and_forty() -> None:
    one = AttributesDescription(name="attributes", names=("kind",), values=(("a", "b"),))
    known = Completions(np.array([[0], [1]], np.uint8), np.array([1, 3]), one)
    assert known.complete(np.array([OPEN], np.uint8))[1].tolist() == [0.25, 0.75]
    forty = AttributesDescription(
        name="attributes", names=tuple(f"a{k}" for k in range(40)), values=(("no", "yes"),) * 40
    )
    codes = np.random.default_rng(0).integers(0, 2, (5000, 40)).astype(np.uint8)
    known = Completions.from_examples(codes, forty)
    part = np.full(40, OPEN, np.uint8)
    part[:3] = 1
    drawn = known.sample(part, 500, torch.Generator().manual_seed(0))
    assert (drawn[:, :3] == 1).all() and not (drawn == OPEN).any()
    part[:30] = 1 - codes[0, :30]  # agrees with no row
    drawn = known.sample(part, 50, torch.Generator().manual_seed(0))
    assert (drawn[:, :30] == part[:30]).all() and not (drawn == OPEN).any()


def test_an_expression_that_nothing_satisfies_is_refused() -> None:
    expression = parse_words("shape=moon hue=blue NOT size=small", THREE)
    assert not expression.matches(SEEN[:3]).any()
    with pytest.raises(UsageError, match="'shape=moon hue=blue NOT size=small' got no training description"):
        Completions(SEEN[:3], NUMBERS[:3], THREE).complete(expression.codes, expression)


# ------------------------------------------------------------------------------------------------ posteriors on a grid
WHOLE = {
    "colour=green": ([[2, 0], [2, OPEN]], [5 / 6, 1 / 6]),
    "size=big": ([[0, 0], [1, 0], [2, 0]], [1 / 8, 2 / 8, 5 / 8]),
}
READING = pytest.mark.parametrize("posterior", ["own", "aggregate"])


def mixture(posterior: str, words: str, weight: float) -> torch.Tensor:
    """Masses on the grid of the mixture of (guided) posteriors of whole descriptions, by the definition."""
    toy, (rows, shares) = loaded(), WHOLE[words]
    total = torch.zeros(len(GRID.z), dtype=torch.float64)
    for row, share in zip(rows, shares, strict=True):
        batch = toy.describe_codes(np.array([row], np.uint8))
        masses, _ = GRID.masses(toy, posterior, batch, GRID.log_words(toy, row), weight)
        total += share * masses
    return total


@pytest.fixture
def _many_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_candidates, "_FIRST", 512)


@pytest.mark.usefixtures("_many_candidates")
@READING
@pytest.mark.parametrize("words", WHOLE)
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_draws_of_a_part_are_the_mixture(posterior: str, words: str, weight: float) -> None:
    toy = loaded(completes=True).guided(weight)
    asked = parse_descriptions(toy, [words])
    z = draw_latents(toy, posterior, asked, 2000, 0)[0]
    assert agree(z, mixture(posterior, words, weight)) > 1e-3
    assert torch.equal(z, draw_latents(toy, posterior, asked, 2000, 0)[0])
    straight = toy.posteriors[posterior].sample(asked.batch(toy, 0), 2000, torch.Generator().manual_seed(0))[:, 0]
    assert agree(straight, mixture(posterior, words, weight)) > 1e-3
    as_given = draw_latents(toy.completing(False), posterior, asked, 2000, 0)[0]
    assert agree(as_given, mixture(posterior, words, weight)) < 1e-3


@READING
@pytest.mark.parametrize("words", WHOLE)
def test_log_density_of_a_part_is_the_log_of_the_mixture(posterior: str, words: str) -> None:
    toy = loaded(completes=True)
    batch = parse_descriptions(toy, [words]).batch(toy, 0)
    z = GRID.z[::997]
    with torch.no_grad():
        found = toy.posteriors[posterior].log_prob(z[:, None], batch)[:, 0].double()
        plain, (rows, shares) = loaded().posteriors[posterior], WHOLE[words]
        parts = [
            plain.log_prob(z[:, None], toy.describe_codes(np.array([row], np.uint8)))[:, 0].double() for row in rows
        ]
        expected = (torch.stack(parts, -1).exp() @ torch.tensor(shares, dtype=torch.float64)).log()
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)
        total = toy.posteriors[posterior].log_prob(GRID.z[:, None], batch).exp().sum() * GRID.cell
    assert float(total) == pytest.approx(1, abs=0.03)  # what lies beyond the grid


@pytest.mark.slow_cases("rectified-flow")
@pytest.mark.parametrize("family", mmgen.densities.names())
def test_every_family_has_the_density_of_a_mixture(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    density = mmgen.densities.get(family)()
    torch.manual_seed(0)
    aggregate = Aggregate(LatentSpace.flat(2), ATTRIBUTES, density).eval().requires_grad_(False)
    toy = loaded(completes=True)
    fitted = Fitted("aggregate", aggregate.keep_descriptions(ROWS, COUNTS), 2).completing(lambda: toy.completions)
    words = toy.describe_codes(np.array([[OPEN, 0], [0, OPEN]], np.uint8))
    z = torch.randn(3, 1, 2)
    found = fitted.log_prob(z, words)
    assert found.shape == (3, 2)
    for row, codes in enumerate(([OPEN, 0], [0, OPEN])):
        whole, shares = toy.completions.complete(np.array(codes, np.uint8))
        parts = [fitted.aggregate.log_prob(z, toy.describe_codes(one[None]))[:, 0].exp() for one in whole]
        expected = (torch.stack(parts, -1).double() @ torch.from_numpy(shares)).log()
        torch.testing.assert_close(found[:, row].double(), expected, atol=1e-4, rtol=1e-4)
    monkeypatch.setattr(_posterior, "_COUNTED", 1)
    with pytest.raises(UsageError, match="is a sum over 3 whole descriptions, expected at most 1; give more words"):
        fitted.log_prob(z, words)


def test_not_and_or_are_drawn_without_guidance_and_refused_where_nothing_is_completed() -> None:
    toy = loaded(completes=True)
    asked = parse_descriptions(toy, ["NOT colour=green", "colour=red OR size=big"])
    completed = draw_completions(toy, "aggregate", asked, 500, 0).completed
    assert completed is not None and (completed[0, :, 0] != 2).all()
    assert ((completed[1, :, 0] == 0) | (completed[1, :, 1] == 0)).all()
    for words in ("NOT colour=green", "colour=red OR size=big"):
        assert toy.sample(words, 3).shape == (3, 1, 2, 2)
        with pytest.raises(UsageError, match=r"drawn by completing descriptions, .* leave --no-complete or"):
            toy.completing(False).sample(words, 3)
        with pytest.raises(UsageError, match="reads no descriptions"):
            toy.sample(words, 3, posterior="prior")
        for ask in (toy.describe, lambda one: toy.posterior(one, "own")):
            with pytest.raises(UsageError, match="has operators, expected a description by attribute=value alone"):
                ask(words)


def test_whole_descriptions_are_drawn_as_without_completion() -> None:
    toy, words = loaded(completes=True), "colour=red size=big"
    assert torch.equal(toy.sample(words, 5, seed=0), toy.completing(False).sample(words, 5, seed=0))
    both = parse_descriptions(toy, [words, "colour=red"])
    drawn = draw_latents(toy, "aggregate", both, 5, 0)
    assert torch.equal(drawn[0], draw_latents(toy, "aggregate", both[:1], 5, 0)[0])
    assert torch.equal(drawn[1], draw_latents(toy, "aggregate", both[1:], 5, 0)[0])


def test_a_file_keeps_descriptions_and_one_without_reads_those_of_the_data() -> None:
    toy = loaded(completes=True)
    assert toy.completions.rows.tolist() == ROWS.tolist() and toy.completions.counts.tolist() == COUNTS.tolist()
    assert toy.completions.attributes.names == ATTRIBUTES.names
    assert toy.fitted is not None
    bare = loaded(completes=True)
    assert bare.fitted is not None
    for name in ("described_rows", "described_counts"):
        delattr(bare.fitted.aggregate, name)
    with pytest.raises(UsageError, match=r"from training descriptions, which cannot be read: .* --no-complete"):
        bare.sample("colour=red", 2)
    assert bare.sample("colour=red size=big", 2).shape == (2, 1, 2, 2)  # nothing is open
